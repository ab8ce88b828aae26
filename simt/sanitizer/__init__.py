"""Checks what a launch does, and words what it finds."""
