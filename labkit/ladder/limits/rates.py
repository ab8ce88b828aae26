"""Rates of one multiprocessor: instructions, L1 and shared-memory accesses, and stores per clock."""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from labkit.ladder.limits.machine import Limit, Machine, span

BODY, ACCESSES, PATTERN, SHARED_WARPS = 256, 8, 4096, 8  # as in rates.cu
WARP, LINE, SECTOR = 32, 128, 32
THREADS = 1024
STORE_WARPS = 16

_NAMES = "FFMA DFMA HFMA2 IADD IADD3 LOP3 IMAD IMAD_WIDE MUFU F2I I2F SHFL POPC"
SINGLE = tuple(_NAMES.split())
MIXED = {f"FFMA and {name}": f"FFMA_and<{name}>" for name in ("IADD", "IADD3", "LOP3", "IMAD", "MUFU")}
WIDTHS = {32: "B32", 64: "B64", 128: "B128"}  # bits per lane
INSTANCES = [
    *(f"issue<{name}>" for name in (*SINGLE, *MIXED.values())),
    *(f"load<{name}>" for name in WIDTHS.values()),
    *(f"store<{name}>" for name in ("B32", "B128")),
    *(f"load_shared<{name}>" for name in ("B32", "B128")),
    *(f"store_shared<{name}>" for name in ("B32", "B128", "ADD_S32", "ADD_F32")),
]

Offsets = list[int]  # bytes, one per lane


def limits() -> Iterator[Limit]:
    """Yield the rates of one multiprocessor."""
    for name in SINGLE:
        yield Limit("issue_rate", name, "instructions/clock/SM", partial(_issue, name))
    for name, instance in MIXED.items():
        yield Limit("issue_rate", name, "instructions/clock/SM", partial(_issue, instance))
    yield from _requests("load_clocks", _load_clocks, LOADS)
    for bits in WIDTHS:
        yield Limit("load_bandwidth", f"LDG.{bits}", "bytes/clock/SM", partial(_load_bandwidth, bits))
    yield from _requests("store_clocks", _store_clocks, STORES)
    yield from _requests("shared_clocks", _shared_clocks, SHARED)
    yield from _requests("shared_atomic_clocks", _shared_clocks, ATOMICS)
    yield Limit("clock", "FFMA, one SM", "MHz", partial(_clock, False))
    yield Limit("clock", "FFMA, all SMs", "MHz", partial(_clock, True))


def _requests(
    quantity: str, measure: Callable[..., float], variants: dict[str, tuple[Any, ...]]
) -> Iterator[Limit]:
    for name, pattern in variants.items():
        yield Limit(quantity, name, "clocks/request/SM", partial(measure, *pattern))


def distinct_banks(lines: int) -> Offsets:
    """Spread a warp over so many lines; each lane has its own word of the 32 in a line."""
    return [lane * lines // WARP * LINE + 4 * lane for lane in range(WARP)]


def same_banks(lines: int) -> Offsets:
    """Spread a warp over so many lines, in each of which its lanes take the first words."""
    return [lane * lines // WARP * LINE + lane % (WARP // lines) * 4 for lane in range(WARP)]


def whole_lines(lines: int) -> Offsets:
    """Spread a warp over so many lines, and in each over its four sectors as far as the lanes go."""
    lanes = WARP // lines
    return [lane * lines // WARP * LINE + lane % lanes * (LINE // lanes) for lane in range(WARP)]


def packed_sectors(sectors: int) -> Offsets:
    """Spread a warp over so many neighbouring sectors."""
    return [lane * sectors // WARP * SECTOR + lane % (WARP // sectors) % 8 * 4 for lane in range(WARP)]


def bank_words(words: int) -> Offsets:
    """Give each bank that is used so many different words."""
    return [lane % words * LINE + lane // words * 4 for lane in range(WARP)]


def contiguous(bits: int) -> Offsets:
    """Place the lanes one behind the other."""
    return [lane * bits // 8 for lane in range(WARP)]


def touched(offsets: Offsets, unit: int) -> int:
    """Return how many lines or sectors of `unit` bytes the words at these offsets touch."""
    return len({offset // unit for offset in offsets})


def _shape(offsets: Offsets) -> str:
    return f"lines={touched(offsets, LINE)} sectors={touched(offsets, SECTOR)}"


def _loads() -> dict[str, tuple[Any, ...]]:
    """Return offsets by variant; of two variants that are the same, the first."""
    found: dict[str, tuple[Any, ...]] = {}
    for lines in (1, 2, 4, 8, 16, 32):
        for name, offsets in (
            (", distinct banks", distinct_banks(lines)),
            (", same banks", same_banks(lines)),
            (", whole lines", whole_lines(lines)),
        ):
            if (offsets,) not in found.values():
                found[_shape(offsets) + name] = (offsets,)
    return found


def _stores() -> dict[str, tuple[Any, ...]]:
    packed = [packed_sectors(count) for count in (1, 2, 4, 8, 16, 32)]
    spread = [distinct_banks(lines) for lines in (2, 4, 8, 16, 32)]
    narrow = {_shape(offsets): ("B32", offsets) for offsets in packed}
    narrow |= {_shape(offsets) + ", spread": ("B32", offsets) for offsets in spread}
    return narrow | {"lines=4 sectors=16, 16 bytes per lane": ("B128", contiguous(128))}


LOADS, STORES = _loads(), _stores()
SHARED: dict[str, tuple[Any, ...]] = {
    **{f"LDS.32, {n} words per bank": ("load_shared<B32>", bank_words(n)) for n in (1, 2, 4, 8, 16, 32)},
    "LDS.32, one word": ("load_shared<B32>", [0] * WARP),
    "LDS.128": ("load_shared<B128>", contiguous(128)),
    **{f"STS.32, {n} words per bank": ("store_shared<B32>", bank_words(n)) for n in (1, 2, 4, 8, 16, 32)},
    "STS.128": ("store_shared<B128>", contiguous(128)),
}
ATOMICS: dict[str, tuple[Any, ...]] = {
    f"{kind}, {name}": (f"store_shared<{instance}>", offsets)
    for kind, instance in (("int", "ADD_S32"), ("float", "ADD_F32"))
    for name, offsets in (("distinct addresses", bank_words(1)), ("one address", [0] * WARP))
}


def _issue(instance: str, machine: Machine) -> float:
    rounds, threads = machine.rounds(64), THREADS if machine.is_gpu else 64
    kernel = machine.kernel("rates", f"issue<{instance}>")
    cycles = machine.cycles_of_block(kernel, threads, (1, rounds, 0))
    return rounds * BODY * (threads // WARP) / cycles


def _clock(is_everywhere: bool, machine: Machine) -> float:
    """Divide the cycles of multiply-adds by their time; launch and first round add less than a percent."""
    from labkit.devices.select import xp

    rounds, grid = machine.rounds(4096), machine.multiprocessors if is_everywhere else 1
    kernel, warps = machine.kernel("rates", "issue<FFMA>"), grid * THREADS // WARP
    starts, ends = xp.zeros(warps, xp.int64), xp.zeros(warps, xp.int64)
    seconds = machine.seconds(kernel, grid, THREADS, (starts, ends, 1, rounds, 0))
    blocks = zip(starts.reshape(grid, -1), ends.reshape(grid, -1), strict=True)
    return median(span(*block) for block in blocks) / seconds / 1e6


def _load(instance: str, offsets: Offsets, machine: Machine) -> float:
    """Return the clocks per request of loads that hit the L1."""
    rounds, threads = machine.rounds(128), THREADS if machine.is_gpu else 64
    args = (machine.array(2 * ACCESSES * PATTERN).view(np.int8), _on_device(offsets), 0, rounds, 0)
    cycles = machine.cycles_of_block(machine.kernel("rates", instance), threads, args)
    return cycles / (rounds * ACCESSES * threads // WARP)


def _load_clocks(offsets: Offsets, machine: Machine) -> float:
    return _load("load<B32>", offsets, machine)


def _load_bandwidth(bits: int, machine: Machine) -> float:
    return WARP * bits / 8 / _load(f"load<{WIDTHS[bits]}>", contiguous(bits), machine)


def _store_clocks(width: str, offsets: Offsets, machine: Machine) -> float:
    rounds = machine.rounds(128)
    data = machine.array((STORE_WARPS + 1) * ACCESSES * PATTERN).view(np.int8)
    args = (data, _on_device(offsets), 0, rounds)
    cycles = machine.cycles_of_block(machine.kernel("rates", f"store<{width}>"), STORE_WARPS * WARP, args)
    return cycles / (rounds * ACCESSES * STORE_WARPS)


def _shared_clocks(instance: str, offsets: Offsets, machine: Machine) -> float:
    """Let a few warps store, each to bytes of its own, or all load: they must wait for what they load."""
    is_load = instance.startswith("load")
    warps = THREADS // WARP if is_load and machine.is_gpu else SHARED_WARPS
    rounds = machine.rounds(512 * SHARED_WARPS // warps)
    never = (0,) if is_load else ()
    args = (_on_device(offsets), shift_of(instance, offsets), rounds, *never)
    cycles = machine.cycles_of_block(machine.kernel("rates", instance), warps * WARP, args)
    return cycles / (rounds * ACCESSES * warps)


def shift_of(instance: str, offsets: Offsets) -> int:
    """Return the bytes between a thread's accesses: past all that the warp touched, or within its rows."""
    if instance.endswith("B128>"):
        return WARP * 16 if WARP * 16 * ACCESSES <= PATTERN else 0
    rows = touched(offsets, LINE)
    return rows * LINE if rows * LINE * ACCESSES <= PATTERN else max(offsets) % LINE + 4


def _on_device(offsets: Offsets) -> Any:
    from labkit.devices.select import xp

    return xp.asarray(np.array(offsets, np.int32))
