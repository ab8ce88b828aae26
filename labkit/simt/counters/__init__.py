"""A counted run, and the profile that it gives."""
