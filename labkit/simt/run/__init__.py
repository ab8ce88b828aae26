"""A launch: arguments, limits, blocks on the cores of the host, what kernels print."""
