"""The records that Python and generated code share, as ctypes and as LLVM types with equal fields."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from llvmlite import ir

from simt.common.bits import POISON as POISON
from simt.texture import Record as Texture

# An llvmlite value: a scalar, or a vector of one value per group of lanes. llvmlite has no type information.
Value = Any
Record = type[ctypes.Structure]

POINTER = ir.PointerType()
I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
ZERO = ir.Constant(I32, 0)

_LLVM: dict[type, ir.Type] = {
    ctypes.c_void_p: POINTER,
    ctypes.c_int32: I32,
    ctypes.c_uint32: I32,
    ctypes.c_int64: I64,
    ctypes.c_uint64: I64,
}


class Launch(ctypes.Structure):
    """What all host threads share during a launch; `stop` ends it early."""

    _fields_ = [
        ("params", ctypes.c_void_p),  # the kernel's parameters, laid out as PTX declares them
        ("ranges", ctypes.c_void_p),  # valid memory, one Range each: parameters, then module variables
        ("range_count", ctypes.c_int64),
        ("shared_bytes", ctypes.c_int64),
        ("block_count", ctypes.c_int64),  # blocks to run
        ("next_block", ctypes.c_int64),  # an index into `blocks`, or the block's own number
        ("print", ctypes.c_void_p),  # called for `printf`, see printing.py
        ("serve", ctypes.c_void_p),  # called for what the host does, see services.py
        ("blocks", ctypes.c_void_p),  # numbers of a sample of blocks, or null for all
        ("grid_x", ctypes.c_int32),
        ("grid_y", ctypes.c_int32),
        ("grid_z", ctypes.c_int32),
        ("stop", ctypes.c_int32),
        ("stopped_at", ctypes.c_int32),  # the instruction that saw `stop`
        ("stopped_x", ctypes.c_int32),  # in this block
        ("stopped_y", ctypes.c_int32),
        ("stopped_z", ctypes.c_int32),
        ("error", ctypes.c_int32),  # one of the codes below
        ("error_at", ctypes.c_int32),  # instruction
        ("error_mask", ctypes.c_int32),  # lanes
        ("error_warp", ctypes.c_int32),
        ("error_x", ctypes.c_int32),
        ("error_y", ctypes.c_int32),
        ("error_z", ctypes.c_int32),
        ("error_address", ctypes.c_uint64),
        ("error_shared", ctypes.c_void_p),  # where the block's shared memory begins
        ("error_other", ctypes.c_int32),  # the other barrier, where two differ; the handle of a surface
        ("error_depth", ctypes.c_int64),  # the third coordinate; the first two are the halves of the address
        # for a checked run, see checking.py:
        ("stamp", ctypes.c_uint32),  # of the interval between two barriers; each next one is STAMP_STEP more
        ("launch_stamp", ctypes.c_uint32),  # older than any of this launch; stands for all earlier blocks
        ("block_stamp", ctypes.c_uint32),  # of the block's first interval, here since the grid's barrier
        ("shared_stamp", ctypes.c_uint32),  # of the block's first interval
        ("released", ctypes.c_uint32),  # stamp of the last atomic operation after a fence
        ("fenced", ctypes.c_int32),  # has a fence run in this block since then?
        ("acquired", ctypes.c_int32),  # has the block run an atomic operation?
        ("sites", ctypes.c_int64),  # instructions of the kernel
        ("found", ctypes.c_void_p),  # called for a finding, see findings.py
        ("muted", ctypes.c_void_p),  # one byte per kind and instruction: how often it was found
        ("shared_shadow", ctypes.c_void_p),  # shadow of the block's shared memory
        ("looks", ctypes.c_void_p),  # addresses of the functions of warp_look.py that the kernel calls
        ("textures", ctypes.c_void_p),  # by handle, the address of a Texture or null
        ("texture_count", ctypes.c_int64),
        # for a recorded run: the numbers of a block's warps, in the order in which they run in each round
        ("order", ctypes.c_void_p),
        ("rounds", ctypes.c_int64),  # orders; a round ends when all warps are at a barrier or have ended
        ("round", ctypes.c_int64),
        # for a checked run where blocks take turns: per interval since `launch_stamp`, its block's number + 1
        ("owners", ctypes.c_void_p),
        ("owner_count", ctypes.c_int64),
        ("owner", ctypes.c_uint32),  # the number of the block that has its turn
    ]


class Range(ctypes.Structure):
    """A range of valid memory, and in a checked run its shadow."""

    _fields_ = [
        ("start", ctypes.c_int64),
        ("end", ctypes.c_int64),
        ("shift", ctypes.c_int64),  # how far past a 256-byte boundary it starts on a GPU
        ("is_constant", ctypes.c_int64),  # a `__constant__` variable: kernels only read it
        ("shadow", ctypes.c_void_p),  # null if the kernel never writes to it
        ("plane_bytes", ctypes.c_int64),  # of the shadow
        ("poisoned", ctypes.c_int64),  # holds memory that was never written
    ]


BAD_ACCESS, PARTED_AT_BARRIER, DIFFERENT_BARRIERS, TRAPPED, BAD_TEXTURE, BAD_SURFACE_PLACE = range(1, 7)
BAD_DESCRIPTOR = 7  # `error_address` has its bits, `error_other` is 0 for A and 1 for B
# Kinds of findings of a checked run, and how many of one kind an instruction may report.
OUT_OF_BOUNDS, UNWRITTEN, READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE = range(5)
EXITED, SYNC_MASK, UNSET = range(5, 8)
KINDS, REPEATS = 8, 4
STAMP_STEP = 64  # between the stamps of two intervals; a stamp also names the warp


class Frame(ctypes.Structure):
    """The head of a warp's frame; saved registers and local memory follow."""

    _fields_ = [
        ("resume", ctypes.c_int32),  # barrier the warp waits at, 0 before the first, -1 when it has ended
        ("mask", ctypes.c_int32),
        ("warp", ctypes.c_int32),
        ("x", ctypes.c_int32),  # of the block; before a cooperative launch, the block's number
        ("y", ctypes.c_int32),
        ("z", ctypes.c_int32),
        ("shared", ctypes.c_void_p),
        ("counters", ctypes.c_void_p),  # one Counter per instruction
        ("visits", ctypes.c_void_p),  # one Visits per basic block
        ("votes", ctypes.c_int32),  # lanes whose predicate held at the last __syncthreads_count/and/or
        ("voted", ctypes.c_int32),  # of the whole block: threads whose predicate held,
        ("voters", ctypes.c_int32),  # of how many
        ("phase", ctypes.c_int32),  # in a checked run, __syncwarp calls since the last barrier
        # for a run that records where global memory is accessed, see traffic.py; and the log of recording.py:
        ("trace", ctypes.c_void_p),  # the number of records, how many a warp may write, then the records
        ("traced", ctypes.c_int64),  # records that the warp has written
        ("traced_block", ctypes.c_int64),  # in this block
        ("rank", ctypes.c_int32),  # of the block in its cluster
    ]


ENDED, STOPPED = -1, -2


class Counter(ctypes.Structure):
    """The counters of one instruction in a counted run.

    `distinct`: different lane addresses, summed over the requests. `turns`: of atomic operations, the most
    lanes of a request at one address, summed. `stride`, which is last: the last distance seen between lanes.
    """

    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            *("requests", "threads", "sectors", "distinct", "conflicts", "divergent", "turns", "stride"),
        )
    ]


class Usual(ctypes.Structure):
    """What a basic block's visit by all 32 lanes adds to an instruction's counters, if known."""

    _fields_ = [(name, ctypes.c_int64) for name in ("distinct", "conflicts")]


class Visits(ctypes.Structure):
    """How often a basic block ran with all 32 lanes and with fewer, and how many lanes those had in all."""

    _fields_ = [(name, ctypes.c_int64) for name in ("full", "partial", "lanes")]


class Touch(ctypes.Structure):
    """One line of 128 bytes that a request touches: `line` is its address / 128.

    `what`: bits 0 to 3 are the sectors, bit 4 is set in a request's first record; the warp's number in the
    block from bit 8, the instruction from bit 24.
    """

    _fields_ = [(name, ctypes.c_int64) for name in ("line", "block", "what")]


@cache
def _fields(structure: Record) -> dict[str, type]:
    """Map the names of a record's fields to their types, in order."""
    return {entry[0]: entry[1] for entry in structure._fields_}


def _types(structure: Record) -> ir.LiteralStructType:
    return ir.LiteralStructType([_LLVM[kind] for kind in _fields(structure).values()])


TYPES: dict[Record, ir.LiteralStructType] = {
    structure: _types(structure)
    for structure in (Launch, Range, Frame, Counter, Usual, Visits, Touch, Texture)
}


def field(b: ir.IRBuilder, structure: Record, pointer: Value, name: str) -> Value:
    """Emit the address of a field."""
    index = list(_fields(structure)).index(name)
    return b.gep(pointer, [ZERO, ir.Constant(I32, index)], inbounds=True, source_etype=TYPES[structure])


def load_field(b: ir.IRBuilder, structure: Record, pointer: Value, name: str) -> Value:
    """Emit a load of a field."""
    kind = _fields(structure)[name]
    return b.load(field(b, structure, pointer, name), typ=_LLVM[kind])


def load_stop(b: ir.IRBuilder, launch: Value) -> Value:
    """Emit a load of `stop` that always reads memory: other threads of the host write to it."""
    return b.load_atomic(field(b, Launch, launch, "stop"), "monotonic", 4, typ=I32)


def table(module: ir.Module, name: str) -> ir.GlobalVariable:
    """Declare a constant whose bytes are known only at the end: see `fill`."""
    declared = ir.GlobalVariable(module, ir.ArrayType(I8, 0), name)
    declared.global_constant, declared.linkage, declared.align = True, "internal", 8
    return declared


def fill(declared: ir.GlobalVariable, item: ir.Type, items: Sequence[ir.Function] | bytearray) -> None:
    """Set what a `table` holds: `items` of type `item`; a bytearray is quickest."""
    declared.value_type = ir.ArrayType(item, len(items))
    declared.initializer = ir.Constant(declared.value_type, items)
