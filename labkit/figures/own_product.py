"""Your own matrix product: launched as its source says, counted, put beside the ladder, and timed.

A kernel here is one of `%%cuda`, such as `labkit.answer("10.2")`, whose cell has a line `// launch:`
(kernels/launch_line.py). In tables and plots it is called `yours`.
"""

from dataclasses import dataclass, field
from functools import cached_property, singledispatch
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

import simt
from labkit.devices.select import device
from labkit.devices.timing import time_kernel
from labkit.figures.roofline import roofline as draw_roofline
from labkit.figures.source_costs import Heat, show
from labkit.figures.style import Plot, label_bar, sign, titled
from labkit.figures.svg import Svg
from labkit.kernels import launch_of, macros_of
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import Problem
from labkit.ladder import running
from labkit.model import limits
from labkit.model.roofline import COUNTED, SECTORS, intensities
from labkit.records import frame_of
from simt.common.errors import SimtError
from simt.common.limits import Dim3
from simt.counters.profile import loads

NAME = "yours"
# Tiles of 32, 48, 64, 96 and 128 fit it, and a product of few blocks is soon counted.
MEASURED = Matmul(384, 384, 64)
LARGE = Matmul(2048, 2048, 2048)
PERFECT = 128  # bytes that a warp asks for, 4 a lane: four sectors
FLOATS = 4  # bytes
# Okabe and Ito's
_RUNG, _BEST, _YOURS = "#56B4E9", "#0072B2", "#009E73"


def launch(kernel: simt.AnyKernel, problem: Problem) -> tuple[Dim3, Dim3]:
    """Work out grid and block for `problem`, as the kernel's line says. Raises LaunchError."""
    return launch_of(kernel.module.code, problem, **macros_of(kernel.module.options))


@dataclass(frozen=True, repr=False)
class Figures:
    """What a kernel costs per multiply-add of `problem`.

    Counts are the simulator's, loads are those of single threads in PTX; registers and warps are for an H200.
    """

    problem: Matmul
    profile: Heat
    local_bytes: int

    @property
    def multiply_adds(self) -> int:
        """Return M N K of the problem."""
        return self.problem.M * self.problem.N * self.problem.K

    @cached_property
    def reuse(self) -> float:
        """Return the multiply-adds per sector of global loads; infinite where nothing is loaded."""
        sectors = self._sum("sectors", "global")
        return self.multiply_adds / sectors if sectors else float("inf")

    @cached_property
    def shared(self) -> float:
        """Return the elements (4 bytes) that threads read from shared memory per multiply-add."""
        return self._sum("useful_bytes", "shared") / FLOATS / self.multiply_adds

    @cached_property
    def loads(self) -> float:
        """Return the loads of a thread from global, shared or local memory per multiply-add."""
        return self._sum("threads") / self.multiply_adds

    @cached_property
    def accesses(self) -> pd.DataFrame:
        """Return line, op, `sectors` per 128 bytes asked for, and source of lines with global accesses."""
        lines = self.profile.lines
        rows = lines[lines.space.isin(["global", "generic"])]
        return rows.assign(sectors=PERFECT * rows.sectors / rows.useful_bytes)[
            ["line", "op", "sectors", "source"]
        ]

    @cached_property
    def conflicts(self) -> float:
        """Return the share of the passes over the banks of shared memory that conflicts add."""
        rows = self.profile.lines.query("space == 'shared'")
        return float(rows.conflicts.sum() / max(1, rows.passes.sum()))

    @property
    def warps(self) -> int:
        """Return the warps that a multiprocessor of an H200 holds."""
        return self.profile.occupancy.warps

    def _sum(self, what: str, *spaces: str) -> int:
        """Sum a column over the lines that load from these memories, or from all but constant memory."""
        return int(loads(self.profile.lines, *spaces)[what].sum())

    def __repr__(self) -> str:
        worst = self.accesses.groupby("op").sectors.max()
        access = ", ".join(f"{_WORDS[op]} {worst[op]:.3g}" for op in _WORDS if op in worst) or "none"
        held = self.profile.occupancy
        rows = {
            "multiply-adds per sector of global loads": (
                f"{self.reuse:.4g}" if isfinite(self.reuse) else "no loads"
            ),
            "sectors per 128 bytes, worst line": access,
            "elements from shared memory per multiply-add": f"{self.shared:.3g}",
            "loads of a thread per multiply-add": f"{self.loads:.3g}",
            "passes over the banks that conflicts add": f"{100 * self.conflicts:.3g} %",
            "registers, and bytes of local memory, per thread": (
                f"{held.launch__registers_per_thread}, {self.local_bytes}"
            ),
            f"warps on an SM of {held.gpu.name}": f"{held.warps} of {held.gpu.warps_per_sm}",
        }
        return "\n".join(f"{name:<47} {value}" for name, value in rows.items())


_WORDS = {"ld": "loads", "st": "stores", "atom": "atomics", "red": "atomics"}


def figures(kernel: simt.AnyKernel, problem: Matmul = MEASURED) -> Figures:
    """Count what the kernel does on `problem`, in the simulator. Raises SimtError where it fails."""
    counted = kernel.simulated.profile(*launch(kernel, problem), problem.args(np))
    return figures_of(kernel, problem, counted)


def figures_of(kernel: simt.AnyKernel, problem: Matmul, counted: simt.Profile) -> Figures:
    """Return the figures of a launch on `problem` that was counted before."""
    return Figures(problem, show(counted), kernel.simulated.local_size_bytes)


def sectors(kernel: simt.AnyKernel, problem: Matmul, blocks: int = 4) -> pd.DataFrame:
    """Count the sectors that the kernel asks for on `problem`, as `count_sectors` does for the rungs."""
    args = (*problem.zeros(), *problem.scalars())
    profile = kernel.simulated.profile(*launch(kernel, problem), args, blocks=blocks)
    place = _Own(NAME, problem, answer=kernel).place() | {"machine": "", "unit": "sectors", "source": COUNTED}
    return frame_of(place | {"quantity": name, "value": profile.metrics[name]} for name in SECTORS)


def beside(kernel: simt.AnyKernel, problem: Matmul = LARGE) -> pd.DataFrame:
    """List the ladder by FLOP per byte asked of the L1 caches, with the kernel in its place.

    The rungs' counts and rates (TFLOP/s) are those of an H200; the kernel has a count, and no rate.
    """
    intensity = intensities(_counters(kernel))
    times = limits.times_of(problem).set_index("kernel").value
    rates = {name: problem.gflops(ms / 1e3) / 1e3 for name, ms in times.items()}
    table = pd.DataFrame({"FLOP/B": intensity, "TFLOP/s on H200": rates}).loc[list(intensity)]
    return table.sort_values("FLOP/B", kind="stable").rename_axis("kernel")


def roofline(kernel: simt.AnyKernel, problem: Matmul = LARGE) -> Svg:
    """Draw the recorded roofline of an H200, and how high the roofs are where the kernel's counts put it.

    `problem` is one that was recorded. The kernel has not run there: it is a line, not a point.
    """
    return draw_roofline(limits.times_of(problem), _counters(kernel), limits.ceilings(), untimed=NAME)


def times(kernel: simt.AnyKernel, problem: Matmul, *rungs: str) -> pd.DataFrame:
    """Time the kernel, and rungs and references in the same run, on this machine's GPU.

    Each result is verified first; a kernel that is wrong is left out, and told. The table has the columns of
    `records.load`; it is empty where there is no GPU, since the simulator's times say nothing about one.
    """
    if device().kind != "gpu":
        return frame_of([])
    found, wrong = measured(kernel, problem, *rungs)
    if wrong:
        print(f"{NAME} is not timed. {problem}:\n{wrong}")
    return found


@singledispatch
def measured(kernel: simt.AnyKernel, problem: Matmul, *rungs: str) -> tuple[pd.DataFrame, str]:
    """Return `times` on this machine's device, and what is wrong with the kernel, if anything is.

    The grader has a way of its own for its class of kernels.
    """
    cases = [_Own(NAME, problem, answer=kernel), *(running.case(rung, problem) for rung in rungs)]
    rows: list[running.Row] = []
    wrong = ""
    for case, found in running.measure(cases):
        if not isinstance(found, Exception):
            rows += [row for row in found if row["quantity"] == "time"]
        elif case.rung == NAME:
            wrong = str(found)
        else:
            raise found
    return frame_of(rows), wrong


def bars(times: pd.DataFrame, problem: Matmul = LARGE) -> Plot:
    """Draw the rates of `times` as bars; where it is empty, those of the ladder recorded on an H200.

    Raises ValueError where a kernel has several times.
    """
    shown = limits.times_of(problem) if times.empty else times
    if shown.kernel.duplicated().any():
        raise ValueError("the frame has several times of a kernel: choose one size and source.")
    at = shown.set_index("kernel").sort_values("value", ascending=False)
    rates = 2e-9 * (at.m * at.n * at.k).astype(float) / at.value
    best, cublas = str(rates.drop("cublas", errors="ignore").idxmax()), rates.get("cublas")
    figure = Plot(figsize=(8, 0.3 * len(rates) + 1.3), layout="constrained")
    axes = figure.subplots()
    colours = {best: _BEST, "cublas": "0.5", NAME: _YOURS}
    axes.barh(list(rates.index), rates, color=[colours.get(name, _RUNG) for name in rates.index])
    for place, rate in enumerate(rates):
        part = f" ({100 * rate / cublas:.3g} % of cublas)" if cublas else ""
        label_bar(axes, rate, place, f"{rate:.3g}{part}")
    axes.set(xlabel="TFLOP/s", xlim=(0, 1.35 * rates.max()))
    told = NAME if NAME in rates.index else best
    against = [name for name in ("naive", "tiled", "cublas") if name in rates.index and name != told]
    found = f"{told} reaches {rates[told]:.3g} TFLOP/s"
    if against:
        found = f"{told} has {rates[told] / rates[against[0]]:.3g}× the rate of {against[0]}"
    titled(axes, f"N = {shown.n.iloc[0]}: {found}")
    sign(figure, shown)
    return figure


@dataclass(frozen=True)
class _Own(running.Case):
    """The student's kernel in the place of a rung."""

    answer: simt.AnyKernel = field(kw_only=True)
    problem: Matmul

    def rows(self, args: tuple[Any, ...]) -> list[running.Row]:
        """Verify and time the kernel as a rung, but give each timed launch other numbers, and verify it.

        A kernel that keeps results, or finds them in C, has nothing to gain.
        """
        kernel, grid, block = self.compiled()
        running.verified(self, args)
        new = _Renewed(self.problem, kernel)
        timing = time_kernel(
            lambda: kernel(grid, block, new.args), seconds=running.SECONDS, before=new.before, after=new.after
        )
        if bool(new.is_wrong):
            raise SimtError("The kernel is right in its first launch, and wrong in a later one.")
        return running.timing_rows(self.place(), timing)

    def compiled(self) -> tuple[simt.AnyKernel, Dim3, Dim3]:
        from labkit.devices.select import RawModule

        own, module = self.answer, self.answer.module
        if isinstance(own, simt.Kernel) and device().kind == "gpu":
            own = RawModule(
                code=module.code, options=module.options, name_expressions=module.name_expressions
            ).get_function(own.name)
        return own, *launch(own, self.problem)

    def launch(self, args: tuple[Any, ...]) -> tuple[Dim3, Dim3, tuple[Any, ...], int]:
        return *launch(self.answer, self.problem), args, 0


class _Renewed:
    """The arguments of launches that are timed: other numbers before each, and a look at the result after."""

    def __init__(self, problem: Matmul, kernel: simt.AnyKernel) -> None:
        self._problem, self._kernel, self.args = problem, kernel, problem.args(kernel.xp)
        self._rng = kernel.xp.random.default_rng(problem.seed)
        self.is_wrong = kernel.xp.zeros((), bool)

    def before(self) -> None:
        """Draw A, B, and C where it is read; fill it otherwise, and reset the module's variables."""
        *inputs, c = self.args[:3]
        for matrix in [*inputs, c] if self._problem.reads_output else inputs:
            matrix[...] = self._problem.drawn(self._rng, matrix.shape)
        if not self._problem.reads_output:
            running.poison(c)
        self._old = c.copy()
        self._kernel.module.restart()

    def after(self) -> None:
        """Compare C with the right result, where it is."""
        a, b, c = self.args[:3]
        self.is_wrong |= self._problem.is_wrong(c, a, b, self._old)


def _counters(kernel: simt.AnyKernel) -> pd.DataFrame:
    """Return the sectors of the recorded ladder, and of the kernel at the same size if it asks for any."""
    recorded = limits.counters("float32")
    m, n, k = (int(recorded[size].iloc[0]) for size in ("m", "n", "k"))
    own = sectors(kernel, Matmul(m, n, k))
    return pd.concat([recorded, own], ignore_index=True) if own.value.any() else recorded
