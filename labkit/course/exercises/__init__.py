"""The exercises, one module per notebook; each has a tuple EXERCISES."""
