"""Draws curves and pictures."""
