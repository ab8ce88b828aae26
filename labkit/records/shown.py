"""Tables as a student reads them: headings in words, few decimals, and a dash where nothing was measured."""

from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

MISSING = "–"
NOTE = f"{MISSING} not measured, or not defined"

# What records and Nsight Compute call a figure -> words. A table says these, and the name as a tip.
WORDS = {
    "n": "N",
    "block_x": "block side",
    "dtype": "type",
    "time": "time, ms",
    "bandwidth": "bandwidth, GB/s",
    "performance": "GFLOP/s",
    "step_speedup": "× the step before",
    "speedup_over_cpu": "× the CPU",
    "malloc_time": "allocation",
    "htod_time": "host to device",
    "dtoh_time": "device to host",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "loads: sectors asked of the L1",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "stores: sectors asked of the L1",
    "lts__t_sectors.sum": "sectors asked of the L2",
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "L1 busy, %",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "L2 busy, %",
}
_NUMBER = int | float | np.number  # columns of sizes hold NumPy's
_UNSAID = ("quantity", "variable")  # names of an axis that say nothing beside its labels


@dataclass(frozen=True, repr=False)
class Table:
    """A frame with its cells as text; in a notebook it is an HTML table."""

    cells: pd.DataFrame
    note: str

    def __repr__(self) -> str:
        """Return the table as lines of text."""
        return "\n".join([_said(self.cells).to_string(), *[self.note] * bool(self.note)])

    def _repr_html_(self) -> str:
        told = f"<p>{escape(self.note)}</p>" if self.note else ""
        return str(_said(self.cells, html=True).to_html(escape=False, border=0)) + told


def table(frame: pd.DataFrame | pd.Series, digits: int = 2) -> Table:
    """Show a frame to a student, its numbers with `digits` decimals, or none in columns of hundreds."""
    frame = pd.DataFrame(frame)
    columns = [_texts(frame.iloc[:, place], digits) for place in range(frame.shape[1])]
    cells = pd.DataFrame(dict(enumerate(columns)), index=frame.index)
    cells.columns = frame.columns
    return Table(cells, NOTE if any(MISSING in column for column in columns) else "")


def _texts(column: pd.Series, digits: int) -> list[str]:
    """Write the cells of a column, with as many decimals in each."""
    numbers = [float(cell) for cell in column.dropna() if isinstance(cell, _NUMBER)]
    whole = all(number == round(number) or abs(number) >= 100 for number in numbers)
    decimals = 0 if whole else digits
    return [
        MISSING if pd.isna(cell) else f"{cell:,.{decimals}f}" if isinstance(cell, _NUMBER) else str(cell)
        for cell in column
    ]


def _said(cells: pd.DataFrame, html: bool = False) -> pd.DataFrame:
    """Put words in the place of recorded names, in headings and in the names of rows."""

    def said(label: object) -> object:
        words = WORDS.get(str(label), str(label))
        if not html:
            return words
        tip = f' title="{escape(str(label))}"' if words != str(label) else ""
        return f"<span{tip}>{escape(words)}</span>" if tip else escape(words)

    shown = cells.map(escape) if html else cells.copy()
    for axis in ("index", "columns"):
        labels = getattr(shown, axis)
        names = [None if name in _UNSAID else WORDS.get(name, name) for name in labels.names]
        if isinstance(labels, pd.MultiIndex):
            levels = [labels.get_level_values(level).map(said) for level in range(labels.nlevels)]
            setattr(shown, axis, pd.MultiIndex.from_arrays(levels, names=names))
        else:
            setattr(shown, axis, pd.Index([said(label) for label in labels], name=names[0]))
    return shown
