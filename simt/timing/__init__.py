"""Predicts how long a launch takes on a named GPU, and what limits it, without that GPU."""
