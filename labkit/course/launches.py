"""Criteria for kernels that are no matrix product or transpose: launches with what they must give."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit import checks, simt
from labkit.course.exercise import NO_HINTS, Criterion, Hints, Unmet, listed, no_finding_in
from labkit.mismatch import compare, unwritten

LOADS = ("global", "shared")
ATOMIC = "Atomic additions load as well, one lane after the other: each lane counts as a request. "


@dataclass(frozen=True)
class Given:
    """A launch `kernel(in, out, *sizes)`: what it is given, and what must stand in `out`, whose type it has.

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
        shape, dtype = self.expected.shape, self.expected.dtype
        out = simt.empty(shape, dtype) if is_poisoned else unwritten(shape, dtype.name)
        return [*(array.copy() for array in self.inputs), out, *map(np.int32, self.sizes)]

    def verify(self, args: Sequence[Any]) -> None:
        "Raise Mismatch unless `out` among `args` is right."
        at = len(self.inputs)
        tolerance = np.abs(self.unit * self.expected)
        compare("out", args[at], self.args()[at], self.expected, tolerance)

    def __str__(self) -> str:
        return f"{self.told}, grid {_shown(self.grid)}, block {_shown(self.block)}"


def clean_in(*launches: Given, hints: Hints = NO_HINTS) -> Criterion:
    "Criterion: `kernel.check` finds nothing, also where a mistake gives right results."
    return no_finding_in("right for the right reason: kernel.check finds nothing", *launches, hints=hints)


def loads_in(most: int, text: str, given: Given, *, spaces: Sequence[str] = LOADS, hint: str) -> Criterion:
    "Criterion: warps load at most so often from these memories, all lines together, and add atomically."

    def test(kernel: simt.Kernel) -> None:
        lines = kernel.profile(given.grid, given.block, given.args(), timeout=checks.TIMEOUT).lines
        # Atomic additions read, too, one lane after the other.
        is_atomic = lines.op.isin(["atom", "red"])
        lines = lines.assign(requests=lines.requests.where(~is_atomic, lines.threads))
        loads = lines[lines.space.isin(spaces) & ((lines.op == "ld") | is_atomic)]
        if loads.requests.sum() > most:
            requests = listed(loads, (f"{count} requests" for count in loads.requests))
            raise Unmet(
                f"{given}\n{loads.requests.sum()} requests to load; the goal is at most {most}\n{requests}\n"
                f"{ATOMIC if is_atomic.any() else ''}{hint}"
            )

    return Criterion(text, test)


def _shown(size: tuple[int, ...]) -> str:
    "As the notebooks write it: 4, or (2, 3)."
    return str(size[0] if len(size) == 1 else size)
