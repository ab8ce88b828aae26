"""Simplifies kernels before they are analysed: no calls, no recursion, no matrices in registers."""
