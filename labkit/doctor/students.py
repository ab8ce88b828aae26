"""The doctor's report as a student needs it: what the notebooks use, in plain words, and what to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from labkit.doctor.row import MISSING, OK, Row

READY, MENDED, WITHOUT = "ready", "to be mended", "not here"
CUDA = ("Python", "Packages", "NVRTC (CUDA C++ to PTX)", "LLVM (PTX to this CPU)")
_COLOURS = {
    READY: "var(--jp-success-color1, #2e7d32)",
    MENDED: "var(--jp-error-color1, #c62828)",
    WITHOUT: "var(--jp-ui-font-color2, #757575)",
}
_MARKS = {READY: "✓", MENDED: "✗", WITHOUT: "○"}


@dataclass(frozen=True)
class Table:
    """What a student can use here. It shows as HTML, and prints as text."""

    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        lines = (
            f"{_MARKS[row.state]} {row.name}: {row.state}. {row.detail}" + f"\n    {row.fix}" * bool(row.fix)
            for row in self.rows
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return "".join(_html(row) for row in self.rows)


def _html(row: Row) -> str:
    mark = f'<span style="color: {_COLOURS[row.state]}">{_MARKS[row.state]}</span>'
    fix = f'<pre style="margin: 0.2em 0 0.4em 1.4em; white-space: pre-wrap">{escape(row.fix)}</pre>'
    told = f"{mark} <b>{escape(row.name)}</b>: {row.state}. {escape(row.detail)}"
    return f'<div style="margin: 0.2em 0">{told}{fix * bool(row.fix)}</div>'


def table(report: Sequence[Row]) -> Table:
    """Say in plain words what a report means for the notebooks; what only teachers need is left out."""
    found = {row.name: row for row in report}
    rows = [_cuda(found), _c(found["C compiler"]), _gpu(found["GPU"], found["CuPy"])]
    memory, cache = found["Machine"], found["Cache"]
    if memory.state != OK:
        rows.append(
            Row("Memory", MENDED, "Little is free, and a notebook may stop for want of it.", memory.fix)
        )
    if cache.state != OK:
        told = "What is compiled cannot be kept, so cells take longer than they need to."
        rows.append(Row("Cache", WITHOUT, told, cache.fix))
    return Table(tuple(rows))


def _cuda(found: Mapping[str, Row]) -> Row:
    """Tell whether cells of CUDA run, by the first part that is missing."""
    for name in CUDA:
        row = found[name]
        if row.state != OK:
            state = MENDED if row.state == MISSING else WITHOUT
            return Row("Cells of CUDA", state, f"{row.detail.rstrip('.')}.", row.fix)
    return Row("Cells of CUDA", READY, "They are compiled, checked and run on this machine.")


def _c(row: Row) -> Row:
    if row.state == OK:
        return Row("Cells of C", READY, "There is a C compiler, which notebook 01 uses.")
    told = "There is no C compiler that works. Notebook 01 needs one; the others do without."
    return Row("Cells of C", WITHOUT, told, row.fix)


def _gpu(gpu: Row, cupy: Row) -> Row:
    """Say whether the GPU runs kernels, or why the simulator does."""
    if gpu.state == OK and cupy.state == OK:
        return Row("GPU", READY, f"Your kernels can run on it: {gpu.detail}.")
    simulated = "The simulator runs your kernels: the results are the same, but times are not a GPU's."
    if gpu.state == OK:
        return Row(
            "GPU",
            WITHOUT,
            f"There is one, but CuPy, which starts kernels on it, is not ready. {simulated}",
            cupy.fix,
        )
    return Row("GPU", WITHOUT, f"None is needed. {simulated}", gpu.fix)
