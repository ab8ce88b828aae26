"""Counts what a launch does, and makes a profile of it."""
