"""A traced run notes each visit of a basic block: which block, which warp, and which of its lanes run it."""

from llvmlite import ir

from simt.analysis.blocks import Block
from simt.code import abi
from simt.code.abi import I32, I64, Frame, Visit, field, load_field
from simt.code.instructions import intrinsic
from simt.code.observe import Observer
from simt.code.warp import Warp
from simt.counters.sectors import ONE

MOST = 10_000  # visits of a launch that are kept; all are counted


class Tracing(Observer):
    """Fills the frame's `visits` with Visit records; the first one counts them, as its `block`."""

    whole_warps = True

    def attach(self, w: Warp) -> None:
        """Take the warp whose code is being written, and find where its visits are kept."""
        super().attach(w)
        self.visits = load_field(w.b, Frame, w.frame, "visits")

    def enter(self, block: Block, whole: bool) -> None:
        """Write down that a warp enters a block, and with which lanes."""
        w, b = self.w, self.w.b
        count = field(b, Visit, self.visits, "block")
        number = b.add(b.load(count, typ=I64), ONE)
        b.store(number, count)
        place = intrinsic(b, "umin", I64, number, ir.Constant(I64, MOST))
        visit = b.gep(self.visits, [place], source_etype=abi.TYPES[Visit])
        values = ir.Constant(I32, w.index), w.active(), load_field(b, Frame, w.frame, "warp")
        for name, value in zip(("block", "lanes", "warp"), values, strict=True):
            b.store(b.zext(value, I64), field(b, Visit, visit, name))
