"""Criteria for kernels that are no matrix product or transpose: launches with what they must give."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit import checks, simt
from labkit.course.exercise import NO_HINTS, Criterion, Hints, Unmet, both_sides, case
from labkit.mismatch import Mismatch, compare, unwritten

LOADS = ("global", "shared")
ATOMIC = "Atomic additions load as well, one lane after the other: each lane counts as a request. "


@dataclass(frozen=True)
class Given:
    """A launch `kernel(in, out, *sizes)`: what it is given, and what must stand in `out`, a float32 array.

    `told` says so to the student. Each element may be off by `unit` times its size; 0: it must be equal.
    """

    told: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    inputs: tuple[np.ndarray, ...]
    sizes: tuple[int, ...]
    expected: np.ndarray
    unit: float = 0

    def args(self, is_poisoned: bool = False) -> list[Any]:
        "Fresh arguments; `out` is full of NaN, or memory that initcheck takes as never written."
        shape = self.expected.shape
        out = simt.empty(shape, np.float32) if is_poisoned else unwritten(shape, "float32")
        return [*(array.copy() for array in self.inputs), out, *map(np.int32, self.sizes)]

    def __str__(self) -> str:
        return f"{self.told}, grid {_shown(self.grid)}, block {_shown(self.block)}"


def right_in(text: str, *launches: Given, hints: Hints = NO_HINTS) -> Criterion:
    "Criterion: right results. Of wrong ones the reason is told, where `kernel.check` finds one."

    def test(kernel: simt.Kernel) -> None:
        for given in launches:
            args = given.args()
            out = args[len(given.inputs)]
            before = out.copy()
            with case(str(given), hints.usual, hints.out_of_bounds):
                kernel(given.grid, given.block, args, timeout=checks.TIMEOUT)
            try:
                compare("out", out, before, given.expected, np.abs(given.unit * given.expected))
            except Mismatch as error:
                _no_finding(kernel, given, hints, f"{error}\n")
                with case(str(given), hints.usual):
                    raise

    return Criterion(text, test)


def clean_in(*launches: Given, hints: Hints = NO_HINTS) -> Criterion:
    "Criterion: `kernel.check` finds nothing, also where a mistake gives right results."

    def test(kernel: simt.Kernel) -> None:
        for given in launches:
            _no_finding(kernel, given, hints)

    return Criterion("right for the right reason: kernel.check finds nothing", test)


def loads_in(most: int, text: str, given: Given, *, spaces: Sequence[str] = LOADS, hint: str) -> Criterion:
    "Criterion: warps load at most so often from these memories, all lines together, and add atomically."

    def test(kernel: simt.Kernel) -> None:
        lines = kernel.profile(given.grid, given.block, given.args(), timeout=checks.TIMEOUT).lines
        # Atomic additions read, too, one lane after the other.
        is_atomic = lines.op.isin(["atom", "red"])
        lines = lines.assign(requests=lines.requests.where(~is_atomic, lines.threads))
        loads = lines[lines.space.isin(spaces) & ((lines.op == "ld") | is_atomic)]
        if loads.requests.sum() > most:
            listed = "\n".join(
                f"{row.line:>5} | {row.source}    {row.requests} requests" for row in loads.itertuples()
            )
            raise Unmet(
                f"{given}\n{loads.requests.sum()} requests to load; the goal is at most {most}\n{listed}\n"
                f"{ATOMIC if is_atomic.any() else ''}{hint}"
            )

    return Criterion(text, test)


def _no_finding(kernel: simt.Kernel, given: Given, hints: Hints, seen: str = "") -> None:
    "Raise Unmet with the first of the kernel's findings, after what was `seen` to be wrong."
    args = given.args(is_poisoned=True)
    for finding in kernel.check(given.grid, given.block, args, timeout=checks.TIMEOUT)[:1]:
        told = f"{given}\n{seen}{finding.tool} finds: {both_sides(finding, kernel)}"
        raise Unmet("\n".join(filter(None, (told, hints.after(finding))))) from None


def _shown(size: tuple[int, ...]) -> str:
    "As the notebooks write it: 4, or (2, 3)."
    return str(size[0] if len(size) == 1 else size)
