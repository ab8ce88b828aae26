"""LLVM code of a kernel: one warp is a 32-lane vector."""
