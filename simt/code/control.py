"""Emit the end of a basic block: which lanes go where, what runs next, and barriers.

The scheduling rule is in flow.py. A branch becomes a plain branch where it parts no warp and nobody waits.
"""

from llvmlite import ir

from simt.analysis.blocks import Block
from simt.analysis.lanes import UNIFORM
from simt.code import abi, checked_access
from simt.code.abi import I32, ZERO, Frame, Launch, Value, field, load_field, load_stop
from simt.code.emitter import Emitter
from simt.code.vectors import mask_of
from simt.code.warp import Warp
from simt.ptx import Instruction


class Control:
    """Emits control flow. `starts` are the LLVM blocks of the basic blocks; `stopped` ends a launch."""

    def __init__(self, warp: Warp, emitter: Emitter) -> None:
        self.w, self.emitter = warp, emitter
        self.starts = [warp.new_block(f"block{i}") for i in range(len(warp.flow.blocks))]
        self.stopped = warp.new_block("stopped")
        ir.IRBuilder(self.stopped).ret(ir.Constant(I32, abi.STOPPED))

    def instruction(self, instruction: Instruction) -> bool:
        """Emit an instruction that only says where lanes meet; return whether it is one."""
        return False

    def finish(self) -> None:
        """Emit what all blocks share, after the last of them."""

    def enter(self) -> ir.SwitchInstr:
        """Go to the first block, or to the one after the barrier that the warp waited at."""
        w = self.w
        switch = w.b.switch(w.resume, self.starts[0])
        for number, index in enumerate(w.layout.barriers, 1):
            block = w.new_block(f"resume{number}")
            switch.add_case(ir.Constant(I32, number), block)
            b, following = ir.IRBuilder(block), w.flow.blocks[index].successors[0]
            b.store(load_field(b, Frame, w.frame, "mask"), w.mask)
            for slot, place, type_ in w.saved(b, index):
                b.store(b.load(place, typ=type_), slot)
            w.continue_in(block)
            w.index = following
            self._take_vote(w.flow.blocks[index].code[-1])
            w.index = index
            self._jump(following)  # the barrier may be the last thing in a loop
        return switch

    def end(self, block: Block) -> None:
        """Emit the end of `block`, which is number `w.index`."""
        last = block.last
        if last is not None and last.gives_way:
            self._stop()
        elif last is not None and last.is_barrier:
            self._barrier(block, last)
        elif last is not None and block.end == "trap":
            w = self.w
            checked_access.report(w.b, w.launch, w.frame, abi.TRAPPED, w.site(last), w.active())
            w.b.branch(self.stopped)
        elif last is not None and last.guard and block.end in ("branch", "leave"):
            self._conditional(block, last)
        else:
            self._go(block.successors)

    def _conditional(self, block: Block, last: Instruction) -> None:
        """Emit a guarded branch or return; a return has no target."""
        w, predicate = self.w, self.w.guard(last)
        target = block.successors[:1] if block.end == "branch" else []
        other = block.successors[-1:]
        if w.index not in w.flow.divergent:
            taken, not_taken = w.new_block("taken"), w.new_block("nottaken")
            w.b.cbranch(predicate, taken, not_taken)
            for following, targets in ((taken, target), (not_taken, other)):
                w.continue_in(following)
                self._go(targets)
            return
        mask, taken_mask = w.active(), mask_of(w.b, predicate)
        taken, not_taken = w.b.and_(mask, taken_mask), w.b.and_(mask, w.b.not_(taken_mask))
        self.emitter.part(last, taken, not_taken)
        self._add_waiting(other, not_taken)
        self._add_waiting(target, taken)
        self._next([*target, *other], may_be_last=not target)

    def _add_waiting(self, targets: list[int], mask: Value) -> None:
        b = self.w.b
        for target in targets:
            slot = self.w.waits_at(target)
            b.store(b.or_(b.load(slot, typ=I32), mask), slot)

    def _go(self, targets: list[int]) -> None:
        """Send all active lanes to one block, or out of the kernel."""
        w = self.w
        if not targets:
            self._next([], may_be_last=True)
        elif (
            w.flow.next_blocks(w.index, targets) == targets
            and targets[0] not in w.flow.blocks[w.index].may_wait
        ):
            self._jump(targets[0])
        else:
            self._add_waiting(targets, w.active())
            self._next(targets, may_be_last=False)

    def _next(self, targets: list[int], may_be_last: bool) -> None:
        """Run the lowest block with waiting lanes. `may_be_last`: if there is none, the warp has ended."""
        w, candidates = self.w, self.w.flow.next_blocks(self.w.index, targets, may_be_last)
        for candidate in candidates:
            certain = candidate == candidates[-1] and not may_be_last
            mask, run, look = w.b.load(w.waits_at(candidate), typ=I32), w.new_block("run"), None
            if certain:
                w.b.branch(run)
            else:
                look = w.new_block("look")
                w.b.cbranch(w.b.icmp_unsigned("!=", mask, ZERO), run, look)
            w.continue_in(run)
            w.b.store(mask, w.mask)
            w.b.store(ZERO, w.waits_at(candidate))
            self._jump(candidate)
            if look is None:
                return
            w.continue_in(look)
        self._nobody_waits()

    def _nobody_waits(self) -> None:
        """End the warp: none of its lanes waits for its turn."""
        self.w.b.ret(ir.Constant(I32, abi.ENDED))

    def _jump(self, target: int) -> None:
        """Branch; a jump back first checks whether the launch has been stopped."""
        w = self.w
        if target > w.index:
            w.b.branch(self.starts[target])
            return
        self._unless_stopped(
            self.starts[target], w.flow.blocks[w.index].last or w.flow.blocks[target].code[0]
        )

    def _unless_stopped(self, following: ir.Block, at: Instruction) -> None:
        """Go on, unless the launch has been stopped: then note where."""
        w = self.w
        stop = load_stop(w.b, w.launch)
        note = w.new_block("note")
        w.b.cbranch(w.b.icmp_unsigned("==", stop, ZERO), following, note).set_weights([1000, 1])
        w.continue_in(note)
        site = w.site(at)
        w.b.store(site, field(w.b, Launch, w.launch, "stopped_at"))
        for axis in "xyz":
            place = field(w.b, Launch, w.launch, f"stopped_{axis}")
            w.b.store(load_field(w.b, Frame, w.frame, axis), place)
        w.b.branch(self.stopped)

    def _barrier(self, block: Block, barrier: Instruction) -> None:
        """Save what the next block needs and wait; it is a mistake if lanes of this warp are elsewhere."""
        w, b = self.w, self.w.b
        if block.may_wait:
            elsewhere = w.elsewhere()
            parted, together = w.new_block("parted"), w.new_block("together")
            b.cbranch(b.icmp_unsigned("==", elsewhere, ZERO), together, parted)
            b = ir.IRBuilder(parted)
            checked_access.report(b, w.launch, w.frame, abi.PARTED_AT_BARRIER, w.site(barrier), elsewhere)
            b.branch(self.stopped)
            w.continue_in(together)
        self.emitter.barrier(barrier)
        self._arrive(barrier)

    def _arrive(self, barrier: Instruction) -> None:
        """Stop at a barrier, after the vote that it takes."""
        w, b = self.w, self.w.b
        if barrier.votes:
            b.store(w.ballot(barrier.operands[-1], barrier), field(b, Frame, w.frame, "votes"))
        self._stop()

    def _stop(self) -> None:
        """Save what the warp needs when it goes on, and return to the driver."""
        w, b = self.w, self.w.b
        b.store(w.active(), field(b, Frame, w.frame, "mask"))
        for slot, place, type_ in w.saved(b, w.index):
            b.store(b.load(slot, typ=type_), place)
        b.ret(ir.Constant(I32, w.layout.barriers.index(w.index) + 1))

    def _take_vote(self, barrier: Instruction) -> None:
        """Emit the result of __syncthreads_count, _and or _or, after the driver has summed the votes."""
        w, b = self.w, self.w.b
        register = barrier.results
        if not barrier.votes or not register or register[0].name not in w.types:
            return
        self.emitter.resume(barrier)
        voted, voters = (load_field(b, Frame, w.frame, name) for name in ("voted", "voters"))
        if "popc" in barrier.parts:
            value: Value = voted
        elif "and" in barrier.parts:
            value = b.icmp_unsigned("==", voted, voters)
        else:
            value = b.icmp_unsigned("!=", voted, ZERO)
        w.write(register[0], value, UNIFORM)
