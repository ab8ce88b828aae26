"""A line of the report, and how a check says what is wrong."""

from dataclasses import dataclass

OK, MISSING, OPTIONAL = "OK", "missing", "optional"


@dataclass(frozen=True)
class Row:
    """One line of the report.

    `state` is OK, MISSING (the course cannot run without it) or OPTIONAL (absent or unfit; the course runs).
    `fix` is the command or step that fixes it, or "".
    """

    name: str
    state: str
    detail: str
    fix: str = ""


class Absent(Exception):
    """What a check raises for something absent or unfit: what is wrong, and what to do about it."""

    def __init__(self, detail: str, fix: str = "") -> None:
        super().__init__(detail)
        self.fix = fix


def cuda(number: str) -> str:
    """Return CUDA's version from that of one of its packages: 13.5.37 belongs to 13.5."""
    return ".".join(number.split(".")[:2])
