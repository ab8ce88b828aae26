"""The records that Python and generated code share, as ctypes and as LLVM types, field by field alike."""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir

POINTER = ir.PointerType()
I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
ZERO = ir.Constant(I32, 0)

_LLVM = {ctypes.c_void_p: POINTER, ctypes.c_int32: I32, ctypes.c_int64: I64, ctypes.c_uint64: I64}


class Launch(ctypes.Structure):
    """What all threads of the host share during a launch; `stop` ends it early."""

    _fields_ = [
        ("params", ctypes.c_void_p),  # the kernel's parameters, laid out as PTX declares them
        ("ranges", ctypes.c_void_p),  # valid memory, RANGE_WORDS each: parameters, then module variables
        ("range_count", ctypes.c_int64),
        ("shared_bytes", ctypes.c_int64),
        ("block_count", ctypes.c_int64),  # blocks to run
        (
            "next_block",
            ctypes.c_int64,
        ),  # the next to run, as an index into `blocks` or the block's own number
        ("print", ctypes.c_void_p),  # called for `printf`, see printing.py
        ("blocks", ctypes.c_void_p),  # numbers of a sample of blocks, or null for all
        ("grid_x", ctypes.c_int32),
        ("grid_y", ctypes.c_int32),
        ("grid_z", ctypes.c_int32),
        ("stop", ctypes.c_int32),
        ("stopped_at", ctypes.c_int32),  # instruction that saw `stop`
        ("error", ctypes.c_int32),  # one of the codes below
        ("error_at", ctypes.c_int32),  # instruction
        ("error_mask", ctypes.c_int32),  # lanes
        ("error_warp", ctypes.c_int32),
        ("error_x", ctypes.c_int32),
        ("error_y", ctypes.c_int32),
        ("error_z", ctypes.c_int32),
        ("error_address", ctypes.c_uint64),
        ("error_shared", ctypes.c_void_p),  # where the block's shared memory begins
        ("error_other", ctypes.c_int32),  # the other barrier of two
    ]


RANGE_WORDS = 3  # first address, end, and the first address's distance from a 256-byte boundary on a GPU
BAD_ACCESS, PARTED_AT_BARRIER, DIFFERENT_BARRIERS, TRAPPED = 1, 2, 3, 4


class Frame(ctypes.Structure):
    """Head of a warp's frame; saved registers and local memory follow."""

    _fields_ = [
        ("resume", ctypes.c_int32),  # barrier the warp waits at, 0 before the first, -1 when it has ended
        ("mask", ctypes.c_int32),
        ("warp", ctypes.c_int32),
        ("x", ctypes.c_int32),
        ("y", ctypes.c_int32),
        ("z", ctypes.c_int32),
        ("shared", ctypes.c_void_p),
        ("counters", ctypes.c_void_p),
    ]


FRAME_HEAD = 64
ENDED, STOPPED = -1, -2


class Counter(ctypes.Structure):
    """What a counted run adds up for one memory instruction."""

    _fields_ = [(name, ctypes.c_int64) for name in ("requests", "threads", "sectors", "conflicts")]


def _types(structure: Any) -> ir.LiteralStructType:
    return ir.LiteralStructType([_LLVM[kind] for _, kind in structure._fields_])


TYPES = {structure: _types(structure) for structure in (Launch, Frame, Counter)}


def field(b: ir.IRBuilder, structure: Any, pointer: Any, name: str) -> Any:
    """Address of a field."""
    index = [field_name for field_name, _ in structure._fields_].index(name)
    return b.gep(pointer, [ZERO, ir.Constant(I32, index)], inbounds=True, source_etype=TYPES[structure])


def load_field(b: ir.IRBuilder, structure: Any, pointer: Any, name: str) -> Any:
    """Value of a field."""
    kind = dict(structure._fields_)[name]
    return b.load(field(b, structure, pointer, name), typ=_LLVM[kind])


def load_stop(b: ir.IRBuilder, launch: Any) -> Any:
    """The launch's `stop`, read anew each time: other threads of the host write it."""
    return b.load_atomic(field(b, Launch, launch, "stop"), "monotonic", 4, typ=I32)
