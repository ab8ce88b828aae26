"""The explorer of occupancy: how many warps an SM holds, which resource says so, and what to change."""

from functools import lru_cache

from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from labkit.core.limits import MAX_THREADS, WARP
from labkit.core.occupancy import Gpu, gpus
from labkit.core.occupancy import gpu as find_gpu
from labkit.core.text import counted
from labkit.figures.style import Plot
from labkit.model.blocks_per_sm import RESOURCES, Block, cures
from labkit.widgets.explorer import Choices, Explorer, View, menu, plain, selection

THREADS = range(WARP, MAX_THREADS + 1, WARP)
REGISTERS = (*range(16, 256, 8), 255)
SHARED_KB = (0, 1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 99, 112, 128, 163, 192, 227)
_PARTS = {2: "half", 4: "quarter"}
_LINE, _CHOSEN, _BAR = "#0072B2", "#D55E00", "#9DB9D3"


def occupancy() -> Explorer:
    """Show how many warps an SM holds, which resource limits them, and what would let more in.

    A menu chooses the GPU; sliders set a block's threads, the registers of each, and shared memory.
    """

    def offer(gpu: str, **_: object) -> dict[str, Choices]:
        return {
            "shared_kb": plain(kb for kb in SHARED_KB if 1024 * kb <= find_gpu(gpu).shared_bytes_per_block)
        }

    controls = {
        "gpu": menu("GPU", [(each.name, each.name) for each in reversed(gpus())], "H200"),
        "threads": selection("block size", plain(THREADS), 256),
        "registers": selection("registers", plain(REGISTERS), 80),
        "shared_kb": selection("shared KB", plain(SHARED_KB), 8),
    }
    return Explorer(occupancy_view, controls, offer)


def occupancy_view(gpu: str, threads: int, registers: int, shared_kb: int) -> View:
    """Draw occupancy against the block size, and the blocks that each resource has room for."""
    block = Block(find_gpu(gpu), threads, registers, 1024 * shared_kb)
    figure = Plot(figsize=(9.5, 4))
    _draw_curve(figure.add_axes((0.07, 0.15, 0.47, 0.68)), block)
    _draw_limits(figure.add_axes((0.68, 0.15, 0.28, 0.68)), block)
    figure.suptitle(_finding(block), fontsize=10, x=0.01, y=0.98, ha="left", va="top")
    return View((figure,), "\n".join([_finding(block), _taken(block), *_changes(block)]))


# Drawing.


def _draw_curve(axes: Axes, block: Block) -> None:
    sizes = list(THREADS)
    curve = _curve(block.on, block.registers, block.shared)
    axes.plot(sizes, curve, ".-", color=_LINE, linewidth=1, markersize=4)
    axes.plot(block.threads, block.percent, "o", color=_CHOSEN, markersize=9, clip_on=False)
    axes.set(xlim=(0, MAX_THREADS + 24), ylim=(0, 105))
    axes.set(xlabel="block size (threads)", ylabel="occupancy (% of an SM's warps)")
    axes.xaxis.set_major_locator(MultipleLocator(128))
    axes.grid(alpha=0.3)
    title = f"{block.on.name}: {block.registers} registers a thread, {block.shared // 1024} KB a block"
    axes.set_title(title, fontsize=10, loc="left", y=1)


@lru_cache(maxsize=256)
def _curve(on: Gpu, registers: int, shared: int) -> list[float]:
    return [Block(on, threads, registers, shared).percent for threads in THREADS]


def _draw_limits(axes: Axes, block: Block) -> None:
    limits, fewest = block.limits, block.blocks
    longest = max(limits.values())
    for place, (name, blocks) in enumerate(reversed(limits.items())):
        color = _CHOSEN if name in block.limited_by else _BAR
        axes.barh(place, blocks, color=color, height=0.6)
        axes.text(blocks + 0.02 * longest, place, f"{blocks}", va="center", fontsize=9)
    axes.axvline(fewest, color=_CHOSEN, linewidth=1, linestyle=":")
    axes.set_yticks(range(len(limits)), [RESOURCES[name] for name in reversed(limits)])
    axes.set(xlim=(0, 1.15 * max(longest, 1)), xlabel="blocks that an SM has room for")
    axes.set_title(f"limited by {_limits(block)}", fontsize=10, loc="left", y=1)


# Sentences.


def _finding(block: Block) -> str:
    if not block.blocks:
        return f"0 % occupancy on {block.on.name}: not one block fits an SM, and the launch fails."
    return (
        f"{block.percent:.3g} % occupancy on {block.on.name}: {counted(block.blocks, 'block')} of "
        f"{counted(block.warps, 'warp')}, {block.blocks * block.warps} of {block.on.warps_per_sm} warps."
    )


def _taken(block: Block) -> str:
    """Say what a block takes, and of how much."""
    on = block.on
    text = (
        f"A block of {block.threads} threads takes {block.warps} of an SM's {on.warps_per_sm} places for "
        f"warps, {block.warps} × {block.registers_of_warp:,} of its {on.registers_per_sm:,} registers "
        f"(each {_PARTS[on.warp_unit]} of the SM has its own)"
    )
    if block.shared:
        own = (
            f", {on.reserved_shared_bytes / 1024:g} of them the driver's" if on.reserved_shared_bytes else ""
        )
        kb = f"{block.shared_taken / 1024:g} of {on.shared_bytes_per_sm / 1024:g} KB"
        text += f", and {kb} of shared memory{own}"
    return f"{text}. {on.blocks_per_sm} blocks are the most that an SM holds, whatever they take."


def _changes(block: Block) -> list[str]:
    """Say what would let more warps in."""
    if block.blocks * block.warps == block.on.warps_per_sm:
        return ["All places for warps are taken: no resource keeps more warps out."]
    lines = [
        f"Limited by {RESOURCES[name]}. With {_difference(name, better)}, "
        f"{counted(better.blocks, 'block')} would fit: {better.percent:.3g} %."
        for name, better in cures(block).items()
    ]
    return lines or [f"Limited by {_limits(block)}: to change one of them alone gives no more warps."]


def _difference(name: str, better: Block) -> str:
    if name == "registers":
        return f"at most {better.registers} registers a thread"
    if name == "shared_mem":
        return (
            f"at most {better.shared / 1024:g} KB of shared memory a block"
            if better.shared
            else "no shared memory"
        )
    return f"blocks of {better.threads} threads"


def _limits(block: Block) -> str:
    return " and ".join(RESOURCES[name] for name in block.limited_by)
