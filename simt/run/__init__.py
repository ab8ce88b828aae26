"""Runs a launch: its blocks on the cores of the host, its time limit, and what its kernel prints."""
