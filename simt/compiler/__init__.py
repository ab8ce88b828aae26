"""NVIDIA's compiler (NVRTC), the headers that it lacks, and precompiled kernels of the course."""
