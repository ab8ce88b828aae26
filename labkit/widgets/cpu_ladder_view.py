"""The explorer of the CPU's rungs: how fast each is here, beside the machine's ceiling and the report."""

from functools import lru_cache
from typing import Any

from labkit import cpu, records
from labkit.figures.cpu_ladder import ladder_picture, share
from labkit.widgets.explorer import Explorer, Offer, View, menu, plain, selection

REPORT = "cpu-gpu-matmul"
SIZES = (128, 256, 512, 1024, 2048)
BLOCKS = (8, 16, 32, 64, 128, 256, 512, 1024)
_BLOCKED = ("cpu_avx_blocked", "cpu_avx_blocked_bt")
_NAMES = [name for name in cpu.RUNGS if name != "cpu_threads"] + [cpu.BLAS]  # one thread: it is cpu_packed
ABOVE = " when that was measured (its clock is higher now)"
_SLOWEST = 512  # up to this size all rungs are timed, beyond it the chosen one and those that are quick
_QUICK = ("cpu_loop_order", "cpu_packed", cpu.BLAS)


def cpu_ladder() -> Explorer:
    """Show how fast each rung of the CPU's product is here, by size and block.

    A menu, or a click on a bar, chooses the rung; sliders set the matrix size and BLOCK.
    """

    def offer(rung: str, **_: object) -> dict[str, Offer]:
        return {"block": Offer(why="" if rung in _BLOCKED else f"{rung} has no blocks of a chosen size.")}

    controls = {
        "rung": menu("rung", plain(_NAMES), "cpu_avx_blocked"),
        "n": selection("matrix size", [(f"N = {n}", n) for n in SIZES], 256),
        "block": selection("block side", [(f"BLOCK = {side}", side) for side in BLOCKS], 64),
    }
    title = "How fast each rung is on one core of this machine"
    return Explorer(cpu_ladder_view, controls, offer, title)


def cpu_ladder_view(rung: str, n: int, block: int) -> View:
    """Draw the rates of the rungs at size n on one core of this machine; `rung` and its BLOCK stand out."""
    names = [name for name in _NAMES if n <= _SLOWEST or name in (rung, *_QUICK)]
    rows = [_timed(name, n, block if name in _BLOCKED else None) for name in names]
    frame, peak = records.frame_of(rows), cpu.peak_gflops()
    chosen = next(row for row in rows if row["kernel"] == rung)
    blas = next(row for row in rows if row["kernel"] == cpu.BLAS)
    lines = [_here(chosen, blas["value"]), *_report(rung, n, block, chosen["value"])]
    if rung in _BLOCKED:
        lines.append(_block(block))
    return View(
        (ladder_picture(frame, peak, rung, _NAMES),),
        _reached(chosen, n, peak),
        "\n".join(lines),
        "Point at a bar to see its numbers; click it to choose its rung.",
    )


@lru_cache(maxsize=512)
def _timed(name: str, n: int, block: int | None) -> dict[str, Any]:
    parameters = {} if block is None else {"BLOCK": block}
    return cpu.time_rung(name, n, seconds=0.03, **parameters)


def _reached(row: dict[str, Any], n: int, peak: float) -> str:
    """Say how fast the chosen rung is here."""
    rate = 2 * n**3 / row["value"] / 1e6
    return (
        f"{row['kernel']} reaches {rate:.3g} GFLOP/s at N = {n}, {share(rate, peak)} of this core's peak"
        f"{ABOVE if rate > peak else ''}."
    )


def _here(row: dict[str, Any], blas: float) -> str:
    """Say what was measured here."""
    with_block = f" with BLOCK = {row['tile']}" if row["tile"] else ""
    rows = f" ({row['note']})" if row["note"] else ""
    beside = f", {blas / row['value']:.2g} of the speed of {cpu.Blas().name}"
    return (
        f"It took {row['value']:.4g} ms{with_block}{rows}{'' if row['kernel'] == cpu.BLAS else beside} "
        f"({row['source']})."
    )


def _report(rung: str, n: int, block: int, here: float) -> list[str]:
    """Compare with the report's time for the same rung and size, if it has one."""
    times = records.load(REPORT, "time", problem="matmul")
    times = times[(times.kernel == rung) & (times.n == n)]
    at_block = times[times.tile == block]
    found = at_block if len(at_block) else times[times.tile.isna()]
    if found.empty:
        return []
    row, unknown = found.iloc[0], ", block not stated" if rung in _BLOCKED else ""
    with_block = f" with BLOCK = {block}" if len(at_block) else unknown
    beside = f"{row.value / here:.3g} times as long ({row.source})"
    return [f"The report took {row.value:.4g} ms{with_block}: {beside}."]


def _block(block: int) -> str:
    """Say what a block takes of the caches."""
    size, caches = 4 * block * block, cpu.caches()
    fitting = [level for level, room in caches.items() if size <= room]
    room = f"it fits the {fitting[0]} cache ({caches[fitting[0]] // 1024:,} KB)" if fitting else ""
    return f"A block of B has {block} × {block} floats, {size / 1024:g} KB: {room or 'it fits no cache'}."
