"""The simulator's side of a program: it serves what the library in the program asks for."""
