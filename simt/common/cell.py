"""The cell that runs now, as far as the front end of Jupyter tells."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cell:
    """A cell that was run: its source, and its `id` in the notebook, "" where that is not told.

    `live` holds the sources of cells with answers as they stood in the page when it was run, by id. Only
    labkit's extension of JupyterLab tells them.
    """

    source: str = ""
    id: str = ""
    live: Mapping[str, str] = field(default_factory=dict)


def shell() -> Any:
    """Return the IPython that runs this, or None."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module else None


def current() -> Cell:
    """Return the cell that runs now."""
    here = shell()
    request = here.get_parent() if hasattr(here, "get_parent") else {}
    told = request.get("metadata") or {}
    live = told.get("labkit")
    source = (request.get("content") or {}).get("code")
    return Cell(
        source if isinstance(source, str) else "",
        str(told.get("cellId") or ""),
        live if isinstance(live, dict) else {},
    )
