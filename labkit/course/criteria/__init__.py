"""The criteria that answers are judged by: of kernels, of C and Python functions, and of what they cost."""
