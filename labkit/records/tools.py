"""What NVIDIA's tools printed of the programs in data/tools; benchmarks/record_tools.py recorded it."""

import json
import re
from pathlib import Path

from labkit.paths import shipped

_FOLDER = shipped("data") / "tools"
_KERNEL = re.compile(r"^  (?P<name>\w+)\(", re.MULTILINE)  # ncu's heading of a kernel's figures
_SECTION = re.compile(r"^    Section: (?P<name>.+)$", re.MULTILINE)
_FIGURE = re.compile(r"^    (\S.*?)  +(?:[A-Za-z%/]+ +)?([\d,]+(?:\.\d+)?) *$", re.MULTILINE)


class NoReport(ValueError):
    """There is no such report, kernel or section; the message lists those there are."""


def tool_source(program: str) -> str:
    """Return the source of a program for which there are reports, such as "products"."""
    return _read(program, ".cu")


def tool_report(name: str, kernel: str = "", section: str = "") -> str:
    """Return what a tool printed on the GPU that `tool_machine` names; the first line is the command.

    Of a report of Nsight Compute, `kernel` chooses a kernel, and `section` how one of its sections begins,
    such as "Occupancy"; both without the command. Raises NoReport.
    """
    text = _read(name, ".txt")
    if kernel:
        text = _part(text, _KERNEL, kernel)
    return _part(text, _SECTION, section).rstrip("\n") + "\n" if section else text


def tool_figures(name: str, kernel: str) -> dict[str, float]:
    """Return the figures of a kernel in a report of Nsight Compute, by their names there. Raises NoReport.

    Where a name stands twice, as Memory Throughput does, the first is meant: that in per cent.
    """
    found = _FIGURE.findall(tool_report(name, kernel))
    return {figure: float(value.replace(",", "")) for figure, value in reversed(found)}


def tool_machine() -> str:
    """Say on which GPU, with which versions and when the reports were recorded."""
    about = json.loads((_FOLDER / "tools.json").read_text(encoding="utf-8"))
    versions = ", ".join(f"{tool} {version}" for tool, version in about["versions"].items())
    return f"{about['gpu']}, driver {about['driver']}, {versions}, {about['date']}"


def _read(name: str, ending: str) -> str:
    path = _FOLDER / f"{name}{ending}"
    if not path.is_file():
        raise NoReport(f"There is no {name!r}. Choose one of {_names(_FOLDER, ending)}.")
    return path.read_text(encoding="utf-8")


def _names(folder: Path, ending: str) -> str:
    return ", ".join(path.stem for path in sorted(folder.glob(f"*{ending}")))


def _part(text: str, heading: re.Pattern[str], wanted: str) -> str:
    """Return the part of a text under the heading that begins with `wanted`."""
    found = list(heading.finditer(text))
    ends = [*(each.start() for each in found[1:]), len(text)]
    for each, end in zip(found, ends, strict=True):
        if each["name"].startswith(wanted):
            return text[each.start() : end]
    raise NoReport(f"There is no {wanted!r}. Choose one of {', '.join(each['name'] for each in found)}.")
