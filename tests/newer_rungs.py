"""Rungs that are newer than the recordings in data/h200: empty this set with the next `labkit bench`."""

NEWER_RUNGS = {"any_tile", "stream_k"}
