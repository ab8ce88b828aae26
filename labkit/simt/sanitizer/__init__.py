"""A checked run, and the findings that it gives."""
