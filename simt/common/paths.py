"""Where the tables and archives lie that come with the package."""

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
