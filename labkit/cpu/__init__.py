"""Matrix kernels in C on this machine's processor."""
