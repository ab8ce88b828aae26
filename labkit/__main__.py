"""`python -m labkit` is `labkit`."""

from labkit.cli import app

app(prog_name="labkit")
