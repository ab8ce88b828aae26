"""What a run adds to the plain code of a kernel: nothing here; counting.py and checking.py add to it."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from labkit.simt.analysis.accesses import Access
from labkit.simt.analysis.blocks import Block
from labkit.simt.code.abi import Value
from labkit.simt.code.warp import Warp
from labkit.simt.ptx import Instruction


@dataclass(frozen=True)
class Look:
    """An access of the lanes in `mask`, where `b` builds: in the warp's function, or in one that it calls.

    `values`: what it stores, with one value per lane each.
    """

    b: ir.IRBuilder
    launch: Value
    frame: Value
    access: Access
    addresses: Value
    mask: Value
    site: Value
    values: list[Value]


class Observer:
    """Called while the code of a warp is made; each method may add instructions at the current place."""

    whole_warps = False  # is fast code only for all 32 lanes together?
    stops = True  # does an invalid access end the launch?

    def attach(self, w: Warp) -> None:
        """The function has been begun; `w.b` builds in its entry block."""
        self.w = w

    def finish(self) -> None:
        """All code has been made."""

    def takes(self, instruction: Instruction, access: Access) -> bool:
        """Can this access be observed in its fast form? With a guard lanes may be missing."""
        return instruction.guard is None or not self.whole_warps

    def enter(self, block: Block, whole: bool) -> None:
        """A basic block begins, with all 32 lanes if `whole`."""

    def fast(self, instruction: Instruction, access: Access) -> None:
        """An access of all 32 lanes, in range, comes next."""

    def careful(self, look: Look) -> None:
        """An access of some lanes comes next."""

    def part(self, instruction: Instruction, taken: Value, other: Value) -> None:
        """A branch sends these lanes two ways."""

    def barrier(self, instruction: Instruction) -> None:
        """All lanes of the warp that have not ended arrive at a barrier."""

    def step(self, instruction: Instruction) -> None:
        """An instruction comes next that is no access and no branch: perhaps a fence or a shuffle."""
