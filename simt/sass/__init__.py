"""The machine code of a kernel: its listing, its kinds, and how often a launch issues each instruction."""
