"""Makes LLVM code of a kernel, in which one warp is a 32-lane vector."""
