"""`python -m simt` is `simt`."""

from simt.cli import app

app(prog_name="simt")
