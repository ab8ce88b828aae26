"""How often a launch issues each instruction of a kernel's machine code, as Nsight Compute counts it.

The machine code itself runs in the simulator, as far as it decides (program.py). An instruction is issued
once per visit of its basic block by lanes of a warp, whatever its predicate says.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from simt.code.abi import Counter
from simt.counters.counts import Counts, Totals
from simt.counters.traffic import ENOUGH, SITE_SHIFT, WHAT
from simt.launch.arguments import Range
from simt.sass.control_slice import NoCounts
from simt.sass.listing import Sass
from simt.sass.opcodes import PIPES, accesses, kind, known, pipe, width
from simt.sass.program import Lifted

if TYPE_CHECKING:
    import pandas as pd

INSTRUCTIONS = "smsp__inst_executed.sum"
DISTINCT, STRIDE = ([entry[0] for entry in Counter._fields_].index(name) for name in ("distinct", "stride"))
PIPE = "sm__inst_executed_pipe_{}.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_ACCESSES = {"ld": "load", "st": "store"}
# Bytes of arrays that a profile copies where their contents may decide at PTX level, and elsewhere: in
# machine code a register may seem to hold a loaded value where a guard makes sure that it does not.
MOST_KEPT, FEW_KEPT = 1 << 30, 1 << 26


@dataclass(frozen=True)
class MemorySnapshot:
    """The memory of a launch as it was when it began; `contents` is None where none was kept."""

    ranges: Sequence[Range]
    contents: Sequence[np.ndarray] | None

    @classmethod
    def of(cls, ranges: Sequence[Range], decides: bool) -> MemorySnapshot:
        """Copy the memory, unless it is too much: more is copied where its contents are known to decide."""
        if sum(each.size for each in ranges) > (MOST_KEPT if decides else FEW_KEPT):
            return cls(ranges, None)
        return cls(ranges, [_memory(each).copy() for each in ranges])

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Give the memory its first contents for a while; then what it holds now."""
        if self.contents is None:
            raise NoCounts("the contents of its arrays decide, and these were too large to keep")
        memory = [_memory(each) for each in self.ranges]
        now = [each.copy() for each in memory]
        _write(memory, self.contents)
        try:
            yield
        finally:
            _write(memory, now)


def _write(memory: Sequence[np.ndarray], contents: Sequence[np.ndarray]) -> None:
    """Give memory these contents; what holds them already is left alone, as it may be read-only."""
    for each, wanted in zip(memory, contents, strict=True):
        if not np.array_equal(each, wanted):
            each[:] = wanted


def _memory(place: Range) -> np.ndarray:
    return (
        np.ctypeslib.as_array((ctypes.c_uint8 * place.size).from_address(place.start or 1))
        if place.size
        else (np.empty(0, np.uint8))
    )


@dataclass(frozen=True)
class Counted:
    """The counts of a run, one entry per instruction of machine code; wavefronts are 0 for other accesses."""

    issued: np.ndarray
    lanes: np.ndarray
    requests: np.ndarray
    wavefronts: np.ndarray


def issues_of(decides: Lifted, counts: Counts) -> Counted:
    """Return the counts of each instruction of machine code from a run of what decides."""
    visited = decides.block_of >= 0
    at = np.where(visited, decides.block_of, 0)
    requests, wavefronts = np.zeros((2, len(at)), np.int64)
    for number, position in decides.accesses.items():
        requests[number], wavefronts[number] = counts.requests[position], counts.conflicts[position]
    return Counted(
        issued=np.where(visited, counts.executed[at], 0),
        lanes=np.where(visited, counts.active[at], 0),
        requests=requests,
        wavefronts=wavefronts,
    )


@dataclass(frozen=True)
class Traffic:
    """What the blocks of a sample issued, and where they accessed global memory.

    One entry per instruction of machine code: `issued` and `lanes`; of accesses `requests`, and `wavefronts`,
    the cycles that the banks take; of those to global memory `sectors` and `lines` of 128 bytes. `meeting`:
    of atomic operations and accesses to global memory, how many lanes go to the address that most of a
    request's lanes go to, summed.
    `touches` has a row per request and line (abi.Touch), save for those beyond the room for them; unless the
    run went in order, some that are like earlier ones are left out. With them they are `recorded`.
    """

    sass: Sass
    issued: np.ndarray
    lanes: np.ndarray
    requests: np.ndarray
    wavefronts: np.ndarray
    sectors: np.ndarray
    lines: np.ndarray
    meeting: np.ndarray
    touches: np.ndarray
    recorded: int
    shared_bytes: int
    ranges: Sequence[Range]


def traffic_of(
    sass: Sass, decides: Lifted, totals: Totals, shared_bytes: int, ranges: Sequence[Range]
) -> Traffic:
    """Return what a run recorded, by instruction of machine code."""
    counts = totals.counts()
    counted = issues_of(decides, counts)
    counted = replace(counted, wavefronts=counted.wavefronts.astype(float))
    sectors, lines, meeting = np.zeros((3, len(counted.issued)))
    number_of = np.full(len(decides.kernel.code), -1)
    for number, position in decides.accesses.items():
        number_of[position] = number
        is_shared = "shared" in decides.kernel.code[position].parts
        rest = int(totals.counters[position, STRIDE])
        whole = counted.requests[number]
        unseen = whole - rest if is_shared and rest >= ENOUGH else 0 if is_shared else rest
        scale = whole / max(1, whole - unseen)
        counted.wavefronts[number] *= scale
        distinct, met = totals.counters[position, DISTINCT], counts.divergent[position]
        sectors[number] = counts.sectors[position] * scale
        lines[number], meeting[number] = (0, distinct) if is_shared else (distinct * scale, met * scale)
    assert totals.touches is not None
    touches = totals.touches
    what = touches[:, WHAT]
    touches[:, WHAT] = number_of[what >> SITE_SHIFT] << SITE_SHIFT | what & (1 << SITE_SHIFT) - 1
    return Traffic(
        sass,
        **vars(counted),
        sectors=sectors,
        lines=lines,
        meeting=meeting,
        touches=touches,
        recorded=totals.recorded,
        shared_bytes=shared_bytes,
        ranges=ranges,
    )


class Issued:
    """The issues of a kernel's machine code in one launch; `sass` is the code.

    Counts are worked out when first needed. They raise NoCounts, which says why, where what decides is not
    known to the simulator or depends on time.
    """

    def __init__(self, sass: Sass, count: Callable[[], Counted], scale: float) -> None:
        self.sass, self._count, self._scale = sass, count, scale

    @cached_property
    def counts(self) -> Counted:
        """Return the counts of the blocks that ran, scaled to the grid."""
        counted = self._count()
        return Counted(*(np.rint(each * self._scale).astype(np.int64) for each in vars(counted).values()))

    @cached_property
    def table(self) -> pd.DataFrame:
        """Return `Sass.table` with how often each instruction was issued, and with how many lanes in all."""
        counts = self.counts
        return self.sass.table.assign(issued=counts.issued, lanes=counts.lanes, wavefronts=counts.wavefronts)

    @cached_property
    def kinds(self) -> pd.Series[int]:
        """Return the instructions that warps issued, by kind, most first."""
        import pandas as pd

        kinds = [kind(each.opcode) for each in self.sass.instructions]
        summed = pd.Series(self.counts.issued).groupby(kinds).sum()
        return summed[summed > 0].sort_values(ascending=False).rename("issued").rename_axis("kind")

    @cached_property
    def lines(self) -> pd.Series[int]:
        """Return the instructions that warps issued, by line of the source (0: none)."""
        import pandas as pd

        lines = [each.line for each in self.sass.instructions]
        return pd.Series(self.counts.issued).groupby(lines).sum().rename("issued").rename_axis("line")

    @property
    def metrics(self) -> Mapping[str, int]:
        """Return Nsight Compute's figures. Raises NoCounts."""
        counts, instructions = self.counts, self.sass.instructions
        found = {INSTRUCTIONS: int(counts.issued.sum())}
        if self.sass.code.arch == "sm_90":
            pipes = [pipe(each) for each in instructions]
            for one in PIPES:
                on_it = [i for i, its in enumerate(pipes) if its == one]
                found[PIPE.format(one)] = int(counts.issued[on_it].sum())
        for op, access in _ACCESSES.items():
            at = np.isin(self.sass.code.opcodes, accesses(access, "shared"))
            if WAVEFRONTS.format(op) not in self.absent:
                found[WAVEFRONTS.format(op)] = int(counts.wavefronts[at].sum())
        return found

    @cached_property
    def absent(self) -> Mapping[str, str]:
        """Return the figures that `metrics` leaves out, and why. Raises NoCounts."""
        why = "which pipe an instruction goes to is known for Hopper (H100, H200, GH200) alone"
        pipes = dict.fromkeys(map(PIPE.format, PIPES), why) if self.sass.code.arch != "sm_90" else {}
        if not any(known(each.opcode).space == "shared" for each in self.sass.instructions):
            return pipes
        reason = "{} accesses memory by generic addresses, which may be of shared memory"
        return pipes | {
            WAVEFRONTS.format(op): reason.format(name)
            for op, access in _ACCESSES.items()
            for name in accesses(access, "generic")
            if self.counts.issued[self.sass.code.opcodes == name].any()
        }

    def __repr__(self) -> str:
        return f"{self.sass.summary}\n{self.kinds.to_string()}"


def requests_by_width(issued: Issued) -> pd.Series[int]:
    """Return the requests of warps to shared memory, by opcode and width in bits: `LDS.128`."""
    import pandas as pd

    names = [f"{each.opcode.split('.')[0]}.{width(each.opcode)}" for each in issued.sass.instructions]
    summed = pd.Series(issued.counts.requests).groupby(names).sum()
    return summed[summed > 0]
