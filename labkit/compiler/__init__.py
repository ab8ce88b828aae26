"""NVIDIA's compiler (NVRTC), the headers it lacks, and the course's kernels compiled beforehand."""
