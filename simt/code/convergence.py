"""Emit control flow as Volta and later GPUs have it: groups of lanes that meet at `bsync` (see analysis).

A group that parts from another goes on a stack, and runs when the one before it has ended or waits. The
warp's frame holds, for each meeting place, the lanes that opened its region, and the lanes that have ended.
"""

from llvmlite import ir

from simt.analysis.blocks import Block
from simt.analysis.convergence import Groups, meeting_place
from simt.code import abi, checked_access
from simt.code.abi import I1, I8, I32, ZERO, Value
from simt.code.control import Control
from simt.code.emitter import Emitter
from simt.code.instructions import Kind, intrinsic
from simt.code.vectors import mask_of
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.ptx import Instruction


class Convergence(Control):
    """Emits control flow for groups of lanes."""

    def __init__(self, warp: Warp, emitter: Emitter) -> None:
        super().__init__(warp, emitter)
        flow = warp.flow
        assert isinstance(flow, Groups)
        self.flow = flow
        self.meetings = sorted(flow.meetings())
        b = warp.b
        barriers = [i for i, block in enumerate(flow.blocks) if block.last and block.last.is_barrier]
        self.arrived = {index: b.alloca(I32) for index in barriers if flow.blocks[index].may_wait}
        for slot in self.arrived.values():
            b.store(ZERO, slot)
        self.entry = ir.LiteralStructType([I32, I32])  # block, lanes
        self.stack = b.alloca(ir.ArrayType(self.entry, WARP + 1))
        self.depth = b.alloca(I32)
        b.store(ZERO, self.depth)
        with b.if_then(b.icmp_unsigned("==", warp.resume, ZERO)):
            for number in range(len(self.meetings) + 1):
                b.store(ZERO, self._region(number))
        self.at_barrier: dict[int, ir.Block] = {}
        self.suspend = warp.new_block("suspend")

    def _region(self, number: int, b: ir.IRBuilder | None = None) -> Value:
        """Return the address of the lanes of a region; after the last, of those that have ended."""
        place = ir.Constant(I32, self.w.layout.regions + 4 * number)
        return (b or self.w.b).gep(self.w.frame, [place], source_etype=I8)

    def _ended(self) -> Value:
        return self._region(len(self.meetings))

    def instruction(self, instruction: Instruction) -> bool:
        """Emit an instruction that opens or leaves a region; return whether it is one."""
        if not instruction.family.is_region:
            return False
        w, name = self.w, meeting_place(instruction)
        block = self.flow.blocks_of(name)
        if block in self.meetings:
            slot, lanes = self._region(self.meetings.index(block)), w.active(instruction)
            if instruction.parts[0] == "break":
                lanes = w.b.and_(w.b.load(slot, typ=I32), w.b.not_(lanes))
            elif len(instruction.operands) > 1:  # a mask says who meets
                masks = w.value(instruction.operands[1], Kind("u32"), WARP)
                lane = intrinsic(w.b, "cttz", I32, lanes, ir.Constant(I1, 1))
                lanes = w.b.extract_element(masks, lane)
            w.b.store(lanes, slot)
        return True

    def end(self, block: Block) -> None:
        """Emit the end of a block."""
        last = block.last
        if last is not None and last.parts[0] == "bsync":
            meeting = self.flow.blocks_of(meeting_place(last))
            self._wait_at(meeting)
        elif last is not None and last.is_barrier:
            if block.may_wait:
                arrived = self.arrived[self.w.index]
                b = self.w.b
                b.store(b.or_(b.load(arrived, typ=I32), self.w.active()), arrived)
                b.branch(self.suspend)
                barrier = self.w.new_block("barrier")
                self.at_barrier[self.w.index] = barrier
                self.w.continue_in(barrier)
            self._arrive(last)
        else:
            super().end(block)

    def _conditional(self, block: Block, last: Instruction) -> None:
        w, b = self.w, self.w.b
        if w.index not in w.flow.divergent:
            super()._conditional(block, last)
            return
        predicate = w.guard(last)
        mask, taken_mask = w.active(), mask_of(b, predicate)
        taken, other = b.and_(mask, taken_mask), b.and_(mask, b.not_(taken_mask))
        going, staying, both = (w.new_block(name) for name in ("going", "staying", "both"))
        if block.end == "leave":
            slot = self._ended()
            b.store(b.or_(b.load(slot, typ=I32), taken), slot)
            b.cbranch(b.icmp_unsigned("==", other, ZERO), going, staying)
            w.continue_in(going)
            w.b.branch(self.suspend)
            w.continue_in(staying)
            w.b.store(other, w.mask)
            self._jump(block.successors[-1])
            w.continue_in(both)
            w.b.unreachable()
            return
        target, following = block.successors[0], block.successors[-1]
        look = w.new_block("look")
        b.cbranch(b.icmp_unsigned("==", other, ZERO), going, look)
        w.continue_in(look)
        w.b.cbranch(w.b.icmp_unsigned("==", taken, ZERO), staying, both)
        w.continue_in(going)
        self._jump(target)
        w.continue_in(staying)
        self._jump(following)
        w.continue_in(both)
        self._push(following, other)
        w.b.store(taken, w.mask)
        self._jump(target)

    def _go(self, targets: list[int]) -> None:
        if targets:
            self._jump(targets[0])
            return
        b, slot = self.w.b, self._ended()
        b.store(b.or_(b.load(slot, typ=I32), self.w.active()), slot)
        b.branch(self.suspend)

    def _push(self, block: int, lanes: Value) -> None:
        b = self.w.b
        depth = b.load(self.depth, typ=I32)
        for number, value in enumerate((ir.Constant(I32, block), lanes)):
            b.store(value, self._entry(b, depth, number))
        b.store(b.add(depth, ir.Constant(I32, 1)), self.depth)

    def _entry(self, b: ir.IRBuilder, depth: Value, number: int) -> Value:
        return b.gep(self.stack, [ZERO, depth, ir.Constant(I32, number)])

    def _wait_at(self, place: int) -> None:
        """Have the active lanes wait before a block; another group runs."""
        b, slot = self.w.b, self.w.waits_at(place)
        b.store(b.or_(b.load(slot, typ=I32), self.w.active()), slot)
        b.branch(self.suspend)

    def finish(self) -> None:
        """Emit the choice of the group that runs next, after all blocks are there."""
        w = self.w
        w.continue_in(self.suspend)
        for number, meeting in enumerate(self.meetings):
            waiting = w.b.load(w.waits_at(meeting), typ=I32)
            region, ended = (w.b.load(place, typ=I32) for place in (self._region(number), self._ended()))
            missing = w.b.and_(region, w.b.not_(w.b.or_(waiting, ended)))
            met = w.b.and_(w.b.icmp_unsigned("!=", waiting, ZERO), w.b.icmp_unsigned("==", missing, ZERO))
            self._resume_if(met, meeting, self.starts[meeting])
        pop, empty = w.new_block("pop"), w.new_block("empty")
        w.b.cbranch(w.b.icmp_unsigned("==", w.b.load(self.depth, typ=I32), ZERO), empty, pop)
        w.continue_in(pop)
        running = w.new_block("running")
        self._unless_stopped(running, w.flow.kernel.code[0])
        w.continue_in(running)
        depth = w.b.sub(w.b.load(self.depth, typ=I32), ir.Constant(I32, 1))
        w.b.store(depth, self.depth)
        block, lanes = (w.b.load(self._entry(w.b, depth, number), typ=I32) for number in (0, 1))
        w.b.store(lanes, w.mask)
        parting = {w.flow.blocks[i].successors[-1] for i in w.flow.divergent if w.flow.blocks[i].successors}
        lost = w.new_block("lost")
        switch = w.b.switch(block, lost)
        for each in sorted(parting):
            switch.add_case(ir.Constant(I32, each), self.starts[each])
        w.continue_in(lost)
        w.b.unreachable()
        w.continue_in(empty)
        for meeting in self.meetings:  # whoever is missing will not come
            waiting = w.b.load(w.waits_at(meeting), typ=I32)
            self._resume_if(w.b.icmp_unsigned("!=", waiting, ZERO), meeting, self.starts[meeting])
        together = [w.b.load(self.arrived[each], typ=I32) for each in self.at_barrier]
        for (barrier, block_), waiting in zip(self.at_barrier.items(), together, strict=True):
            here = w.b.icmp_unsigned("!=", waiting, ZERO)
            elsewhere: Value = ZERO
            for other in together:
                if other is not waiting:
                    elsewhere = w.b.or_(elsewhere, other)
            parted, meet, following = (w.new_block(name) for name in ("parted", "meet", "following"))
            w.b.cbranch(here, meet, following)
            w.continue_in(meet)
            meet_all = w.new_block("meetall")
            w.b.cbranch(w.b.icmp_unsigned("==", elsewhere, ZERO), meet_all, parted)
            w.continue_in(parted)
            last = w.flow.blocks[barrier].last
            checked_access.report(w.b, w.launch, w.frame, abi.PARTED_AT_BARRIER, w.site(last), elsewhere)
            w.b.branch(self.stopped)
            w.continue_in(meet_all)
            w.b.store(waiting, w.mask)
            w.b.store(ZERO, self.arrived[barrier])
            w.b.branch(block_)
            w.continue_in(following)
        w.b.ret(ir.Constant(I32, abi.ENDED))

    def _resume_if(self, condition: Value, place: int, block: ir.Block) -> None:
        w = self.w
        run, following = w.new_block("run"), w.new_block("following")
        w.b.cbranch(condition, run, following)
        w.continue_in(run)
        w.b.store(w.b.load(w.waits_at(place), typ=I32), w.mask)
        w.b.store(ZERO, w.waits_at(place))
        w.b.branch(block)
        w.continue_in(following)
