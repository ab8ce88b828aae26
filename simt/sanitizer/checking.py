"""A checked run looks for races, reads of unwritten memory, and threads missing at a barrier.

Invalid accesses are reported and skipped, and the launch goes on. An access whose lanes lie at constant
offsets gets a quick look at the shadow of its granules (quick.py). Whatever is suspicious, scattered or
guarded gets a look at the lanes' own addresses (warp_look.py), and atomic operations and mistakes go through
`track`, lane by lane.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llvmlite import ir

from simt.analysis.accesses import Access
from simt.analysis.blocks import Block
from simt.analysis.layout import granules
from simt.analysis.pointees import written_ranges
from simt.analysis.unset import keeps_copies, may_be_unset, takes_on
from simt.code import abi
from simt.code.abi import I1, I8, I32, I64, POINTER, ZERO, Frame, Launch, Value, field, load_field
from simt.code.addresses import lane_addresses, where
from simt.code.checked_access import LANES_64, local_bounds, report_finding, shared_bounds
from simt.code.emitter import Emitter, ObservedAccess
from simt.code.instructions import Kind, constant, intrinsic
from simt.code.loadstore import stored
from simt.code.vectors import broadcast, element_type, lanes_of, mask_of
from simt.code.warp import Warp, unset_bits
from simt.common.limits import WARP
from simt.lowering.recursion import keeps_registers
from simt.ptx import Address, Instruction, Operand, Register, Vector
from simt.sanitizer.element_types import first_uses
from simt.sanitizer.quick import Member, Stretch, looks, plan, quick_function
from simt.sanitizer.shadow import plane_bytes_of
from simt.sanitizer.strength import is_ordered, strong_table
from simt.sanitizer.track import track_function
from simt.sanitizer.warp_look import LOOK, LookKind

_ORIGIN = "origin"


@dataclass(frozen=True)
class Facts:
    """What a checked run needs to know of the code.

    `first_uses` are the lines in which arrays are first used, `written` the arrays that may be written to
    (None: any), `looks` the kinds of looks that the code calls (warp_look.py), and `granules` the bytes per
    word of shadow, by memory.
    """

    first_uses: dict[int, int]
    written: set[int] | None
    looks: tuple[LookKind, ...]
    granules: dict[str, int]


class CheckingEmitter(Emitter):
    """Keeps the shadow memory, and reports findings to the host."""

    whole_warps = True
    stops = False
    is_checked = True

    def attach(self, w: Warp) -> None:
        """Take the warp whose code is being written."""
        super().attach(w)
        self.granule = granules(w.kernel)
        self.look_kinds: dict[LookKind, int] = {}  # and their places in `Launch.looks`
        w.b.store(ZERO, field(w.b, Frame, w.frame, "phase"))
        self.is_weak = not any(strong_table(w.function.module, w.kernel))
        self.unset = may_be_unset(w.flow.blocks) if w.layout.unset else {}
        # What such a load gives is set unless it holds the bits of what was never set.
        self.loaded = {
            register.name
            for instruction in w.flow.kernel.code
            if instruction.parts[0] == "ld"
            for register in instruction.results
            if register.name in self.unset
        }

    def facts(self) -> Facts:
        """Return what runs need to know."""
        layout, kernel = self.w.layout, self.w.kernel
        written = written_ranges(kernel, layout.storage.ranges)
        return Facts(first_uses(layout), written, tuple(self.look_kinds), self.granule)

    def kind(self, instruction: Instruction) -> object:
        """Return which of the registers may be unset: instructions that are alike in that share code."""
        names = [register.name for register in (*instruction.sources, *instruction.results)]
        unset = self.w.layout.unset
        return tuple((names.index(name), name in self.loaded) for name in names if name in unset)

    def words(self, instruction: Instruction) -> dict[str, int]:
        """Return where the lanes that have set each register are noted, and the first use of an unset one."""
        unset = self.w.layout.unset
        registers = (*instruction.sources, *instruction.results)
        places = {each.name: unset[each.name] for each in registers if each.name in unset}
        return places | {_ORIGIN: self._origin(instruction)} if places else {}

    def _origin(self, instruction: Instruction) -> int:
        """Return the number of the instruction that first uses what was never set."""
        used = [self.unset[register.name] for register in instruction.sources if register.name in self.unset]
        return min((self.w.sites[id(first)] for first in used), default=0)

    def enter(self, block: Block, whole: bool) -> None:
        """Find the loads of a block of whole warps that get one look."""
        if not whole:
            return
        groups = looks(block.code, self.w.accesses.at, self.granule)
        self.looks = {id(member): group for group in groups for member, _ in group}

    def fast(self, instruction: Instruction, access: Access) -> None:
        """Check an access that a whole warp makes in its fast form."""
        w = self.w
        if access.space == "const":
            return
        if access.space == "local":
            self._track(instruction, access)
            return
        together = [(instruction, access)]
        if not w.called:  # in code that other accesses share, each is looked at alone
            together = self.looks.get(id(instruction), together)
        if together[0][0] is not instruction:
            return  # the first has looked at all
        skip = w.new_block("unshadowed")
        known = None if access.space == "shared" else self._shadow_of(together, access, skip)
        runs = plan(
            [[lane + each.offsets[0] for lane in each.shape.lane_offsets()] for _, each in together],
            [w.sites[id(each)] - w.sites[id(instruction)] for each, _ in together],
            access.shape.group,
            access.alignment,
            self._granule(access),
            access.is_store,
        )
        if runs is not None:
            closely = w.new_block("closely")
            start = min(each.extent[0] for _, each in together)
            fine = self._quick(instruction, access, start, runs, known)
            w.b.cbranch(fine, skip, closely).set_weights([1000, 1])
            w.continue_in(closely)
        for each in together:
            self._track(*each)
        w.b.branch(skip)
        w.continue_in(skip)

    def _shadow_of(self, together: Sequence[Member], access: Access, skip: ir.Block) -> tuple[Value, Value]:
        """Return the shadow and the plane bytes of the array that accesses go to; if it has none, skip them.

        Loads from an array with words that nobody has written are looked at closely.
        """
        w, b = self.w, self.w.b
        assert access.range is not None
        known = w.range(access.range, "shadow"), w.range(access.range, "plane_bytes")
        idle = b.icmp_unsigned("==", known[0], ir.Constant(I64, 0))
        if not access.is_store:
            poisoned = b.icmp_unsigned("!=", w.range(access.range, "poisoned"), ir.Constant(I64, 0))
            idle = b.and_(idle, b.not_(poisoned))
        look = w.new_block("shadowed")
        b.cbranch(idle, skip, look)
        w.continue_in(look)
        if not access.is_store:
            clean = w.new_block("clean")
            poison = w.new_block("poisoned")
            w.b.cbranch(poisoned, poison, clean)
            w.continue_in(poison)
            for each in together:
                self._track(*each)
            w.b.branch(skip)
            w.continue_in(clean)
        return known

    def _granule(self, access: Access) -> int:
        """Return the granule of the memory that a fast access goes to; a generic address is in an array."""
        return self.granule["shared" if access.space == "shared" else "global"]

    def _quick(
        self,
        instruction: Instruction,
        access: Access,
        start: int,
        runs: tuple[Stretch, ...],
        known: tuple[Value, Value] | None,
    ) -> Value:
        """Call the quick look, `start` bytes from the base.

        `known`: shadow and plane bytes of the array, None for shared memory.
        """
        w, b = self.w, self.w.b
        settles = self.is_weak and not access.is_store
        function = quick_function(w.function.module, runs, access.is_store, known is not None, settles)
        address = where(w, access).base
        address = b.add(address, constant(address, start))
        shift = ir.Constant(I64, self._granule(access).bit_length() - 1)
        origin: Value = ir.Constant(I64, 0)
        if known is not None:
            assert access.range is not None
            planes, plane_bytes = b.inttoptr(known[0], POINTER), known[1]
            origin = b.lshr(w.range(access.range, "start"), shift)
        else:
            planes, shared_bytes = w.field(Launch, "shared_shadow"), w.field(Launch, "shared_bytes")
            granule = self.granule["shared"]
            plane_bytes = w.once("plane bytes", lambda b: plane_bytes_of(b, shared_bytes, granule))
        bases = [
            address if access.shape.bases == 1 else b.extract_element(address, ir.Constant(I32, i))
            for i in range(max(run.group for run in runs) + 1)
        ]
        granules = [b.sub(b.lshr(base, shift), origin) for base in bases]
        phase = b.shl(load_field(b, Frame, w.frame, "phase"), ir.Constant(I32, 6))
        interval, number = w.field(Launch, "stamp"), w.number
        stamp = w.once("stamp", lambda b: b.or_(interval, number))
        since = "shared" if known is None else "block"
        first_stamps = [w.field(Launch, f"{what}_stamp") for what in ("launch", since)]
        arguments = [planes, plane_bytes, stamp, *first_stamps, phase, w.site(instruction)]
        return b.call(function, [*arguments, *granules])

    def _track(self, instruction: Instruction, access: Access) -> None:
        """Check an access of all lanes, whatever their addresses are."""
        w = self.w
        values = stored(w, access, Kind(instruction.type)) if access.is_store else []
        addresses, everyone = lane_addresses(w, access), ir.Constant(I32, -1)
        site = w.site(instruction)
        self.careful(
            ObservedAccess(w.b, w.launch, w.frame, access, addresses, everyone, site, values, everyone)
        )

    def careful(self, look: ObservedAccess) -> None:
        """Check an access of some lanes: all together if there is a look of its kind, else one by one."""
        b, access = look.b, look.access
        if access.space == "const":
            return
        size = access.size if access.is_store else access.alignment
        kind = LookKind(access.space, size, self._granule(access), access.is_store)
        track = track_function(b.module, self.w.layout, self.granule)
        if kind.is_known and not access.is_atomic:
            function, address = self._look_function(b, look.launch, kind), b.ptrtoint(track, I64)
            for place, bits in _items(look):
                b.call(function, [address, look.launch, look.frame, place, look.mask, look.site, bits])
            return
        reads, writes = access.is_atomic or not access.is_store, access.is_atomic or access.is_store
        does = ir.Constant(I1, reads), ir.Constant(I1, writes)
        if access.is_atomic:
            _note_atomic(b, look.launch)
        for place, bits in _items(look):
            who = [look.launch, look.frame, place, look.mask, look.site]
            b.call(track, [*who, ir.Constant(I64, size), bits, *does])

    def _look_function(self, b: ir.IRBuilder, launch: Value, kind: LookKind) -> Value:
        """Return the function that looks at accesses of a kind, from the launch's table."""
        number = self.look_kinds.setdefault(kind, len(self.look_kinds))
        table = load_field(b, Launch, launch, "looks")
        address = b.load(b.gep(table, [ir.Constant(I64, number)], source_etype=I64), typ=I64)
        return b.inttoptr(address, LOOK.as_pointer())

    def barrier(self, instruction: Instruction) -> None:
        """Find threads that ended before a barrier that others reach."""
        w, b = self.w, self.w.b
        if not w.flow.blocks[w.index].may_have_exited:
            return
        gone = b.and_(w.full_mask, b.not_(w.active()))
        with b.if_then(b.icmp_unsigned("!=", gone, ZERO), likely=False):
            lane = intrinsic(b, "cttz", I32, gone, ir.Constant(I1, 1))
            report_finding(b, w.launch, w.frame, abi.EXITED, w.site(instruction), lane)

    def reads(self, instruction: Instruction) -> None:
        """Note what hands memory over, and follow the registers that may be unset.

        Where an unset value has an effect, that is a finding.
        """
        if self.w.layout.spins and instruction.is_access and is_ordered(instruction):
            _note_ordered(self.w.b, self.w.launch, instruction)
        unset = self.w.layout.unset
        used = [register for register in instruction.sources if register.name in unset]
        written = [register for register in instruction.results if register.name in unset]
        if not used and not written:
            return
        b, active = self.w.b, self.w.active(instruction)
        is_set = self._lanes_set(instruction, used)
        if used and has_effect(instruction):
            fine = self._lanes_kept(instruction, used) if keeps_copies(instruction) else is_set
            wrong = b.and_(active, b.not_(fine))
            with b.if_then(b.icmp_unsigned("!=", wrong, ZERO), likely=False):
                lane = intrinsic(b, "cttz", I32, wrong, ir.Constant(I1, 1))
                origin = self._noted(_ORIGIN, self._origin(instruction))
                report_finding(b, self.w.launch, self.w.frame, abi.UNSET, origin, lane)
        for register in written:
            now = is_set if takes_on(instruction) else ir.Constant(I32, -1)
            place = self._set_word(register.name)
            old = b.load(place, typ=I32)
            b.store(b.or_(b.and_(old, b.not_(active)), b.and_(now, active)), place)

    def _lanes_set(self, instruction: Instruction, used: list[Register]) -> Value:
        """Return the lanes in which all that the instruction needs is set."""
        w, b, name = self.w, self.w.b, instruction.parts[0]
        operands = instruction.operands[1:]
        masks = [self._lanes_of(operand) for operand in operands] if name in ("selp", "and", "or") else []
        if name == "selp":
            chosen = mask_of(b, w.value(operands[2], Kind("pred"), WARP))
            either = b.or_(b.and_(chosen, masks[0]), b.and_(b.not_(chosen), masks[1]))
            return b.and_(either, masks[2])
        everything: Value = ir.Constant(I32, -1)
        for register in used:
            is_set = self._lanes_of(register)
            if name == "wgmma" and register in instruction.results:  # not read where the sum begins at zero
                is_set = b.or_(
                    is_set, b.not_(mask_of(b, w.value(instruction.operands[3], Kind("pred"), WARP)))
                )
            everything = b.and_(everything, is_set)
        if name in ("and", "or") and "pred" in instruction.parts:  # one operand may decide alone
            for operand, mask in zip(operands, masks, strict=True):
                value = mask_of(b, w.value(operand, Kind("pred"), WARP))
                everything = b.or_(everything, b.and_(mask, value if name == "or" else b.not_(value)))
        if instruction.family.joins_lanes:
            whole = b.icmp_unsigned("==", b.and_(everything, w.full_mask), w.full_mask)
            everything = b.select(whole, everything, ZERO)
        return everything

    def _lanes_kept(self, instruction: Instruction, used: list[Register]) -> Value:
        """Return the lanes in which a store may go on: all is set, or a mere copy stays within the block."""
        b, (place, *stored) = self.w.b, instruction.operands
        assert isinstance(place, Address)
        items = [each for data in stored for each in (data.items if isinstance(data, Vector) else [data])]
        near, fine = self._lanes_near(instruction, place), ir.Constant(I32, -1)
        for register in used:
            is_set = self._lanes_of(register)
            if register in items and register != place.base:
                is_set = b.or_(is_set, b.and_(near, self._lanes_of_poison(register)))
            fine = b.and_(fine, is_set)
        return fine

    def _lanes_near(self, instruction: Instruction, place: Address) -> Value:
        """Return the lanes whose address is in shared or local memory."""
        if instruction.space != "generic":
            return ir.Constant(I32, -1)
        w, b = self.w, self.w.b
        address = w.value(place.base, Kind("s64"), WARP)
        address = b.add(address, constant(address, place.offset))
        start, end = (broadcast(b, each, WARP) for each in shared_bounds(b, w.launch, w.frame))
        inside = ir.Constant(ir.VectorType(I1, WARP), None)
        for low, high in ((start, end), local_bounds(b, w.frame, w.layout)):
            within = b.and_(b.icmp_signed(">=", address, low), b.icmp_signed("<", address, high))
            inside = b.or_(inside, within)
        return b.bitcast(inside, I32)

    def _lanes_of_poison(self, register: Register) -> Value:
        """Return the lanes in which a register holds the bits of what was never set, all or in a half."""
        w, b = self.w, self.w.b
        bits = w.declared(register).bits
        value, word = w.value(register, Kind(f"b{bits}"), WARP), min(bits, 32)
        held: Value = ir.Constant(ir.VectorType(I1, WARP), None)
        for at in range(0, bits, word):
            part = b.trunc(b.lshr(value, constant(value, at)), ir.VectorType(ir.IntType(word), WARP))
            held = b.or_(held, b.icmp_unsigned("==", part, constant(part, unset_bits(word))))
        return b.bitcast(held, I32)

    def _lanes_of(self, operand: Operand) -> Value:
        """Return the lanes in which an operand is set."""
        b = self.w.b
        if not isinstance(operand, Register) or operand.name not in self.w.layout.unset:
            return ir.Constant(I32, -1)
        is_set = b.load(self._set_word(operand.name), typ=I32)
        if operand.name in self.loaded:
            is_set = b.and_(is_set, b.not_(self._lanes_of_poison(operand)))
        return is_set

    def _set_word(self, register: str) -> Value:
        """Return the address of the word with the lanes that have set a register."""
        offset = self._noted(register, self.w.layout.unset[register])
        return self.w.b.gep(self.w.frame, [offset], source_etype=I8)

    def _noted(self, name: str, number: int) -> Value:
        """Return a number, which code that instructions share finds in the row of each."""
        called = self.w.called
        return self.w.word(called.observed[name], I32) if called else ir.Constant(I32, number)

    def step(self, instruction: Instruction) -> None:
        """Note a fence, and check the mask of a warp-wide operation."""
        w, b = self.w, self.w.b
        if instruction.family.is_fence:
            b.store(ir.Constant(I32, 1), field(b, Launch, w.launch, "fenced"))
        if not instruction.family.names_lanes or "sync" not in instruction.parts:
            return
        self._members(instruction)
        if instruction.family.waits:
            phase = field(b, Frame, w.frame, "phase")
            b.store(b.add(b.load(phase, typ=I32), ir.Constant(I32, 1)), phase)

    def _members(self, instruction: Instruction) -> None:
        """Check that each lane is named in its own mask, and that no named lane is elsewhere."""
        w, b = self.w, self.w.b
        active = w.active(instruction)
        members = w.value(instruction.operands[-1], Kind("b32"), WARP)
        own = b.and_(
            members, ir.Constant(members.type, [ir.Constant(I32, 1 << i & 0xFFFFFFFF) for i in range(WARP)])
        )
        named = b.bitcast(b.icmp_unsigned("!=", own, ir.Constant(own.type, None)), I32)
        active_members = b.select(lanes_of(b, active), members, ir.Constant(members.type, None))
        everyone = intrinsic(b, "vector.reduce.or", I32, active_members, overloads=(members.type,))
        uncalled = b.and_(active, b.not_(named))
        missing = b.and_(everyone, w.elsewhere())
        wrong = b.select(b.icmp_unsigned("!=", uncalled, ZERO), uncalled, missing)
        with b.if_then(b.icmp_unsigned("!=", wrong, ZERO), likely=False):
            lane = intrinsic(b, "cttz", I32, wrong, ir.Constant(I1, 1))
            report_finding(b, w.launch, w.frame, abi.SYNC_MASK, w.site(instruction), lane)


def has_effect(instruction: Instruction) -> bool:
    """Say whether an operand's value goes to memory, is an address, or decides which code runs."""
    return (instruction.is_access and not keeps_registers(instruction)) or instruction.ends_block


def _items(look: ObservedAccess) -> Iterator[tuple[Value, Value]]:
    """Yield the lanes' addresses and bits of each item that they store; a load is one item, of no bits."""
    b, access = look.b, look.access
    for i, value in enumerate(look.values if access.is_store else [None]):
        bits = ir.Constant(LANES_64, None) if value is None else _bits(b, value)
        yield b.add(look.addresses, constant(look.addresses, i * access.size)), bits


def _bits(b: ir.IRBuilder, value: Value) -> Value:
    """Convert values of any type to 64-bit integers."""
    kind = element_type(value)
    width = {ir.HalfType: 16, ir.FloatType: 32, ir.DoubleType: 64}.get(type(kind)) or kind.width
    value = b.bitcast(value, ir.VectorType(ir.IntType(width), WARP))
    return value if width == 64 else b.zext(value, LANES_64)


def _note_atomic(b: ir.IRBuilder, launch: Value) -> None:
    """Let an atomic operation acquire what others released; after a fence it also releases."""
    b.store(ir.Constant(I32, 1), field(b, Launch, launch, "acquired"))
    _release_after_fence(b, launch)


def _release_after_fence(b: ir.IRBuilder, launch: Value) -> None:
    with b.if_then(b.icmp_unsigned("!=", load_field(b, Launch, launch, "fenced"), ZERO)):
        b.store(load_field(b, Launch, launch, "stamp"), field(b, Launch, launch, "released"))
        b.store(ZERO, field(b, Launch, launch, "fenced"))


def _note_ordered(b: ir.IRBuilder, launch: Value, instruction: Instruction) -> None:
    """Let a load acquire what others released, and a store after a fence release: one looks at a flag."""
    if not {"release", "acq_rel"}.isdisjoint(instruction.parts):
        b.store(ir.Constant(I32, 1), field(b, Launch, launch, "fenced"))
    if instruction.family.is_atomic:
        return  # see _note_atomic
    if instruction.family.reads:
        b.store(ir.Constant(I32, 1), field(b, Launch, launch, "acquired"))
    else:
        _release_after_fence(b, launch)
