"""Find the folders that come with labkit: in a clone beside the package, in an installed one within it."""

from pathlib import Path

PACKAGE = Path(__file__).parent
PACKAGES = tuple(PACKAGE.parent / name for name in ("simt", "labkit", "grader"))  # those of the repository


def shipped(name: str, package: Path = PACKAGE) -> Path:
    """Return the folder `data` or `notebooks` as it was shipped."""
    within = package / name
    return within if within.is_dir() else package.parent / name
