"""Whole CUDA programs (`.cu` files with a `main`), built by NVIDIA's nvcc, run with or without a GPU."""
