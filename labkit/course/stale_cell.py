"""Whether the cell of an answer was changed after it ran: a check may not speak for code that is not there.

Python sees cells only as they run. In JupyterLab and Notebook 7, labkit's extension sends their sources with
each check. Elsewhere the saved notebook is read: what was saved after the cell ran and differs from what ran,
was changed after it ran. What is not saved yet cannot be known, and nothing is said of it.
"""

import json
import os
from itertools import zip_longest
from pathlib import Path
from typing import Any

from labkit.magic import CellRun
from simt.common import cell


def changed_line(run: CellRun) -> int | None:
    """Return the first line in which a cell differs from what ran, counted from 1; None if none is known."""
    now = cell.current().live.get(run.cell.id)
    if now is None:
        now = _saved(run)
    if now is None:
        return None
    pairs = zip_longest(_lines(run.cell.source), _lines(now), fillvalue="")
    return next((number for number, (ran, has) in enumerate(pairs, 1) if ran != has), None)


def _lines(source: str) -> list[str]:
    return [line.rstrip() for line in source.rstrip().splitlines()]


def _saved(run: CellRun) -> str | None:
    """Return the cell's source in the notebook's file, if that was saved after the cell ran."""
    try:
        path = _notebook()
        if path is None or path.stat().st_mtime <= run.time:
            return None
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = [(each.get("id"), "".join(each["source"])) for each in cells]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    same = [source for id, source in sources if id == run.cell.id]
    first = _lines(run.cell.source)[:1]  # VS Code has ids of its own
    same = same or [source for _, source in sources if _lines(source)[:1] == first]
    return same[0] if len(same) == 1 else None


def _notebook() -> Path | None:
    """Return the notebook's file, by what Jupyter's server or VS Code tells."""
    here: Any = cell.shell()
    told = os.environ.get("JPY_SESSION_NAME") or (here.user_ns.get("__vsc_ipynb_file__") if here else None)
    return Path(told) if told else None
