"""A checked run's quick look at an access of all lanes, where the lanes' offsets are known.

It reads the shadow of neighbouring granules as vectors, and leaves what is suspicious to touch.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from llvmlite import ir

from simt.code.abi import I1, I32, I64, POINTER, Value
from simt.code.careful import defined_once
from simt.code.instructions import intrinsic
from simt.code.memory import MAX_RUNS
from simt.code.vectors import all_true, broadcast, vector_type
from simt.common.limits import WARP
from simt.sanitizer import shadow


@dataclass(frozen=True)
class Run:
    """Granules of one access, and the lane that touches each (SEVERAL: more than one lane does)."""

    group: int  # number of its base
    granules: tuple[int, ...]  # relative to the base's first granule
    lanes: tuple[int, ...]

    @property
    def is_contiguous(self) -> bool:
        """Say whether its granules follow one another without a gap."""
        return self.granules[-1] - self.granules[0] + 1 == len(self.granules)


def plan(
    lane_offsets: Sequence[int], group: int, size: int, granule: int, is_store: bool
) -> tuple[Run, ...] | None:
    """Split an access of `size` bytes at each lane's offset into runs of neighbouring granules.

    If those would be too many, there is one run per base. The plan is None where each lane has its own base,
    and for stores where lanes may meet: whether they race depends on the values that they store.
    """
    if group == 1 or (is_store and group < WARP):
        return None
    first = min(lane_offsets)
    contiguous, scattered = [], []
    for start in range(0, WARP, group):
        touched: dict[int, int] = {}
        for lane in range(start, start + group):
            begin = (lane_offsets[lane] - first) // granule
            for index in range(begin, begin + max(1, size // granule)):
                if index in touched and is_store:
                    return None
                touched[index] = shadow.SEVERAL if index in touched else lane
        granules = sorted(touched)
        scattered.append(Run(start // group, tuple(granules), tuple(touched[g] for g in granules)))
        breaks = [i for i in range(1, len(granules)) if granules[i] != granules[i - 1] + 1]
        for begin, end in pairwise([0, *breaks, len(granules)]):
            part = tuple(granules[begin:end])
            contiguous.append(Run(start // group, part, tuple(touched[g] for g in part)))
    return tuple(contiguous if len(contiguous) <= MAX_RUNS else scattered)


def quick_function(module: ir.Module, runs: tuple[Run, ...], is_store: bool, is_global: bool) -> ir.Function:
    """Define the quick look: it notes an access of all lanes, and leaves a suspicious one to `touch`.

    i1 quick(ptr planes, i64 plane bytes, i32 stamp, launch stamp, block stamp, phase, site, i64 granule of
    each base...)
    """
    name = f"quick_{is_global:d}{is_store:d}_" + "_".join(
        ".".join(map(str, (run.group, *run.granules, "by", *run.lanes))) for run in runs
    )
    bases = max(run.group for run in runs) + 1
    type_ = ir.FunctionType(I1, [POINTER, I64, *[I32] * 5, *[I64] * bases])
    return defined_once(
        module, name, type_, lambda function: _Quick(function, runs, is_store, is_global).emit()
    )


class _Quick:
    """Builds a quick look."""

    def __init__(self, function: ir.Function, runs: tuple[Run, ...], is_store: bool, is_global: bool) -> None:
        self.runs, self.is_store, self.is_global = runs, is_store, is_global
        self.planes, self.plane_bytes, self.stamp, self.launch_stamp, self.block_stamp = function.args[:5]
        self.phase, self.site, *self.granules = function.args[5:]
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        self.now = self.b.and_(self.stamp, ir.Constant(I32, -shadow.STAMP_STEP))

    def emit(self) -> None:
        b = self.b
        fine: Value = ir.Constant(I1, 1)
        for run in self.runs:
            fine = b.and_(fine, all_true(b, self._is_past(self._load(run, shadow.WRITE_STAMP))))
            if self.is_store:
                fine = b.and_(fine, all_true(b, self._is_past(self._load(run, shadow.READ_STAMP))))
            elif self.is_global:
                fine = b.and_(
                    fine, all_true(b, self._is_not_other_blocks(self._load(run, shadow.READ_STAMP)))
                )
        with b.if_then(b.not_(fine), likely=False):
            b.ret(ir.Constant(I1, 0))
        for run in self.runs:
            self._note(run)
        b.ret(ir.Constant(I1, 1))

    def _note(self, run: Run) -> None:
        """Write the stamps, places and sites of one run."""
        b, lanes = self.b, [ir.Constant(I32, lane) for lane in run.lanes]
        lane = lanes[0] if len(lanes) == 1 else ir.Constant(vector_type(I32, len(lanes)), lanes)
        place = b.or_(shadow.spread(b, self.phase, lane), lane)
        stamps = shadow.spread(b, self.stamp, lane)
        if self.is_store:
            self._store(run, shadow.WRITE_STAMP, stamps)
            self._store(run, shadow.WRITE_PLACE, place)
            self._store(run, shadow.WRITE_SITE, shadow.spread(b, self.site, lane))
        else:
            old = self._load(run, shadow.READ_STAMP)
            new_stamp, new_place = shadow.read(b, old, self._load(run, shadow.READ_PLACE), stamps, place)
            self._store(run, shadow.READ_STAMP, new_stamp)
            self._store(run, shadow.READ_PLACE, new_place)
            self._store(run, shadow.READ_SITE, shadow.spread(b, self.site, lane))

    def _is_past(self, x: Value) -> Value:
        """Test for a stamp of an earlier interval of the block, or of an earlier launch."""
        b = self.b
        low, high = (shadow.spread(b, y, x) for y in (self.block_stamp, self.now))
        if self.is_store and not self.is_global:
            return b.icmp_unsigned("<", x, high)  # shared memory of earlier blocks is gone
        in_block = b.icmp_unsigned("<", b.sub(x, low), b.sub(high, low))
        if not self.is_global:
            return in_block
        return b.or_(in_block, b.icmp_unsigned("<", x, shadow.spread(b, self.launch_stamp, x)))

    def _is_not_other_blocks(self, x: Value) -> Value:
        b = self.b
        low, high = (shadow.spread(b, y, x) for y in (self.launch_stamp, self.block_stamp))
        return b.icmp_unsigned(">=", b.sub(x, low), b.sub(high, low))

    def _load(self, run: Run, plane: int) -> Value:
        """Load one word per granule of a run."""
        type_ = vector_type(I32, len(run.lanes))
        if run.is_contiguous:
            return self.b.load(self._first(run, plane), typ=type_, align=4)
        pointers = self._each(run, plane)
        arguments = [pointers, ir.Constant(I32, 4), _everyone(run), ir.Constant(type_, None)]
        return intrinsic(self.b, "masked.gather", type_, *arguments, overloads=(type_, pointers.type))

    def _store(self, run: Run, plane: int, value: Value) -> None:
        if run.is_contiguous:
            self.b.store(value, self._first(run, plane), align=4)
            return
        pointers = self._each(run, plane)
        arguments = [value, pointers, ir.Constant(I32, 4), _everyone(run)]
        intrinsic(self.b, "masked.scatter", ir.VoidType(), *arguments, overloads=(value.type, pointers.type))

    def _first(self, run: Run, plane: int) -> Value:
        """Return the address of the word of a run's first granule."""
        index = self.b.add(self.granules[run.group], ir.Constant(I64, run.granules[0]))
        return shadow.word(self.b, self.planes, self.plane_bytes, plane, index)

    def _each(self, run: Run, plane: int) -> Value:
        """Return the addresses of the words of all granules of a run."""
        b, count = self.b, len(run.granules)
        start = b.ptrtoint(
            shadow.word(b, self.planes, self.plane_bytes, plane, self.granules[run.group]), I64
        )
        offsets = [ir.Constant(I64, 4 * granule) for granule in run.granules]
        places = b.add(broadcast(b, start, count), ir.Constant(ir.VectorType(I64, count), offsets))
        return b.inttoptr(places, ir.VectorType(POINTER, count))


def _everyone(run: Run) -> Value:
    return ir.Constant(ir.VectorType(I1, len(run.lanes)), [ir.Constant(I1, 1)] * len(run.lanes))
