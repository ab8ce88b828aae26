"""A checked run's look at all lanes of an access together, wherever their addresses are.

Most such accesses go to neighbouring elements, with lanes missing: those of a tree that adds up a block, or
of a halo. Their shadow is read and written as masked vectors. The shadow of scattered lanes is gathered, as
their elements are. What may be a mistake is left to `track`, which knows more and takes lanes one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from llvmlite import ir

from simt.code.abi import I1, I32, I64, POINTER, ZERO, Frame, Launch, Range, Value, load_field
from simt.code.checked_access import LANES_64, each_range, entry_slot, shared_bounds
from simt.code.instructions import constant, intrinsic
from simt.code.vectors import all_true, broadcast, numbers, shuffled
from simt.common.limits import WARP
from simt.sanitizer import shadow
from simt.sanitizer.shadow import Present, plane_bytes_of, spread
from simt.sanitizer.track import TRACK

MOST_WORDS = 4  # granules of one lane's access


@dataclass(frozen=True)
class LookKind:
    """Loads or stores of `size` bytes each, where a word of shadow stands for `granule` bytes.

    The code is the same in all kernels, so it is compiled once, and a kernel calls it through `Launch.looks`.
    """

    space: str
    size: int
    granule: int
    is_store: bool

    @property
    def is_known(self) -> bool:
        """Say whether there is a look of this kind."""
        return self.space in ("shared", "global") and self.granule <= self.size <= MOST_WORDS * self.granule


# (track, launch, frame, addresses, mask, site, values)
LOOK = ir.FunctionType(ir.VoidType(), [I64, POINTER, POINTER, LANES_64, I32, I32, LANES_64])


def look_module(kind: LookKind) -> ir.Module:
    """Return a module whose function `run` looks at an access, notes it, and leaves mistakes to `track`."""
    module = ir.Module(name="look")
    _WarpLook(ir.Function(module, LOOK, "run"), kind).emit()
    return module


class _WarpLook:
    """Builds a look."""

    def __init__(self, function: ir.Function, kind: LookKind) -> None:
        self.track, self.launch, self.frame, self.addresses, self.mask, self.site, self.values = function.args
        self.function, self.space, self.is_store = function, kind.space, kind.is_store
        self.size, self.granule = kind.size, kind.granule
        self.words, self.shift = kind.size // kind.granule, kind.granule.bit_length() - 1
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        self.done, self.closely = (function.append_basic_block(name) for name in ("done", "closely"))

    def emit(self) -> None:
        b = self.b
        self._continue_if(b.icmp_unsigned("!=", self.mask, ZERO), self.done, likely=True)
        self.lanes = b.bitcast(self.mask, ir.VectorType(I1, WARP))
        self.first = intrinsic(b, "cttz", I32, self.mask, ir.Constant(I1, 1))
        self.address = b.extract_element(self.addresses, self.first)
        start, end = self._memory()
        self._continue_if(self._all_inside(start, end), self.closely, likely=True)
        self._know_now()
        shift = ir.Constant(I64, self.shift)
        self.origin = b.lshr(start, shift)
        self._look(b.sub(b.lshr(self.address, shift), self.origin))
        b.position_at_end(self.done)
        b.ret_void()
        b.position_at_end(self.closely)
        self._leave_to_track()

    def _look(self, granule: Value) -> None:
        """Look in the way that the lanes' distances allow; `granule` is the first lane's."""
        b = self.b
        distance = b.sub(self.addresses, broadcast(b, self.address, WARP))
        if not self.is_store:
            one_place = self._all(b.icmp_unsigned("==", distance, constant(distance, 0)))
            with b.if_then(one_place, likely=False):
                self._at_one_place(granule)
        first = b.zext(self.first, I64)
        steps = ir.Constant(LANES_64, [ir.Constant(I64, self.size * lane) for lane in range(WARP)])
        before = broadcast(b, b.mul(first, ir.Constant(I64, self.size)), WARP)
        with b.if_then(self._all(b.icmp_unsigned("==", distance, b.sub(steps, before))), likely=True):
            self._at_neighbours(b.sub(granule, b.mul(first, ir.Constant(I64, self.words))))
        self._scattered()

    def _leave_to_track(self) -> None:
        b = self.b
        reads, writes = ir.Constant(I1, not self.is_store), ir.Constant(I1, self.is_store)
        who = [self.launch, self.frame, self.addresses, self.mask, self.site]
        track = b.inttoptr(self.track, TRACK.as_pointer())
        b.call(track, [*who, ir.Constant(I64, self.size), self.values, reads, writes])
        b.ret_void()

    def _continue_if(self, holds: Value, otherwise: ir.Block, likely: bool) -> None:
        following = self.function.append_basic_block("following")
        self.b.cbranch(holds, following, otherwise).set_weights([1000, 1] if likely else [1, 1])
        self.b.position_at_end(following)

    def _all(self, predicate: Value) -> Value:
        """Test whether a predicate holds for all active lanes."""
        b = self.b
        wrong = b.and_(b.not_(b.bitcast(predicate, I32)), self.mask)
        return b.icmp_unsigned("==", wrong, ZERO)

    def _memory(self) -> tuple[Value, Value]:
        """Return the bounds of the memory that the first lane's address is in, and find its shadow."""
        b = self.b
        if self.space == "shared":
            start, end = shared_bounds(b, self.launch, self.frame)
            self.planes = load_field(b, Launch, self.launch, "shared_shadow")
            self.plane_bytes = plane_bytes_of(b, b.sub(end, start), self.granule)
            return start, end
        place = entry_slot(b, POINTER)
        b.store(ir.Constant(POINTER, None), place)
        with each_range(b, self.launch) as range_:
            inside = b.and_(
                b.icmp_signed(">=", self.address, load_field(b, Range, range_, "start")),
                b.icmp_signed("<", self.address, load_field(b, Range, range_, "end")),
            )
            with b.if_then(inside):
                # In two overlapping ranges: those share a shadow, and either knows where its own begins.
                b.store(range_, place)
        range_ = b.load(place, typ=POINTER)
        self._continue_if(
            b.icmp_unsigned("!=", b.ptrtoint(range_, I64), ir.Constant(I64, 0)), self.closely, True
        )
        start, end, self.plane_bytes, poisoned = (
            load_field(b, Range, range_, name) for name in ("start", "end", "plane_bytes", "poisoned")
        )
        self.planes = load_field(b, Range, range_, "shadow")
        if not self.is_store:
            self._continue_if(b.icmp_unsigned("==", poisoned, ir.Constant(I64, 0)), self.closely, True)
        return start, end

    def _all_inside(self, start: Value, end: Value) -> Value:
        b, addresses = self.b, self.addresses
        last = constant(addresses, self.size)
        return self._all(
            b.and_(
                b.icmp_signed(">=", addresses, broadcast(b, start, WARP)),
                b.icmp_signed("<=", b.add(addresses, last), broadcast(b, end, WARP)),
            )
        )

    def _know_now(self) -> None:
        b, is_global = self.b, self.space == "global"
        if is_global:
            shadowed = b.icmp_unsigned("!=", b.ptrtoint(self.planes, I64), ir.Constant(I64, 0))
            self._continue_if(shadowed, self.done, likely=True)
        since = "block_stamp" if is_global else "shared_stamp"
        interval, launch_stamp, block_stamp = (
            load_field(b, Launch, self.launch, name) for name in ("stamp", "launch_stamp", since)
        )
        stamp = b.or_(interval, load_field(b, Frame, self.frame, "warp"))
        self.present = Present(stamp, launch_stamp, block_stamp, is_global, self.is_store)
        self.phase = b.shl(load_field(b, Frame, self.frame, "phase"), ir.Constant(I32, 6))

    def _at_one_place(self, granule: Value) -> None:
        """Note that lanes read one element."""
        b = self.b
        alone = b.icmp_unsigned("==", b.and_(self.mask, b.sub(self.mask, ir.Constant(I32, 1))), ZERO)
        lane = b.select(alone, self.first, ir.Constant(I32, shadow.SEVERAL))
        count, type_ = self.words, I32 if self.words == 1 else ir.VectorType(I32, self.words)

        def load(plane: int) -> Value:
            return b.load(self._word(plane, granule), typ=type_, align=4)

        def store(plane: int, value: Value) -> None:
            b.store(value, self._word(plane, granule), align=4)

        self._note(load, store, broadcast(b, b.or_(self.phase, lane), count), None)
        b.branch(self.done)

    def _at_neighbours(self, granule: Value) -> None:
        """Note that lanes access neighbouring elements; `granule` is where lane 0 would begin."""
        b, count = self.b, WARP * self.words
        type_ = ir.VectorType(I32, count)
        own = [lane for lane in range(WARP) for _ in range(self.words)]
        lanes = self.lanes if self.words == 1 else shuffled(b, self.lanes, None, own)
        align = ir.Constant(I32, 4)

        def load(plane: int) -> Value:
            arguments = [self._word(plane, granule), align, lanes, ir.Constant(type_, None)]
            return intrinsic(b, "masked.load", type_, *arguments, overloads=(type_, POINTER))

        def store(plane: int, value: Value) -> None:
            arguments = [value, self._word(plane, granule), align, lanes]
            intrinsic(b, "masked.store", ir.VoidType(), *arguments, overloads=(type_, POINTER))

        places = b.or_(broadcast(b, self.phase, count), numbers(tuple(own)))
        self._note(load, store, places, lanes)
        b.branch(self.done)

    def _scattered(self) -> None:
        """Note that lanes access elements anywhere, one granule of each at a time."""
        b = self.b
        type_, pointers = ir.VectorType(I32, WARP), ir.VectorType(POINTER, WARP)
        align, nothing = ir.Constant(I32, 4), ir.Constant(type_, None)
        places = b.or_(broadcast(b, self.phase, WARP), numbers(tuple(range(WARP))))
        shift = constant(self.addresses, self.shift)
        granules = b.sub(b.lshr(self.addresses, shift), broadcast(b, self.origin, WARP))
        offsets = b.shl(granules, constant(granules, 2))

        def at(plane: int, word: int) -> Value:
            start = b.ptrtoint(self._word(plane, ir.Constant(I64, word)), I64)
            return b.inttoptr(b.add(broadcast(b, start, WARP), offsets), pointers)

        def load(plane: int, word: int) -> Value:
            arguments = [at(plane, word), align, self.lanes, nothing]
            return intrinsic(b, "masked.gather", type_, *arguments, overloads=(type_, pointers))

        def store(plane: int, value: Value, word: int) -> None:
            arguments = [value, at(plane, word), align, self.lanes]
            intrinsic(b, "masked.scatter", ir.VoidType(), *arguments, overloads=(type_, pointers))

        def met_where(found: Value, expected: Value) -> Value:
            return b.and_(b.icmp_unsigned("!=", found, expected), self.lanes)

        def leave_if_lanes_meet() -> None:
            """Leave stores of several lanes to one place to `track`, which compares what they store."""
            old, lanes = load(shadow.WRITE_SITE, 0), numbers(tuple(range(WARP)))
            store(shadow.WRITE_SITE, lanes, 0)
            met = b.bitcast(met_where(load(shadow.WRITE_SITE, 0), lanes), I32)
            with b.if_then(b.icmp_unsigned("!=", met, ZERO), likely=False):
                store(shadow.WRITE_SITE, old, 0)
                b.branch(self.closely)

        for word in range(self.words):
            before = leave_if_lanes_meet if self.is_store and word == 0 else None
            self._note(partial(load, word=word), partial(store, word=word), places, self.lanes, before)
            if not self.is_store:
                met = met_where(load(shadow.READ_PLACE, word), places)
                with b.if_then(b.icmp_unsigned("!=", b.bitcast(met, I32), ZERO), likely=False):
                    several = b.or_(places, constant(places, shadow.SEVERAL))
                    arguments = [several, at(shadow.READ_PLACE, word), align, met]
                    intrinsic(b, "masked.scatter", ir.VoidType(), *arguments, overloads=(type_, pointers))
        b.branch(self.done)

    def _note(
        self,
        load: Callable[[int], Value],
        store: Callable[[int, Value], None],
        places: Value,
        lanes: Value | None,
        before: Callable[[], None] | None = None,
    ) -> None:
        """Note an access to granules, whose words of a plane are loaded and stored so; go on if it is right.

        `places` are those of the granules' lanes. Where `lanes` does not hold, the words mean nothing.
        `before` emits what comes before the first word is stored.
        """
        b, present = self.b, self.present
        last_write, last_read = load(shadow.WRITE_STAMP), load(shadow.READ_STAMP)

        def holds(predicate: Value) -> Value:
            return all_true(b, predicate if lanes is None else b.or_(predicate, b.not_(lanes)))

        def fine(write: Value, read: Callable[[], Value]) -> Value:
            if self.is_store:
                return holds(b.and_(write, read()))
            if present.is_global:
                return holds(b.and_(write, b.not_(present.is_other_block(b, last_read))))
            return holds(write)

        again, right = (self.function.append_basic_block(name) for name in ("again", "right"))
        past = fine(present.is_past(b, last_write), lambda: present.is_past(b, last_read))
        b.cbranch(past, right, again)
        b.position_at_end(again)
        write = present.is_ordered(b, last_write, load(shadow.WRITE_PLACE), places)
        ordered = fine(write, lambda: present.is_ordered(b, last_read, load(shadow.READ_PLACE), places))
        b.cbranch(ordered, right, self.closely).set_weights([1000, 1])
        b.position_at_end(right)
        if before is not None:
            before()
        stamps, site = spread(b, present.stamp, places), spread(b, self.site, places)
        if self.is_store:
            for plane, value in zip(shadow.WRITES, (stamps, places, site), strict=True):
                store(plane, value)
        else:
            new = shadow.read(b, last_read, load(shadow.READ_PLACE), stamps, places)
            for plane, value in zip(shadow.READS, (*new, site), strict=True):
                store(plane, value)

    def _word(self, plane: int, granule: Value) -> Value:
        return shadow.word(self.b, self.planes, self.plane_bytes, plane, granule)
