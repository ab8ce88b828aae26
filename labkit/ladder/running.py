"""Run, verify and time the rungs of the GPU's ladder, and the references that they are held against.

A rung is called by the name of its file without the number: `tuned` is 9_tuned. A family's reference is a
call of a library, such as `cublas` (in full float32, no TF32) or `memcpy`. Each result is verified before it
is timed, so that no table holds the time of a wrong one. Times come as rows in the columns of `records.load`.
In the simulator the rungs run too, at small sizes, and `source` says so.

Some rungs round float32 inputs to fewer bits (`Problem.rounding`). Their rows have what they round to in the
column dtype, so that they do not stand among results of float32.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from labkit import kernels, records
from labkit.core.compare import Mismatch, unwritten
from labkit.core.errors import SimtError
from labkit.core.limits import Dim3
from labkit.device.select import NoGpu, device, synchronize
from labkit.device.timing import Timing, time_kernel
from labkit.kernels.problem import Problem, forget, problem_class
from labkit.records import COLUMNS, frame_of

SECONDS = 0.3  # to measure a case for; a longer launch is timed once, in the run that is verified
END = "samples"  # the quantity of a case's last row

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A rung or a reference on a problem, to be timed. `case` makes it, with all of the kernel's macros."""

    rung: str
    problem: Problem
    macros: tuple[tuple[str, int | str], ...] = ()

    def __str__(self) -> str:
        return " ".join([self.rung, *(f"{name}={value}" for name, value in self.macros), str(self.problem)])

    @property
    def family(self) -> str:
        """The family of the kernel and of the problem."""
        return self.problem.family

    @property
    def kernel(self) -> str:
        """Name of the kernel, such as matmul/2_tiled. A reference has none: KeyError."""
        return rungs(self.family)[self.rung]

    def place(self) -> Row:
        """Its place in a table: COLUMNS without quantity, unit and value.

        Macros other than DTYPE and TILE are in `note`: "TILE_M=128 TILE_N=128".
        """
        sizes = {name.lower(): size for name, size in self.problem.sizes.items()}
        place: Row = dict.fromkeys(COLUMNS) | sizes | {"report": "", "machine": device().name}
        place |= {"problem": self.family, "kernel": self.rung, "dtype": self.problem.dtype, "note": ""}
        if self.rung not in rungs(self.family):
            return place
        _, (block_x, block_y, *_) = kernels.launch(self.kernel, self.problem, **dict(self.macros))
        has_tile = "TILE" in kernels.defaults(self.kernel)  # else it is the side of the block, no more
        note = " ".join(f"{name}={value}" for name, value in self.macros if name != "TILE")
        tile = dict(self.macros)["TILE"] if has_tile else None
        dtype = dict(self.macros).get("PRECISION", self.problem.dtype)
        return place | {"dtype": dtype, "block_x": block_x, "block_y": block_y, "tile": tile, "note": note}

    def compiled(self) -> tuple[Any, Dim3, Dim3]:
        """The kernel for this machine's device, and the grid and block of its launch."""
        macros, known = dict(self.macros), kernels.defaults(self.kernel)
        # those that it has: or each TILE would compile naive anew
        own = {name: value for name, value in macros.items() if name in known}
        kernel = kernels.load(self.kernel, DTYPE=self.problem.ctype, **own)
        return kernel, *kernels.launch(self.kernel, self.problem, **macros)

    def rows(self, args: tuple[Any, ...]) -> list[Row]:
        """Verify and time it on the arrays `args` of its problem.

        A row each: `time` (the median), `time_p20` and `time_p80` in ms, `clock` in MHz, `error` where the
        problem has a `relative_error` of the rung, number of `samples`. Raises Mismatch where the result is
        wrong.
        """
        launch, timing = verified(self, args)
        error = self.problem.relative_error(self.rung, args)
        if timing.seconds <= SECONDS or device().kind != "gpu":  # the simulator's first call compiles
            timing = time_kernel(launch, seconds=SECONDS)
        return timing_rows(self.place(), timing, error)


Section = Callable[[bool], Iterator[Case]]  # of `labkit bench`: its cases; True: without the large ones


def rungs(family: str) -> dict[str, str]:
    """What tables call the rungs of a family, simplest first -> the kernel's name."""
    names = {re.sub(r".*/(\d+_)?", "", name): name for name in kernels.names(family)}
    return {rung: name for rung, name in names.items() if rung != problem_class(family).ceiling}


def case(rung: str, problem: Problem, **parameters: int | str) -> Case:
    """The case of `rung` on `problem`, with macros as in `parameters` and the kernel's defaults.

    Raises ValueError for a rung that the problem's family does not have, and for a macro that the rung does
    not have: its name would stand in a table beside a time that it has no part in.
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
    """Macros to choose and their defaults: those of the source but DTYPE, which is the problem's; or
    a TILE.
    """
    macros = {name: value for name, value in kernels.defaults(kernel).items() if name != "DTYPE"}
    takes_any_block = "TILE" not in macros and re.search(r"// launch:.*\bTILE\b", kernels.source(kernel))
    return macros | {"TILE": kernels.BLOCK_SIDE} if takes_any_block else macros


def cases(problem: Problem) -> list[Case]:
    """The reference and every rung, with the kernels' defaults; of those that round what this device has."""
    plain = [
        rung for rung in (problem.reference_name, *rungs(problem.family)) if rung not in problem.rounding
    ]
    major = int(device().compute_capability.partition(".")[0])
    rounding = [
        case(rung, problem, PRECISION=precision)
        for rung, precisions in problem.rounding.items()
        for precision, needed in precisions.items()
        if major >= needed
    ]
    return [*(case(rung, problem) for rung in plain), *rounding]


def recorded(problem: Problem, machine: str | Path = "h200") -> pd.DataFrame:
    """Recorded times of the reference and every rung on `problem`, with the kernels' defaults, in its dtype.

    `machine` as in `records.recorded`, which other times, of other tiles, can be had from.
    """
    place = frame_of(each.place() for each in cases(problem))
    place = place[place.dtype == problem.dtype].drop(
        columns=["machine", "quantity", "unit", "value", "source"]
    )
    return place.merge(records.recorded(machine, "time"), on=list(place.columns))


def time_rung(rung: str, problem: Problem, **parameters: int | str) -> pd.DataFrame:
    """Time of a rung or reference on this machine's device, verified first: the columns of `records.load`.

    See `Case.rows`. Raises Mismatch where the result is wrong, NoGpu for a reference without a GPU.
    """
    from labkit.device.select import xp

    return frame_of(case(rung, problem, **parameters).rows(problem.args(xp)))


def here(problem: Problem, *chosen: str) -> pd.DataFrame:
    """Times of rungs and references on this machine's GPU, to stand beside recorded ones in `plots`.

    Of all rungs of the problem's family, or of those `chosen`; columns of `records.load`. Empty where there
    is no GPU: the simulator's times say nothing about one. Raises Mismatch where a result is wrong.
    """
    if device().kind != "gpu":
        return frame_of([])
    from labkit.device.select import xp

    plan = [case(rung, problem) for rung in chosen] if chosen else cases(problem)
    args = problem.args(xp)
    return frame_of(row for each in plan for row in each.rows(args) if row["quantity"] == "time")


def measure(cases: Iterable[Case]) -> Iterator[tuple[Case, list[Row] | Exception]]:
    """Each case with its rows, or with what went wrong: a wrong result, a kernel that the device or a library
    refused, too little memory. Cases of one problem that follow each other share its arrays.
    """
    from labkit.device.select import xp

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
    """A launch of `case` on the arrays `args` of its problem, and the time of the one that was verified.

    Raises Mismatch where its result was wrong, NoGpu for a reference without a GPU.
    """
    from labkit.device.select import xp

    launch, output = launcher(case, args), case.problem.output(args)
    poison(output)
    timing = time_kernel(launch, seconds=0)
    if case.problem.reads_output:  # the launch used it up
        output[...] = xp.asarray(case.problem.output(case.problem.inputs()))
        launch()
    verify(case, args)
    return launch, timing


def launcher(case: Case, args: tuple[Any, ...]) -> Callable[[], object]:
    """A launch of `case` on the arrays `args` of its problem, compiled and not yet run."""
    if case.rung == case.problem.reference_name:
        if device().kind != "gpu":
            raise NoGpu(f"{case.rung} is NVIDIA's own and runs on a GPU: there is none here. Choose a rung.")
        return case.problem.reference_call(args)
    kernel, grid, block = case.compiled()
    return lambda: kernel(grid, block, args)


def poison(output: Any) -> None:
    """Fill an output with what no right result holds, see `mismatch.unwritten`."""
    bits = unwritten((1,), output.dtype.name).view(f"u{output.itemsize}")
    output.view(bits.dtype).fill(bits[0])


def verify(case: Case, args: tuple[Any, ...]) -> None:
    """Raise Mismatch unless the output among `args` is right; of a copy: equal to the input."""
    synchronize()
    if case.rung in case.problem.copies:
        _verify_copy(args[0].ravel(), args[1].ravel())
    else:
        unit = case.problem.rounding_unit if case.rung in case.problem.rounding else 0
        case.problem.verify(case.problem.output(args), unit_of_inputs=unit)


def row_dicts(table: pd.DataFrame) -> list[Row]:
    """The rows of a table, each by column name."""
    return [{str(column): cell for column, cell in row.items()} for row in table.to_dict("records")]


def timing_rows(place: Row, timing: Timing, error: float | None = None) -> list[Row]:
    """The rows of one measurement at a place of `Case.place`."""
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
    """Give back what is no longer used: the right output, and on a GPU arrays that CuPy would keep."""
    forget()
    if device().kind == "gpu":
        import cupy

        cupy.get_default_memory_pool().free_all_blocks()
