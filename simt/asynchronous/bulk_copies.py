"""Serve the bulk copies of a warp: where the bytes lie, which blocks get them, and who is told.

The bytes themselves are moved by tensor_copy.py, at once. Reference: PTX ISA, 9.7.9.25 (cp.async.bulk,
cp.reduce.async.bulk, and their `.tensor` forms).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

import numpy as np

from simt.analysis.layout import STRIDE
from simt.asynchronous import tensor_copy
from simt.asynchronous.cluster import Call, Host, memory
from simt.asynchronous.mbarriers import bytes_came, find
from simt.common.errors import InvalidAccess, SimtError
from simt.common.tensor_map import BYTES, decode

OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def serve(host: Host, call: Call) -> None:
    """Serve `cp.async.bulk` and `cp.reduce.async.bulk` in all their forms."""
    parts = call.instruction.parts
    if "commit_group" in parts:
        if host.watcher:
            host.watcher.commit_copies(call)
    elif "wait_group" in parts:
        if host.watcher:
            host.watcher.wait_copies(call, call.operand(0, call.lanes[0]))
    elif "prefetch" in parts:
        pass
    else:
        form = _tile if "tensor" in parts else _bytes
        for lane in call.lanes:
            try:
                form(host, call, lane)
            except InvalidAccess as error:
                if error.finding:
                    raise
                raise host.invalid(call, lane, str(error)) from None


def store_remotely(host: Host, call: Call) -> None:
    """Serve `st.async` and `red.async`: words for another block, which complete at an mbarrier there."""
    *_, type_ = call.instruction.parts
    size, count = int(type_[1:]) // 8, len(call.instruction.operands) - 3
    for lane in call.lanes:
        address, barrier = call.shared(0, lane), call.shared(1 + count, lane)
        host.own(call, lane, address, size * count)
        there = memory(address, size * count).view(f"u{size}")
        given = np.array([call.operand(1 + i, lane) for i in range(count)], np.uint64).astype(there.dtype)
        if call.instruction.parts[1] == "red":
            op = next(part for part in call.instruction.parts if part in OPERATIONS)
            given = tensor_copy.combined(op, type_, there, given)
        there[...] = given
        _done(host, call, lane, address, size * count, barrier)


def _tile(host: Host, call: Call, lane: int) -> None:
    """Copy a tile by its tensor map: (to, map, coordinates, mbarrier, blocks) or (map, coordinates, from)."""
    parts = call.instruction.parts
    count = int(next(part for part in parts if part in ("1d", "2d", "3d", "4d", "5d"))[0])
    if any(part.startswith("im2col") for part in parts):
        raise SimtError(f"line {call.instruction.line}: the simulator has no im2col copies: use tiles")
    brings = "bulk_group" not in parts
    data = _map(host, call, lane, call.operand(int(brings), lane))
    coordinates = [call.signed(1 + brings + i, lane) for i in range(count)]
    place = 1 + brings + count
    if not brings:
        start = call.shared(place, lane)
        rank, offset = host.place(call, lane, start)
        block = host.shared_of(call, rank)
        if host.watcher:
            first, end = tensor_copy.shared_bytes(data, offset)
            host.watcher.copy_out(call, lane, start, end - first, None)
        op = next((part for part in parts if part in OPERATIONS), "")
        if parts[2] == "reduce":
            tensor_copy.reduce(op, data, coordinates, block, offset)
        else:
            tensor_copy.store(data, coordinates, block, offset)
        return
    start, barrier = call.shared(0, lane), call.shared(place, lane)
    rank, offset = host.place(call, lane, start)
    for other in _receivers(call, lane, place + 1, rank):
        moved = tensor_copy.load(data, coordinates, host.shared_of(call, other), offset)
        first, end = tensor_copy.shared_bytes(data, offset)
        by = (other - rank) * STRIDE
        _done(host, call, lane, start + by, end - first, barrier + by, moved, decode(data).swizzle)


def _bytes(host: Host, call: Call, lane: int) -> None:
    """Copy plain bytes: (to, from, bytes, mbarrier, blocks), where the mbarrier is missing in bulk groups."""
    parts = call.instruction.parts
    to_global = parts.index("global") < parts.index("shared") if {"global", "shared"} <= set(parts) else False
    given = call.operand(0, lane), call.operand(1, lane)
    size = call.operand(2, lane)
    if to_global:
        start = call.shared(1, lane)
        host.own(call, lane, start, size)
        if host.watcher:
            host.watcher.copy_out(call, lane, start, size, None)
        _move(call, _global(host, call, lane, given[0], size), memory(start, size), given)
        return
    start, barrier = call.shared(0, lane), call.shared(3, lane)
    host.own(call, lane, start, size)
    if "global" in parts:
        source = _global(host, call, lane, given[1], size)
    else:
        from_ = call.shared(1, lane)
        host.own(call, lane, from_, size)
        source = memory(from_, size)
        if host.watcher:
            host.watcher.copy_out(call, lane, from_, size, find(host, call, lane, barrier))
    rank, _ = host.place(call, lane, start)
    for other in _receivers(call, lane, 4, rank):
        by = (other - rank) * STRIDE
        _move(call, memory(start + by, size), source, given)
        _done(host, call, lane, start + by, size, barrier + by)


def _move(call: Call, to: np.ndarray, from_: np.ndarray, given: Sequence[int]) -> None:
    """Copy bytes, or combine them with those that are there."""
    parts = call.instruction.parts
    if parts[2] == "reduce":
        op = next(part for part in parts if part in OPERATIONS)
        tensor_copy.reduce_bytes(op, parts[-1], to, from_, *given)
    else:
        tensor_copy.copy_bytes(to, from_, *given)


def _receivers(call: Call, lane: int, place: int, rank: int) -> Iterator[int]:
    """Yield the ranks of the blocks that get a copy: those in the mask of a multicast, or one."""
    if "multicast::cluster" not in call.instruction.parts:
        yield rank
        return
    mask = call.operand(place, lane) & 0xFFFF
    yield from (number for number in range(16) if mask >> number & 1)


def _done(
    host: Host,
    call: Call,
    lane: int,
    start: int,
    size: int,
    barrier: int,
    counted: int | None = None,
    swizzle: int | None = None,
) -> None:
    """Tell who watches, and the mbarrier, that bytes are there; it counts fewer where rows have gaps."""
    if host.watcher:
        host.watcher.copy_in(call, lane, start, size, find(host, call, lane, barrier), swizzle)
    bytes_came(host, call, lane, barrier, size if counted is None else counted)


def _map(host: Host, call: Call, lane: int, address: int) -> bytes:
    """Read the tensor map at an address, which may lie in parameters, global, constant or shared memory."""
    host.readable(call, lane, address, BYTES)
    return ctypes.string_at(address, BYTES)


def _global(host: Host, call: Call, lane: int, address: int, size: int) -> np.ndarray:
    host.in_arrays(call, lane, address, size)
    return memory(address, size)
