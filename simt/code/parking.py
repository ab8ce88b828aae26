"""Emit control flow of a kernel with loops that may spin: lanes park, so that others of the warp run on.

The frame holds, for each place where lanes park, which lanes do. Rules, as on GPUs since Volta:

- Lanes that went round a loop `ROUNDS` times, and none of them has left it, park before the loop.
- Once lanes have parked, others wait at a barrier, `__syncwarp`, shuffle or vote for those of the warp that
  it needs; without that, lanes that parted are taken as everywhere else.
- When all lanes are parked, other warps run. Then those that spin look again.
"""

from llvmlite import ir

from simt.analysis.blocks import Block
from simt.code import abi, checked_access
from simt.code.abi import I8, I32, I64, ZERO, Value
from simt.code.control import Control
from simt.code.emitter import Emitter
from simt.code.instructions import Kind, intrinsic
from simt.code.vectors import lanes_of
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.ptx import Instruction

ROUNDS = 4
_LAST, _COUNT = 1, 2  # words beside the parked lanes: those that came last, and how often


class Parking(Control):
    """Emits control flow in which lanes park."""

    def __init__(self, warp: Warp, emitter: Emitter) -> None:
        super().__init__(warp, emitter)
        layout, b = warp.layout, warp.b
        self.spins, self.gathers, self.meetings = layout.spins, layout.gathers, layout.meetings
        self.released: dict[int, ir.Block] = {}  # by place: where its lanes go on together
        self.all_parked = warp.new_block("allparked")
        start = b.gep(warp.frame, [ir.Constant(I64, layout.parking_start)], source_etype=I8)
        with b.if_then(b.icmp_unsigned("==", warp.resume, ZERO)):
            size = ir.Constant(I64, layout.parking_bytes)
            arguments = [start, ir.Constant(I8, 0), size, ir.Constant(abi.I1, 0)]
            intrinsic(b, "memset", ir.VoidType(), *arguments, overloads=(abi.POINTER, I64))

    def _are_apart(self) -> Value:
        """Return the address of the word that says whether lanes have parked since all were together."""
        place = ir.Constant(I64, self.w.layout.parking_start)
        return self.w.b.gep(self.w.frame, [place], source_etype=I8)

    def enter(self) -> ir.SwitchInstr:
        """Go to the first block, or on from where the warp stopped."""
        w, switch = self.w, super().enter()
        resumed = w.new_block("resumeparked")
        switch.add_case(ir.Constant(I32, w.layout.parked), resumed)
        w.continue_in(resumed)
        for slot, place, type_ in w.kept(w.b, w.layout.live_when_parked):
            w.b.store(w.b.load(place, typ=type_), slot)
        places = sorted([*self.spins, *self.gathers])
        for place in places:
            w.b.store(w.b.load(w.parked_at(place), typ=I32), w.waits_at(place))
            w.b.store(ZERO, w.parked_at(place))
        for place in places:
            waiting, run, look = w.b.load(w.waits_at(place), typ=I32), w.new_block("run"), w.new_block("look")
            w.b.cbranch(w.b.icmp_unsigned("!=", waiting, ZERO), run, look)
            w.continue_in(run)
            w.b.store(waiting, w.mask)
            w.b.store(ZERO, w.waits_at(place))
            self._unless_stopped(self.starts[place], w.flow.blocks[place].code[-1])
            w.continue_in(look)
        w.b.unreachable()  # a warp stops here only if some of its lanes spin
        return switch

    def end(self, block: Block) -> None:
        """Emit the end of a block."""
        last = block.last
        if last is not None and last.spins:
            self._spin(block)
        elif last is not None and last.gathers:
            self._gather(block, last)
        elif last is not None and last.is_barrier and block.may_park:
            self._meet(last)
        else:
            super().end(block)

    def _spin(self, block: Block) -> None:
        """Begin a round of a loop; park if all lanes have gone round often enough."""
        w, b, mask = self.w, self.w.b, self.w.active()
        last, count = (w.parked_at(w.index, word) for word in (_LAST, _COUNT))
        same = b.icmp_unsigned("==", b.load(last, typ=I32), mask)
        rounds = b.select(same, b.add(b.load(count, typ=I32), ir.Constant(I32, 1)), ZERO)
        stuck, going = w.new_block("stuck"), w.new_block("going")
        is_stuck = b.icmp_unsigned(">=", rounds, ir.Constant(I32, ROUNDS))
        b.store(mask, last)
        b.store(b.select(is_stuck, ZERO, rounds), count)
        b.cbranch(is_stuck, stuck, going)
        w.continue_in(stuck)
        self._park()
        w.continue_in(going)
        self._go(block.successors)

    def _gather(self, block: Block, gather: Instruction) -> None:
        """Wait for the lanes that the next instruction needs, if lanes are apart."""
        if not block.may_park:
            self._go(block.successors)
            return
        w = self.w
        self._join_parked()
        active, b = w.active(gather), w.b
        masks = w.value(gather.operands[0], Kind("b32"), WARP)
        masks = b.select(lanes_of(b, active), masks, ir.Constant(masks.type, None))
        needed = intrinsic(b, "vector.reduce.or", I32, masks, overloads=(masks.type,))
        elsewhere = self._elsewhere()
        missing = b.icmp_unsigned("!=", b.and_(needed, elsewhere), ZERO)
        self._park_if(b.and_(missing, b.icmp_unsigned("!=", b.load(self._are_apart(), typ=I32), ZERO)))
        with w.b.if_then(w.b.icmp_unsigned("==", elsewhere, ZERO)):
            w.b.store(ZERO, self._are_apart())
        self._pass_together()
        self._go(block.successors)

    def _meet(self, barrier: Instruction) -> None:
        """Wait at the block's barrier for the warp's other lanes, if lanes are apart."""
        w = self.w
        self._join_parked()
        b, elsewhere = w.b, self._elsewhere()
        others, alone, parted = (w.new_block(name) for name in ("others", "alone", "parted"))
        b.cbranch(b.icmp_unsigned("!=", elsewhere, ZERO), others, alone)
        w.continue_in(others)
        w.b.cbranch(
            w.b.icmp_unsigned("!=", w.b.load(self._are_apart(), typ=I32), ZERO),
            (waits := w.new_block("waits")),
            parted,
        )
        w.continue_in(parted)
        self._parted(barrier, elsewhere)
        w.continue_in(waits)
        self._park()
        w.continue_in(alone)
        self._pass_together()
        w.b.store(ZERO, self._are_apart())
        self.emitter.barrier(barrier)
        self._arrive(barrier)

    def _parted(self, barrier: Instruction, elsewhere: Value) -> None:
        checked_access.report(
            self.w.b, self.w.launch, self.w.frame, abi.PARTED_AT_BARRIER, self.w.site(barrier), elsewhere
        )
        self.w.b.branch(self.stopped)

    def _elsewhere(self) -> Value:
        """Return the lanes that wait or park at other places."""
        return self.w.b.and_(self.w.elsewhere(), self.w.b.not_(self.w.active()))

    def _join_parked(self) -> None:
        """Take along the lanes that are parked here."""
        w, parked = self.w, self.w.parked_at(self.w.index)
        w.b.store(w.b.or_(w.active(), w.b.load(parked, typ=I32)), w.mask)
        w.b.store(ZERO, parked)

    def _pass_together(self) -> None:
        """Go on, also when the lanes that are parked here need wait no longer."""
        w = self.w
        released, together = w.new_block("released"), w.new_block("together")
        w.b.branch(together)
        self.released[w.index] = released
        w.continue_in(released)
        w.b.store(ZERO, w.mask)
        self._join_parked()
        w.b.branch(together)
        w.continue_in(together)

    def _park_if(self, condition: Value) -> None:
        w = self.w
        park, passes = w.new_block("park"), w.new_block("passes")
        w.b.cbranch(condition, park, passes)
        w.continue_in(park)
        self._park()
        w.continue_in(passes)

    def _park(self) -> None:
        """Park the active lanes, and run others."""
        w, b, parked = self.w, self.w.b, self.w.parked_at(self.w.index)
        b.store(b.or_(b.load(parked, typ=I32), w.active()), parked)
        b.store(ir.Constant(I32, 1), self._are_apart())
        self._next([], may_be_last=True)

    def _nobody_waits(self) -> None:
        self.w.b.branch(self.all_parked)

    def finish(self) -> None:
        """Emit what a warp does when none of its lanes can run: it gives way, or those that wait have met."""
        w = self.w
        w.continue_in(self.all_parked)
        spinning = self._parked(self.spins)
        give_way, settle = w.new_block("giveway"), w.new_block("settle")
        w.b.cbranch(w.b.icmp_unsigned("!=", spinning, ZERO), give_way, settle)
        w.continue_in(give_way)
        for slot, place, type_ in w.kept(w.b, w.layout.live_when_parked):
            w.b.store(w.b.load(slot, typ=type_), place)
        w.b.ret(ir.Constant(I32, w.layout.parked))
        w.continue_in(settle)
        for place in sorted(self.gathers):
            self._if_parked(place)
            w.b.branch(self.released[place])
            w.continue_in(self.otherwise)
        for place in self.meetings:
            self._if_parked(place)
            others = self._parked([each for each in self.meetings if each != place])
            parted = w.new_block("parted")
            w.b.cbranch(w.b.icmp_unsigned("==", others, ZERO), self.released[place], parted)
            w.continue_in(parted)
            self._parted(w.flow.blocks[place].code[-1], others)
            w.continue_in(self.otherwise)
        w.b.ret(ir.Constant(I32, abi.ENDED))

    def _parked(self, places: list[int]) -> Value:
        lanes: Value = ZERO
        for place in places:
            lanes = self.w.b.or_(lanes, self.w.b.load(self.w.parked_at(place), typ=I32))
        return lanes

    def _if_parked(self, place: int) -> None:
        """Build on where lanes are parked at a place; `otherwise` is where they are not."""
        w, there, self.otherwise = self.w, self.w.new_block("there"), self.w.new_block("otherwise")
        w.b.cbranch(w.b.icmp_unsigned("!=", self._parked([place]), ZERO), there, self.otherwise)
        w.continue_in(there)
