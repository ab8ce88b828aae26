"""A recording as the page gets it: one JSON object, with columns and values as compressed bytes.

`labkit/widgets/page/step` reads it. An event is one PTX instruction that a warp executes with some lanes.
The object has the launch and the block, `source` lines, `sites` (the instructions), `registers`, `variables`
with the instructions between which each lives in a register, `objects` (memory), `findings` with their
events, what `stopped` the run, what was `cut`, and the event at which to `start`. `data` is base64 of gzip of
these columns, each padded to a multiple of 8 bytes:

    site   Uint16[n]    number of the instruction
    warp   Uint8[n]
    mask   Uint32[n]    the lanes that take part
    forms  Uint8[]      the form of each vector of 32 values
    words  Uint32[]     the values

For each event follow, in order: the addresses of an access, a vector per register that the instruction
writes, and for a store or an atomic operation one per item: what memory then holds. A form is one of NOTHING,
UNIFORM (one value), AFFINE (first value and step from lane to lane, of 32 bits), FULL (32 values) and FEW
(those of the lanes in the mask). Values of 64 bits take two words.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np

from simt.counters.recording import ADDRESSES, AFTER, RESULT
from simt.findings import Finding
from simt.ptx import (
    TYPE_BYTES,
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
    float_value,
)
from simt.recording.events import ACCESSES, LANES, items_of, kind_of
from simt.recording.record import Recording

NOTHING, UNIFORM, AFFINE, FULL, FEW = range(5)
MANY = 20  # lanes: from so many on, all 32 values are as short as theirs


def page_data(recording: Recording, machine_code: dict[str, Any] | None = None, start: int = 0) -> str:
    """Return the JSON text; the page begins after `start` events."""
    columns, sizes = _columns(recording)
    told = {
        "version": 1,
        "kernel": recording.kernel,
        "grid": recording.launch.grid,
        "block": recording.launch.block,
        "at": recording.at,
        "warps": recording.warps,
        "source": list(recording.source),
        "schedule": recording.schedule,
        "code": "as written" if recording.is_debug else "optimised",
        "sites": [_site(*each, recording) for each in zip(recording.code, recording.lines, strict=True)],
        "registers": [{"name": name, "type": type_} for name, type_ in recording.registers.items()],
        "variables": [
            {
                "name": each.name,
                "type": each.type,
                "function": each.function,
                "ranges": [[first, end, recording.numbers[name]] for first, end, name in each.ranges],
            }
            for each in recording.variables
        ],
        "objects": [
            {
                "space": each.space,
                "name": each.name,
                "start": each.start,
                "bytes": each.bytes,
                "type": each.type,
                "shape": each.shape,
                "item": each.item,
                "host": each.host,
            }
            for each in sorted(recording.memory.objects, key=lambda each: each.start)
        ],
        "shared_start": recording.memory.shared_start,
        "shared_bytes": recording.memory.shared_bytes,
        "findings": [
            {
                "tool": each.finding.tool,
                "message": each.finding.message,
                "line": each.finding.line,
                "events": each.events,
                "lanes": each.lanes,
                "address": each.address,
            }
            for each in recording.seen
        ],
        "stopped": _stopped(recording),
        "cut": None
        if not recording.cut
        else {
            "recorded": recording.events.kept,
            "total": recording.events.total,
            "message": recording.cut,
        },
        "machine_code": machine_code,
        "start": start,
        "events": len(recording.events),
        **sizes,
        "data": base64.b64encode(gzip.compress(columns, 6)).decode("ascii"),
    }
    return json.dumps(told, separators=(",", ":"))


def _stopped(recording: Recording) -> dict[str, Any] | None:
    """Return what ended the run early, and its line: the last one that is known."""
    if recording.error is None:
        return None
    finding, events = recording.error.finding, recording.events
    line = finding.line if isinstance(finding, Finding) else 0
    if not line and len(events):
        own = events.site[events.warp == events.warp[-1]][::-1]
        line = next((found for site in own if (found := recording.code[site].line)), 0)
    return {"message": str(recording.error), "line": line}


def _site(instruction: Instruction, line: int, recording: Recording) -> dict[str, Any]:
    kind = kind_of(instruction)
    is_access = kind in ACCESSES
    return {
        "line": line,
        "text": text_of(instruction),
        "kind": kind,
        "space": instruction.space if is_access else "",
        "type": instruction.type if is_access else "",
        "items": items_of(instruction) if is_access else 0,
        "bytes": TYPE_BYTES[instruction.type] if is_access else 0,
        "reads": [recording.numbers[each.name] for each in instruction.sources],
        "writes": [recording.numbers[each.name] for each in instruction.results],
    }


def text_of(instruction: Instruction) -> str:
    """Return an instruction as PTX writes it."""
    guard = instruction.guard
    before = f"@{'!' if guard.negated else ''}{guard.register.name} " if guard else ""
    operands = ", ".join(_operand(each) for each in instruction.operands)
    return f"{before}{instruction.opcode} {operands}".rstrip() + ";"


def _operand(operand: Operand) -> str:
    match operand:
        case Register(name) | Symbol(name):
            return name
        case Immediate():
            return f"{float_value(operand):g}" if operand.is_float else str(operand.value)
        case Address(base, offset):
            return f"[{_operand(base)}{f'+{offset}' if offset else ''}]"
        case Vector(items):
            return "{" + ", ".join(_operand(each) for each in items) + "}"


def _columns(recording: Recording) -> tuple[bytes, dict[str, int]]:
    """Return the columns one after the other, and how long the last two are."""
    events = recording.events
    forms, words = _vectors(recording)
    columns = (
        events.site.astype("<u2"),
        events.warp.astype("<u1"),
        events.mask.astype("<u4"),
        forms,
        words.astype("<u4"),
    )
    data = b"".join(each.tobytes() + bytes(-each.nbytes % 8) for each in columns)
    return data, {"forms_count": len(forms), "words_count": len(words)}


def _vectors(recording: Recording) -> tuple[np.ndarray, np.ndarray]:
    """Return the form of each vector, and the words of all, in the order of events and their vectors."""
    events, vectors = recording.events, recording.events.vectors
    slot, slots = _slots(recording)
    forms, counts = np.zeros(slots, np.uint8), np.zeros(slots, np.int64)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # slots, first words, words per row
    for wide in (False, True):
        numbers, rows = vectors.rows(wide)
        addresses = vectors.role[numbers] == ADDRESSES
        masks = events.mask[vectors.event[numbers]]
        if wide and addresses.any():
            warps = events.warp[vectors.event[numbers[addresses]]]
            places = recording.memory.places(rows[addresses], warps)
            parts += _encoded(slot[numbers[addresses]], places, masks[addresses], forms, counts)
            numbers, rows, masks = numbers[~addresses], rows[~addresses], masks[~addresses]
        parts += _encoded(slot[numbers], rows, masks, forms, counts)
    starts = np.cumsum(counts) - counts
    words = np.zeros(int(counts.sum()), np.uint32)
    for some, values, position in parts:
        words[starts[some] + position] = values
    return forms, words


def _slots(recording: Recording) -> tuple[np.ndarray, int]:
    """Return the place of each kept vector among those that every event has, and how many these are."""
    events, vectors, code = recording.events, recording.events.vectors, recording.code
    kinds = recording.kinds
    before = np.isin(kinds, ACCESSES).astype(np.int64)
    results = np.array([len(each.results) for each in code], np.int64)
    after = np.array(
        [
            items_of(each) if kind in ("store", "atomic") else 0
            for each, kind in zip(code, kinds, strict=True)
        ],
        np.int64,
    )
    each_event = (before + results + after)[events.site]
    first = np.cumsum(each_event) - each_event
    site, role = events.site[vectors.event], vectors.role
    place = np.where(
        role == ADDRESSES,
        0,
        np.where(role < AFTER, before[site] + role - RESULT, before[site] + results[site] + role - AFTER),
    )
    return first[vectors.event] + place, int(each_event.sum())


def _encoded(
    slots: np.ndarray, rows: np.ndarray, masks: np.ndarray, forms: np.ndarray, counts: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Choose the shortest form for each row; return (slot, word, place of the word) of all their words."""
    if not len(slots):
        return []
    wide = rows.dtype == np.uint64
    active = masks[:, None] >> LANES & 1 > 0
    lane = np.argmax(active, axis=1)
    numbers = np.arange(len(rows))
    first = rows[numbers, lane]
    uniform = ((rows == first[:, None]) | ~active).all(axis=1)
    second = np.argmax(active & (lane[:, None] < LANES), axis=1)
    step = (rows[numbers, second] - first).astype(rows.dtype)
    base = (first - step * lane.astype(rows.dtype)).astype(rows.dtype)
    ramp = (base[:, None] + step[:, None] * LANES.astype(rows.dtype)).astype(rows.dtype)
    affine = ((rows == ramp) | ~active).all(axis=1) & ~uniform & (second == lane + 1) & (not wide)
    few = ~uniform & ~affine & (active.sum(axis=1) < MANY)
    form = np.select([uniform, affine, few], [UNIFORM, AFFINE, FEW], FULL)
    forms[slots] = form
    found = []

    def keep(chosen: np.ndarray, values: np.ndarray, of: np.ndarray, place: np.ndarray) -> None:
        """Keep values of the chosen rows, each at its place among the words of its row."""
        if wide:
            values = values.astype("<u8").view("<u4")
            of, place = np.repeat(of, 2), np.repeat(2 * place, 2) + np.tile([0, 1], len(place))
        found.append((slots[chosen][of], values, place))

    each = 2 if wide else 1
    for chosen, values in (
        (np.flatnonzero(form == UNIFORM), lambda c: first[c][:, None]),
        (np.flatnonzero(form == AFFINE), lambda c: np.stack([base[c], step[c]], axis=1)),
        (np.flatnonzero(form == FULL), lambda c: rows[c]),
    ):
        block = np.ascontiguousarray(values(chosen))
        width = block.shape[1]
        counts[slots[chosen]] = width * each
        of = np.repeat(np.arange(len(chosen)), width)
        keep(chosen, block.reshape(-1), of, np.tile(np.arange(width), len(chosen)))
    chosen = np.flatnonzero(form == FEW)
    counts[slots[chosen]] = active[chosen].sum(axis=1) * each
    of, lanes = np.nonzero(active[chosen])
    place = (np.cumsum(active[chosen], axis=1) - 1)[of, lanes]
    keep(chosen, rows[chosen][of, lanes], of, place)
    return found
