"""Choose what runs a kernel here (the GPU or the simulator), launch on it, time it and explain its faults."""
