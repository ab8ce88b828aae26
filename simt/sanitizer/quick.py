"""A checked run's quick look at accesses of all lanes, where the lanes' offsets are known.

It reads the shadow of neighbouring granules as vectors, and leaves what is suspicious to warp_look.py. Loads
of a basic block that share a base get one look, at the first of them: those of an unrolled loop, say.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from llvmlite import ir

from simt.analysis.accesses import Access
from simt.code.abi import I1, I32, I64, POINTER, Value
from simt.code.checked_access import defined_once
from simt.code.instructions import intrinsic
from simt.code.memory import MAX_RUNS
from simt.code.vectors import all_true, broadcast, numbers, vector_type
from simt.common.limits import WARP
from simt.ptx import Instruction
from simt.sanitizer import shadow
from simt.sanitizer.shadow import Present
from simt.sanitizer.strength import is_ordered

MOST_GRANULES = 512  # per look
GRANULES_WORTH_A_RUN = 8  # on average; gathering so many takes longer than another vector load
Member = tuple[Instruction, Access]


@dataclass(frozen=True)
class Stretch:
    """Granules that one look is at, and the lane that touches each (SEVERAL: more than one lane does)."""

    group: int  # number of its base
    granules: tuple[int, ...]  # relative to the base's first granule
    lanes: tuple[int, ...]
    sites: tuple[int, ...]  # of the access that touches each granule last, less the site of the first

    @property
    def is_contiguous(self) -> bool:
        """Say whether its granules follow one another without a gap."""
        return self.granules[-1] - self.granules[0] + 1 == len(self.granules)


def looks(
    code: Sequence[Instruction], at: Mapping[int, Access], granule: Mapping[str, int]
) -> list[list[Member]]:
    """Split the loads of a basic block's fast code into those that one look can be at, in order.

    `at`: the accesses by position. The loads of one look share a base, and between the first and the last of
    them nothing stores or orders accesses: the look at the first notes all, which must be early for none.
    """
    found: list[list[Member]] = []
    growing: dict[object, tuple[list[Member], int]] = {}
    for position, instruction in enumerate(code):
        access = at.get(position)
        if _orders(instruction):
            growing.clear()
        if access is None or access.is_store or access.is_atomic:
            continue
        key = access.base, access.group_range, access.space, access.alignment, access.range
        unit = granule["shared" if access.space == "shared" else "global"]
        granules = len(set(access.shape.lane_offsets())) * max(1, access.alignment // unit)
        group, count = growing.get(key, ([], 0))
        if access.is_first or not group or count + granules > MOST_GRANULES or access.shape.group == 1:
            group, count = [], 0
            found.append(group)
        group.append((instruction, access))
        growing[key] = group, count + granules
    return found


def _orders(instruction: Instruction) -> bool:
    """Say whether accesses before and after an instruction differ in what they may race with."""
    family = instruction.family
    if instruction.is_access:
        return family.writes or is_ordered(instruction)
    return (
        family.writes or family.is_fence or family.waits or family.is_asynchronous or family.lanes != "each"
    )


def plan(
    lane_offsets: Sequence[Sequence[int]],
    sites: Sequence[int],
    group: int,
    size: int,
    granule: int,
    is_store: bool,
) -> tuple[Stretch, ...] | None:
    """Split accesses of `size` bytes, each at its lanes' offsets, into runs of neighbouring granules.

    `sites`: the number of each access's instruction, less that of the first. If the runs would be short and
    many, there is one per base. The plan is None where each lane has its own base, and for stores where lanes
    may meet: whether they race depends on the values that they store.
    """
    if group == 1 or (is_store and group < WARP):
        return None
    first = min(min(offsets) for offsets in lane_offsets)
    contiguous, scattered = [], []
    for start in range(0, WARP, group):
        touched: dict[int, tuple[int, int]] = {}
        lanes = range(start, start + group)
        for number, lane, index in _granules(lane_offsets, lanes, first, size, granule):
            if index in touched and is_store:
                return None
            by_another = index in touched and touched[index][0] != lane
            touched[index] = shadow.SEVERAL if by_another else lane, sites[number]
        granules = sorted(touched)
        breaks = [i for i in range(1, len(granules)) if granules[i] != granules[i - 1] + 1]
        scattered.append(_run(start // group, granules, touched))
        for begin, end in pairwise([0, *breaks, len(granules)]):
            contiguous.append(_run(start // group, granules[begin:end], touched))
    count = sum(len(run.granules) for run in scattered)
    is_split = len(contiguous) <= max(MAX_RUNS, count // GRANULES_WORTH_A_RUN)
    return tuple(contiguous if is_split else scattered)


def _granules(
    lane_offsets: Sequence[Sequence[int]], lanes: range, first: int, size: int, granule: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the access, the lane and the granule of all that some lanes touch."""
    for number, offsets in enumerate(lane_offsets):
        for lane in lanes:
            begin = (offsets[lane] - first) // granule
            for index in range(begin, begin + max(1, size // granule)):
                yield number, lane, index


def _run(group: int, granules: list[int], touched: dict[int, tuple[int, int]]) -> Stretch:
    lanes, sites = zip(*(touched[granule] for granule in granules), strict=True)
    return Stretch(group, tuple(granules), lanes, sites)


def quick_function(
    module: ir.Module, runs: tuple[Stretch, ...], is_store: bool, is_global: bool, settles: bool
) -> ir.Function:
    """Define the quick look: it notes accesses of all lanes, and leaves suspicious ones to `warp_look`.

    `settles`: granules that several warps have read keep the first one's site. That is no loss in a kernel
    without atomic or ordered accesses, where no site excuses another.

    i1 quick(ptr planes, i64 plane bytes, i32 stamp, launch stamp, block stamp, phase, site, i64 granule of
    each base...)
    """
    name = f"quick_{is_global:d}{is_store:d}_" + "_".join(
        ".".join(map(str, (run.group, *run.granules, "by", *run.lanes, "at", *run.sites))) for run in runs
    )
    bases = max(run.group for run in runs) + 1
    type_ = ir.FunctionType(I1, [POINTER, I64, *[I32] * 5, *[I64] * bases])
    return defined_once(
        module, name, type_, lambda function: _Quick(function, runs, is_store, is_global, settles).emit()
    )


class _Quick:
    """Builds a quick look."""

    def __init__(
        self,
        function: ir.Function,
        runs: tuple[Stretch, ...],
        is_store: bool,
        is_global: bool,
        settles: bool,
    ) -> None:
        self.runs, self.is_store, self.settles = runs, is_store, settles
        self.planes, self.plane_bytes, *stamps = function.args[:5]
        stamp, launch_stamp, block_stamp = stamps
        self.present = Present(stamp, launch_stamp, block_stamp, is_global, is_store)
        self.phase, self.site, *self.granules = function.args[5:]
        self.b = ir.IRBuilder(function.append_basic_block("entry"))

    def emit(self) -> None:
        b = self.b
        fine: Value = ir.Constant(I1, 1)
        for run in self.runs:
            fine = b.and_(fine, all_true(b, self._is_fine(run)))
        with b.if_then(b.not_(fine), likely=False):
            b.ret(ir.Constant(I1, 0))
        if self.settles:
            with b.if_then(self._is_settled()):
                b.ret(ir.Constant(I1, 1))
        for run in self.runs:
            self._note(run)
        b.ret(ir.Constant(I1, 1))

    def _is_fine(self, run: Stretch) -> Value:
        b, present = self.b, self.present
        fine = present.is_past(b, self._load(run, shadow.WRITE_STAMP))
        if self.is_store:
            return b.and_(fine, present.is_past(b, self._load(run, shadow.READ_STAMP)))
        if present.is_global:
            others = present.is_other_block(b, self._load(run, shadow.READ_STAMP))
            return b.and_(fine, b.not_(others))
        return fine

    def _is_settled(self) -> Value:
        """Test whether other warps have read all granules in this interval: one more changes nothing then."""
        b, settled = self.b, ir.Constant(I1, 1)
        for run in self.runs:
            stamps = self._load(run, shadow.READ_STAMP)
            several = b.or_(self.present.stamp, ir.Constant(I32, shadow.SEVERAL))
            same = b.icmp_unsigned("==", stamps, shadow.spread(b, several, stamps))
            settled = b.and_(settled, all_true(b, same))
        return settled

    def _note(self, run: Stretch) -> None:
        """Write the stamps, places and sites of one run."""
        b, lane = self.b, _numbers(run.lanes)
        place = b.or_(shadow.spread(b, self.phase, lane), lane)
        stamps = shadow.spread(b, self.present.stamp, lane)
        site = shadow.spread(b, self.site, lane)
        if any(run.sites):
            site = b.add(site, _numbers(run.sites))
        if self.is_store:
            for plane, value in zip(shadow.WRITES, (stamps, place, site), strict=True):
                self._store(run, plane, value)
        else:
            old = self._load(run, shadow.READ_STAMP)
            new = shadow.read(b, old, self._load(run, shadow.READ_PLACE), stamps, place)
            for plane, value in zip(shadow.READS, (*new, site), strict=True):
                self._store(run, plane, value)

    def _load(self, run: Stretch, plane: int) -> Value:
        """Load one word per granule of a run."""
        type_ = vector_type(I32, len(run.lanes))
        if run.is_contiguous:
            return self.b.load(self._first(run, plane), typ=type_, align=4)
        pointers = self._each(run, plane)
        arguments = [pointers, ir.Constant(I32, 4), _everyone(run), ir.Constant(type_, None)]
        return intrinsic(self.b, "masked.gather", type_, *arguments, overloads=(type_, pointers.type))

    def _store(self, run: Stretch, plane: int, value: Value) -> None:
        if run.is_contiguous:
            self.b.store(value, self._first(run, plane), align=4)
            return
        pointers = self._each(run, plane)
        arguments = [value, pointers, ir.Constant(I32, 4), _everyone(run)]
        intrinsic(self.b, "masked.scatter", ir.VoidType(), *arguments, overloads=(value.type, pointers.type))

    def _first(self, run: Stretch, plane: int) -> Value:
        """Return the address of the word of a run's first granule."""
        index = self.b.add(self.granules[run.group], ir.Constant(I64, run.granules[0]))
        return shadow.word(self.b, self.planes, self.plane_bytes, plane, index)

    def _each(self, run: Stretch, plane: int) -> Value:
        """Return the addresses of the words of all granules of a run."""
        b, count = self.b, len(run.granules)
        start = b.ptrtoint(
            shadow.word(b, self.planes, self.plane_bytes, plane, self.granules[run.group]), I64
        )
        offsets = [ir.Constant(I64, 4 * granule) for granule in run.granules]
        places = b.add(broadcast(b, start, count), ir.Constant(ir.VectorType(I64, count), offsets))
        return b.inttoptr(places, ir.VectorType(POINTER, count))


def _numbers(values: tuple[int, ...]) -> Value:
    return numbers(values) if len(values) > 1 else ir.Constant(I32, values[0])


def _everyone(run: Stretch) -> Value:
    return ir.Constant(ir.VectorType(I1, len(run.lanes)), [ir.Constant(I1, 1)] * len(run.lanes))
