"""What runs a kernel here, the GPU or the simulator: choosing it, launching on it, faults, and time."""
