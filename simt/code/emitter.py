"""What an observer adds to a kernel's code: hooks that code generation calls, which add nothing here.

This is one half of an observer; the half that runs is `simt.run.observer.Observer`.
"""

from dataclasses import dataclass

from llvmlite import ir

from simt.analysis.accesses import Access
from simt.analysis.blocks import Block
from simt.analysis.flow import Flow
from simt.code.abi import Value
from simt.code.warp import Warp
from simt.ptx import Instruction


@dataclass(frozen=True)
class ObservedAccess:
    """An access of the lanes in `mask`; `b` builds in the warp's function, or in one that it calls.

    `values` is what it stores: for each item, one value per lane. Lanes of `asked` that `mask` does not have
    give an invalid address.
    """

    b: ir.IRBuilder
    launch: Value
    frame: Value
    access: Access
    addresses: Value
    mask: Value
    site: Value
    values: list[Value]
    asked: Value


class Emitter:
    """Called while the code of a warp is made; each method may add instructions at the current position."""

    whole_warps = False  # is fast code only for all 32 lanes together?
    stops = True  # does an invalid access end the launch?
    is_checked = False  # do frames have maps of what was written, and does the driver number intervals?
    is_ordered = False  # does the launch say in which order warps run?
    flow: type[Flow] = Flow  # how lanes that have parted meet again

    def attach(self, w: Warp) -> None:
        """Begin: the function exists, and `w.b` builds in its entry block."""
        self.w = w

    def finish(self) -> None:
        """End: all code has been made."""

    def facts(self) -> object:
        """Return what runs of this code need to know of it: `Compiled.facts`, which is kept on disk."""
        return None

    def takes(self, instruction: Instruction, access: Access) -> bool:
        """Say whether this access can be observed in its fast form. With a guard, lanes may be missing."""
        return instruction.guard is None or not self.whole_warps

    def enter(self, block: Block, whole: bool) -> None:
        """Observe that a basic block begins, with all 32 lanes if `whole` (known for whole warps only)."""

    def kind(self, instruction: Instruction) -> object:
        """Return what keeps instructions from sharing code that look alike."""
        return None

    def words(self, instruction: Instruction) -> dict[str, int]:
        """Return numbers that instructions which share code do not share (`Inside.observed`)."""
        return {}

    def fast(self, instruction: Instruction, access: Access) -> None:
        """Observe that an access of all 32 lanes, in range, comes next."""

    def careful(self, look: ObservedAccess) -> None:
        """Observe that an access of some lanes comes next."""

    def after(self, instruction: Instruction, access: Access, addresses: Value, mask: Value) -> None:
        """Observe that the lanes in `mask` have made an atomic operation."""

    def alike(self, instruction: Instruction, first: Instruction) -> None:
        """Observe that an access runs the code of an earlier one, which differs only in where it goes."""

    def reads(self, instruction: Instruction) -> None:
        """Observe that an instruction of any kind reads its operands next."""

    def part(self, instruction: Instruction, taken: Value, other: Value) -> None:
        """Observe that a branch sends these lanes two ways."""

    def barrier(self, instruction: Instruction) -> None:
        """Observe that all lanes of the warp that have not ended arrive at a barrier."""

    def resume(self, instruction: Instruction) -> None:
        """Observe that the result of a barrier that votes comes next."""

    def step(self, instruction: Instruction) -> None:
        """Observe that another instruction comes next, perhaps a fence or a shuffle."""
