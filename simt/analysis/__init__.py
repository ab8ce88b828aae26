"""Finds out about a kernel before code is made: its blocks, its values' shapes, where lanes part."""
