"""Says what bounds a kernel, and by how much."""
