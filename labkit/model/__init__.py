"""What bounds a kernel, and by how much."""
