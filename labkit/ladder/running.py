"""Run, verify and time the rungs of the GPU's ladder, and the references that they are compared with.

A rung has the name of its file without the number: `tuned` is 9_tuned. A family's reference is a library
call, such as `cublas` (in full float32, no TF32) or `memcpy`. Each result is verified before it is timed, so
no table holds the time of a wrong result. Times come as rows in the columns of `records.load`. The rungs also
run in the simulator, at small sizes; `source` then says so.

Some rungs round float32 inputs to fewer bits (`Problem.rounding`). Their rows name the rounded type in the
column dtype, so that they are not mixed with float32 results.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from labkit import kernels, records
from labkit.devices.select import NoGpu, device, synchronize
from labkit.devices.timing import Timing, time_kernel
from labkit.kernels.problem import Problem, forget, problem_class
from labkit.records import COLUMNS, frame_of
from simt.common.compare import Mismatch, unwritten
from simt.common.errors import SimtError
from simt.common.limits import Dim3
from simt.kernel import PATIENCE_SECONDS

SECONDS = 0.3  # measuring time per case; a longer launch is timed once, in the run that is verified
END = "samples"  # the quantity of a case's last row

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A rung or a reference to time on a problem. `case` makes it, with all of the kernel's macros."""

    rung: str
    problem: Problem
    macros: tuple[tuple[str, int | str], ...] = ()

    def __str__(self) -> str:
        return " ".join([self.rung, *(f"{name}={value}" for name, value in self.macros), str(self.problem)])

    @property
    def family(self) -> str:
        """Return the family of the kernel and of the problem."""
        return self.problem.family

    @property
    def kernel(self) -> str:
        """Return the kernel's name, such as matmul/2_tiled. Raises KeyError for a reference."""
        return rungs(self.family)[self.rung]

    def place(self) -> Row:
        """Return the columns that identify the case in a table: COLUMNS without quantity, unit and value.

        Macros other than DTYPE and TILE are in `note`: "TILE_M=128 TILE_N=128".
        """
        sizes = {name.lower(): size for name, size in self.problem.sizes.items()}
        place: Row = dict.fromkeys(COLUMNS) | sizes | {"report": "", "machine": device().name}
        place |= {"problem": self.family, "kernel": self.rung, "dtype": self.problem.dtype, "note": ""}
        if self.rung not in rungs(self.family):
            return place
        _, (block_x, block_y, *_) = kernels.launch(self.kernel, self.problem, **dict(self.macros))
        has_tile = "TILE" in kernels.defaults(self.kernel)  # otherwise TILE is only the side of the block
        note = " ".join(f"{name}={value}" for name, value in self.macros if name != "TILE")
        tile = dict(self.macros)["TILE"] if has_tile else None
        dtype = dict(self.macros).get("PRECISION", self.problem.dtype)
        return place | {"dtype": dtype, "block_x": block_x, "block_y": block_y, "tile": tile, "note": note}

    def compiled(self) -> tuple[Any, Dim3, Dim3]:
        """Return the kernel compiled for this machine's device, and the grid and block of its launch."""
        macros, known = dict(self.macros), kernels.defaults(self.kernel)
        # Only the macros that the kernel has: otherwise naive would be compiled again for each TILE.
        own = {name: value for name, value in macros.items() if name in known}
        kernel = kernels.load(self.kernel, DTYPE=self.problem.ctype, **own)
        return kernel, *kernels.launch(self.kernel, self.problem, **macros)

    def launch(self, args: tuple[Any, ...]) -> tuple[Dim3, Dim3, tuple[Any, ...], int]:
        """Return what the compiled kernel is called with on the arrays `args`, see `kernels.whole_launch`."""
        return kernels.whole_launch(self.kernel, self.problem, args, **dict(self.macros))

    def rows(self, args: tuple[Any, ...]) -> list[Row]:
        """Verify and time the case on the arrays `args` of its problem.

        There is one row per quantity: `time` (the median), `time_p20` and `time_p80` in ms, `clock` in MHz,
        `error` where the problem has a `relative_error` of the rung, and the number of `samples`. Raises
        Mismatch where the result is wrong.
        """
        launch, timing = verified(self, args)
        error = self.problem.relative_error(self.rung, args)
        if timing.seconds <= SECONDS or device().kind != "gpu":  # the simulator's first call also compiles
            timing = time_kernel(launch, seconds=SECONDS)
        return timing_rows(self.place(), timing, error)


Section = Callable[[bool], Iterator[Case]]  # one section of `labkit bench`; True leaves out large sizes


def rungs(family: str) -> dict[str, str]:
    """Map the rungs' names in tables to the kernels' names, simplest first."""
    names = {re.sub(r".*/(\d+_)?", "", name): name for name in kernels.names(family)}
    kind = problem_class(family)
    return {rung: name for rung, name in names.items() if rung not in (kind.ceiling, *kind.beside)}


def case(rung: str, problem: Problem, **parameters: int | str) -> Case:
    """Make the case of `rung` on `problem`, with the given macros and the kernel's defaults for the others.

    Raises ValueError for a rung that the problem's family does not have, and for a macro that the rung does
    not have: the table would name a macro that has no effect on the time.
    """
    known, reference = rungs(problem.family), problem.reference_name
    if rung not in (*known, reference):
        raise ValueError(
            f"{problem.family} has no rung {rung!r}. Choose one of {', '.join([*known, reference])}."
        )
    macros = _macros(known[rung]) if rung in known else {}
    if unknown := [name for name in parameters if name not in macros]:
        raise ValueError(f"{rung} has no macro {unknown[0]} to choose; it has {', '.join(macros) or 'none'}.")
    return Case(rung, problem, tuple((macros | parameters).items()))


def _macros(kernel: str) -> dict[str, int | str]:
    """Return the macros to choose, with defaults: not DTYPE, which the problem sets; TILE for any block."""
    macros = {name: value for name, value in kernels.defaults(kernel).items() if name != "DTYPE"}
    takes_any_block = "TILE" not in macros and re.search(r"// launch:.*\bTILE\b", kernels.source(kernel))
    return macros | {"TILE": kernels.BLOCK_SIDE} if takes_any_block else macros


def cases(problem: Problem) -> list[Case]:
    """Return the reference and every rung that this device has and that takes the problem.

    A rung that rounds its inputs stands there once per type that the device has.
    """
    plain = [problem.reference_name, *_rungs_of(problem)]
    major = int(device().compute_capability.partition(".")[0])
    rounding = [
        case(rung, problem, PRECISION=precision)
        for rung, precisions in problem.rounding.items()
        for precision, needed in precisions.items()
        if major >= needed
    ]
    return [*(case(rung, problem) for rung in plain), *rounding]


def _rungs_of(problem: Problem) -> Iterator[str]:
    """Yield the rungs that do not round, have the problem's type and sizes, and run on this device."""
    for rung, name in rungs(problem.family).items():
        if rung in problem.rounding or problem.ctype not in kernels.types(name):
            continue
        if kernels.unfit(name, problem) or kernels.lacking(name, problem.ctype, device().compute_capability):
            continue
        yield rung


def recorded(problem: Problem, machine: str | Path = "h200") -> pd.DataFrame:
    """Return recorded times of the reference and every rung on `problem`, with default macros and its dtype.

    `machine` is as in `records.recorded`, which also has the times of other tiles.
    """
    place = frame_of(each.place() for each in cases(problem))
    place = place[place.dtype == problem.dtype].drop(
        columns=["machine", "quantity", "unit", "value", "source"]
    )
    return place.merge(records.recorded(machine, "time"), on=list(place.columns))


def time_rung(rung: str, problem: Problem, **parameters: int | str) -> pd.DataFrame:
    """Verify, then time a rung or reference on this machine's device, in the columns of `records.load`.

    See `Case.rows`. Raises Mismatch where the result is wrong, NoGpu for a reference without a GPU.
    """
    from labkit.devices.select import xp

    return frame_of(case(rung, problem, **parameters).rows(problem.args(xp)))


def here(problem: Problem, *chosen: str) -> pd.DataFrame:
    """Time rungs and references on this machine's GPU, to compare with recorded times in `plots`.

    Times the rungs `chosen`, or all of the problem's family, in the columns of `records.load`. The table is
    empty where there is no GPU: the simulator's times say nothing about one. Raises Mismatch where a result
    is wrong.
    """
    if device().kind != "gpu":
        return frame_of([])
    from labkit.devices.select import xp

    plan = [case(rung, problem) for rung in chosen] if chosen else cases(problem)
    args = problem.args(xp)
    return frame_of(row for each in plan for row in each.rows(args) if row["quantity"] == "time")


def measure(cases: Iterable[Case]) -> Iterator[tuple[Case, list[Row] | Exception]]:
    """Yield each case with its rows or its exception; consecutive cases of one problem share its arrays.

    The exception says what went wrong: a wrong result, a kernel that the device or a library refused, or too
    little memory.
    """
    from labkit.devices.select import xp

    for problem, group in groupby(cases, lambda each: each.problem):
        args = None
        for each in group:
            try:
                args = args or problem.args(xp)
                yield each, each.rows(args)
            except (Mismatch, SimtError, MemoryError, ValueError, RuntimeError) as wrong:  # the last: CuPy's
                yield each, wrong
        del args
        _free()


def verified(case: Case, args: tuple[Any, ...]) -> tuple[Callable[[], object], Timing]:
    """Return a launch of `case` on the arrays `args` of its problem, and the time of the verified run.

    Raises Mismatch where the result was wrong, NoGpu for a reference without a GPU.
    """
    from labkit.devices.select import xp

    launch, output = launcher(case, args), case.problem.output(args)
    poison(output, case.problem.output_dtype.name)
    timing = time_kernel(launch, seconds=0)
    if case.problem.reads_output:  # the launch has overwritten its input
        output[...] = case.problem.output(case.problem.args(xp))
        launch()
    verify(case, args)
    return launch, timing


def launcher(case: Case, args: tuple[Any, ...]) -> Callable[[], object]:
    """Return a launch of `case` on the arrays `args` of its problem, compiled but not yet run."""
    if case.rung == case.problem.reference_name:
        if device().kind != "gpu":
            raise NoGpu(f"{case.rung} is NVIDIA's own and runs on a GPU: there is none here. Choose a rung.")
        return case.problem.reference_call(args)
    kernel, launch = case.compiled()[0], case.launch(args)
    return lambda: kernel(*launch, timeout=PATIENCE_SECONDS)


def poison(output: Any, dtype: str = "") -> None:
    """Fill an output with a value that no right result holds, see `compare.unwritten`.

    `dtype` is that of the numbers whose bits it has, by default its own.
    """
    bits = unwritten((1,), dtype or output.dtype.name).view(f"u{output.itemsize}")
    output.view(bits.dtype).fill(bits[0])


def verify(case: Case, args: tuple[Any, ...]) -> None:
    """Raise Mismatch unless the output among `args` is right; a copy's output must equal its input."""
    synchronize()
    if case.rung in case.problem.copies:
        _verify_copy(args[0].ravel(), args[1].ravel())
    else:
        unit = case.problem.rounding_unit if case.rung in case.problem.rounding else 0
        case.problem.verify(case.problem.output(args), unit_of_inputs=unit)


def row_dicts(table: pd.DataFrame) -> list[Row]:
    """Return the rows of a table as dicts from column names to values."""
    return [{str(column): cell for column, cell in row.items()} for row in table.to_dict("records")]


def timing_rows(place: Row, timing: Timing, error: float | None = None) -> list[Row]:
    """Make the rows of one measurement, identified by the columns of `Case.place`."""
    values = {
        "time": (timing.median, "ms"),
        "time_p20": (timing.p20, "ms"),
        "time_p80": (timing.p80, "ms"),
        "clock": (timing.clock_mhz, "MHz"),
        **({} if error is None else {"error": (error, "1")}),
        END: (len(timing.samples), "1"),
    }
    return [
        place | {"quantity": quantity, "unit": unit, "value": value, "source": timing.source}
        for quantity, (value, unit) in values.items()
    ]


def _verify_copy(before: Any, after: Any) -> None:
    wrong = before != after
    count = int(wrong.sum())
    if count:
        first = int(wrong.argmax())
        got, expected = after[first].item(), before[first].item()
        raise Mismatch(
            f"element {first} of the copy is {got:.9g}; it should be {expected:.9g}. "
            f"{count} of {wrong.size} elements are wrong.",
            *((first,), got, expected, count, wrong.size),
        )


def _free() -> None:
    """Free what is no longer used: the right output and, on a GPU, the arrays that CuPy would keep."""
    forget()
    if device().kind == "gpu":
        import cupy

        cupy.get_default_memory_pool().free_all_blocks()
