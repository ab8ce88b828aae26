"""Shadow memory of a checked run: who last wrote and who last read each granule (1, 2 or 4 bytes).

Six planes of 32-bit words hold one word per granule each:

    WRITE_STAMP  WRITE_PLACE  WRITE_SITE  READ_STAMP  READ_PLACE  READ_SITE

A stamp is the number of the interval between two barriers (times 64) plus the warp, or plus SEVERAL where
more than one warp has read. A place is the number of __syncwarp calls in the interval (times 64) plus the
lane, or plus SEVERAL. Blocks run one after the other, and their intervals are numbered consecutively, so a
stamp older than the block's first is from another block, and one older than the launch's first is from an
earlier launch. Two accesses race if one of them writes and nothing orders them: they are from different
blocks, from different warps in one interval, or from different lanes of a warp without __syncwarp between
them.
"""

from dataclasses import dataclass

from llvmlite import ir

from simt.code.abi import I8, I64, STAMP_STEP, Value
from simt.code.instructions import constant
from simt.code.vectors import broadcast

PLANES = 6
WRITE_STAMP, WRITE_PLACE, WRITE_SITE, READ_STAMP, READ_PLACE, READ_SITE = range(PLANES)
WRITES = WRITE_STAMP, WRITE_PLACE, WRITE_SITE
READS = READ_STAMP, READ_PLACE, READ_SITE
SEVERAL = STAMP_STEP - 1
ATOMIC, STRONG, POLL = 1, 2, 4  # what `is_strong` holds for an instruction


@dataclass(frozen=True)
class Present:
    """What an access compares the shadow with: its own stamp, and the first ones of its launch and its block.

    In shared memory the block's first stamp is that of its first interval, also after a barrier of the grid.
    """

    stamp: Value
    launch_stamp: Value
    block_stamp: Value
    is_global: bool
    is_store: bool

    def is_past(self, b: ir.IRBuilder, stamps: Value) -> Value:
        """Test for stamps of an earlier interval of the block, or of an earlier launch."""
        now = b.and_(self.stamp, ir.Constant(self.stamp.type, -STAMP_STEP))
        low, high = (spread(b, each, stamps) for each in (self.block_stamp, now))
        if self.is_store and not self.is_global:
            return b.icmp_unsigned("<", stamps, high)  # shared memory of earlier blocks is gone
        in_block = b.icmp_unsigned("<", b.sub(stamps, low), b.sub(high, low))
        if not self.is_global:
            return in_block
        return b.or_(in_block, b.icmp_unsigned("<", stamps, spread(b, self.launch_stamp, stamps)))

    def is_other_block(self, b: ir.IRBuilder, stamps: Value) -> Value:
        """Test for stamps of this launch's earlier blocks."""
        low, high = (spread(b, each, stamps) for each in (self.launch_stamp, self.block_stamp))
        return b.icmp_unsigned("<", b.sub(stamps, low), b.sub(high, low))

    def is_ordered(self, b: ir.IRBuilder, stamps: Value, places: Value, own_places: Value) -> Value:
        """Test for accesses that come before this one: `is_past`, or by this lane, or before a __syncwarp."""
        own = b.icmp_unsigned("==", stamps, spread(b, self.stamp, stamps))
        same_phase = b.icmp_unsigned("<", b.xor(places, own_places), constant(places, STAMP_STEP))
        other_lane = b.and_(same_phase, b.icmp_unsigned("!=", places, own_places))
        return b.or_(self.is_past(b, stamps), b.and_(own, b.not_(other_lane)))


def read(b: ir.IRBuilder, old: Value, old_place: Value, stamp: Value, place: Value) -> tuple[Value, Value]:
    """Return the read stamp and place after a read, for one granule or a vector of them."""
    step = constant(old, STAMP_STEP)
    same_interval = b.icmp_unsigned("<", b.xor(old, stamp), step)
    same_warp = b.icmp_unsigned("==", old, stamp)
    other_warp = b.and_(same_interval, b.not_(same_warp))
    new = b.select(other_warp, b.or_(stamp, constant(stamp, SEVERAL)), stamp)
    same_phase = b.and_(same_warp, b.icmp_unsigned("<", b.xor(old_place, place), step))
    several = b.and_(same_phase, b.icmp_unsigned("!=", old_place, place))
    return new, b.select(several, b.or_(place, constant(place, SEVERAL)), place)


def word(b: ir.IRBuilder, planes: Value, plane_bytes: Value, plane: int, index: Value) -> Value:
    """Return the address of the 32-bit word `index` in a plane of the shadow."""
    offset = b.add(b.mul(plane_bytes, ir.Constant(I64, plane)), b.shl(index, ir.Constant(I64, 2)))
    return b.gep(planes, [offset], source_etype=I8)


def spread(b: ir.IRBuilder, scalar: Value, like: Value) -> Value:
    """Repeat a scalar in every element of a vector as long as `like`."""
    return broadcast(b, scalar, like.type.count if isinstance(like.type, ir.VectorType) else 1)


def plane_bytes_of(b: ir.IRBuilder, size: Value, granule: int) -> Value:
    """Emit the bytes per plane for memory of `size` bytes."""
    rounded = b.add(size, ir.Constant(I64, 4))
    return b.shl(b.lshr(rounded, ir.Constant(I64, granule.bit_length() - 1)), ir.Constant(I64, 2))
