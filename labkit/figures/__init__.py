"""Curves and pictures."""
