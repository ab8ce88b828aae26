"""A launch's arguments, and which of its blocks run."""
