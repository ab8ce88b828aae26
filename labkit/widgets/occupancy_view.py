"""The explorer of occupancy: how many warps an SM holds, which resource says so, and what to change."""

from functools import lru_cache
from typing import Any

from labkit.figures.axes import Axes, Scale
from labkit.figures.svg import BLUE, RED, SKY, Svg, grid
from labkit.model.blocks_per_sm import RESOURCES, Block, cures
from labkit.widgets.explorer import Choices, Explorer, Offer, View, menu, plain, selection
from labkit.widgets.show_code import offered
from simt.common.errors import SimtError
from simt.common.limits import MAX_THREADS, WARP
from simt.common.occupancy import DEFAULT_GPU, Compiled, Gpu, gpus
from simt.common.occupancy import gpu as find_gpu
from simt.common.text import counted

THREADS = range(WARP, MAX_THREADS + 1, WARP)
REGISTERS = (*range(16, 256, 8), 255)
SHARED_KB = (0, 1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 99, 112, 128, 163, 192, 227)
_SHARED = [(f"{kb} KB", kb) for kb in SHARED_KB]
BLOCK = "block"  # the group of controls
_LEFT, _ACROSS = 52, 544  # of the curve: each block size has a column of 17 pixels
_BARS = 130  # where the bars begin


def occupancy(**kernels: Compiled) -> Explorer:
    """Show how many warps an SM holds, which resource limits them, and what would let more in.

    A menu chooses the GPU; sliders set a block's threads, the registers of each, and shared memory. In the
    picture a click on the curve sets the threads. With `kernels`, by name, a second menu chooses one: then
    registers and shared memory are those that NVIDIA's compiler gives it on the GPU.
    """

    def offer(gpu: str, kernel: str = "", **_: object) -> dict[str, Choices | Offer]:
        if kernel:
            return _of_kernel(kernel, kernels[kernel], find_gpu(gpu))
        most = find_gpu(gpu).shared_bytes_per_block
        return {
            "registers": Offer(),
            "shared_kb": [choice for choice in _SHARED if 1024 * choice[1] <= most],
        }

    def view(gpu: str, kernel: str, **figures: Any) -> View:
        if kernel:
            kernels[kernel].resources_for(find_gpu(gpu).arch)  # raises what keeps it from being compiled
        return occupancy_view(gpu, **figures)

    names = [each.name for each in reversed(gpus())]
    controls = {
        "threads": selection("block size", [(counted(each, "thread"), each) for each in THREADS], 256, BLOCK),
        "registers": selection("registers of each thread", plain(REGISTERS), 80, BLOCK),
        "shared_kb": selection("shared memory", _SHARED, 8, BLOCK),
    }
    if kernels:
        known = offered() or [DEFAULT_GPU]  # of other GPUs the compiler knows no registers
        names = [name for name in names if name in known]
        choices = [("none: use the sliders", ""), *((name, name) for name in kernels)]
        controls["kernel"] = menu("kernel", choices, "")
    controls["gpu"] = menu("GPU", [(name, name) for name in names], DEFAULT_GPU)
    title = "Occupancy: how many warps an SM holds"
    return Explorer(view if kernels else occupancy_view, controls, offer, title)


def _of_kernel(name: str, kernel: Compiled, gpu: Gpu) -> dict[str, Choices | Offer]:
    """Return what a kernel needs on a GPU, as the only position of each control."""
    try:
        needs = kernel.resources_for(gpu.arch)
    except SimtError:  # which the view tells
        return {}
    why = f"NVIDIA's compiler gives {name} these on {gpu.name}."
    kb = needs.shared_bytes / 1024
    return {
        "registers": Offer([(str(needs.registers), needs.registers)], why),
        "shared_kb": Offer([(f"{kb:.4g} KB", kb)], why),
    }


def occupancy_view(gpu: str, threads: int, registers: int, shared_kb: float) -> View:
    """Draw occupancy against the block size, and the blocks that each resource has room for."""
    block = Block(find_gpu(gpu), threads, registers, round(1024 * shared_kb))
    picture = Svg(_LEFT + _ACROSS + 14, 446, _alt(block))
    _draw_curve(picture, block)
    _draw_limits(picture, block)
    return View(
        (picture,),
        _finding(block),
        "\n".join([*_changes(block), _taken(block)]),
        "Point at the curve to try a block size, and click to keep it; point at a bar to see its sum.",
    )


# Drawing.


def _draw_curve(picture: Svg, block: Block) -> None:
    """Draw occupancy over block sizes; each size is a column that can be pointed at."""
    half = WARP / 2
    sizes = Scale(THREADS[0] - half, THREADS[-1] + half, ticks=tuple(range(128, MAX_THREADS + 1, 128)))
    axes = Axes(picture, (_LEFT, 30, _ACROSS, 196), sizes, Scale(0, 106, ticks=(0, 25, 50, 75, 100)))
    axes.frame("block size (threads)", "occupancy (resident warps, % of what an SM holds)")
    points = list(zip(THREADS, _curve(block.on, block.registers, block.shared), strict=True))
    x, y = axes.x(block.threads), axes.y(block.percent)
    picture.rect(x - 8.5, 30, 17, 196, class_="empty")
    axes.line(points, stroke=BLUE, stroke_width=1.5)
    for size, percent in points:
        axes.point(size, percent, size=3, fill=BLUE)
    axes.point(block.threads, block.percent, size=6, fill=RED)
    picture.add("circle", cx=x, cy=y, r=10, class_="line", stroke_width=2)
    beside = min(max(x, _LEFT + 24), _LEFT + _ACROSS - 24)
    told = f"{block.percent:.3g} %"
    picture.text(
        beside, y + (20 if block.percent > 85 else -20), told, "middle", font_weight="600", class_="halo"
    )
    tip = f"Occupancy by block size; left and right arrow keys choose. {_finding(block)}"
    acts = grid("sizes", tip, x=("threads", len(THREADS)), hover=True)
    picture.rect(_LEFT, 30, _ACROSS, 196, fill="transparent", **acts)


@lru_cache(maxsize=256)
def _curve(on: Gpu, registers: int, shared: int) -> list[float]:
    return [Block(on, threads, registers, shared).percent for threads in THREADS]


def _draw_limits(picture: Svg, block: Block) -> None:
    """Draw a bar per resource: the blocks that it has room for. The limit has a frame, and says so."""
    limits, top, wide = block.limits, 316, 400
    most = 1.25 * block.on.blocks_per_sm  # a longer bar is broken off
    blocks = Scale(0, min(max(*limits.values(), 1), most))
    picture.text(8, top - 24, "blocks that an SM has room for, by what they need", font_weight="600")
    for place, (name, count) in enumerate(limits.items()):
        y, limiting = top + 30 * place, name in block.limited_by
        length = wide * min(blocks.share(count), 1)
        label = f"{count}: the limit" if limiting else f"{count}"
        with picture.group(data_link=name, data_tip=_room(block, name), tabindex=0, data_key=name):
            picture.rect(0, y - 15, picture.width, 30, fill="transparent")
            picture.text(_BARS - 8, y, RESOURCES[name], "end", font_weight="700" if limiting else None)
            picture.rect(_BARS, y - 10, length, 20, fill=RED if limiting else SKY)
            if limiting:
                picture.rect(_BARS, y - 10, length, 20, class_="line", stroke_width=2)
            if count > most:
                for x in (_BARS + length - 22, _BARS + length - 14):
                    picture.line(x, y + 14, x + 8, y - 14, class_="hole", stroke_width=3)
            picture.text(_BARS + length + 8, y, label, font_weight="700" if limiting else None)
    x = _BARS + wide * blocks.share(block.blocks)
    picture.line(x, top - 14, x, top + 104, stroke=RED, stroke_width=1.5, stroke_dasharray="2 3")


# Sentences.


def _finding(block: Block) -> str:
    if not block.blocks:
        return f"0 % occupancy on {block.on.name}: not one block fits an SM, and the launch fails."
    return (
        f"{block.percent:.3g} % occupancy on {block.on.name}: {counted(block.blocks, 'block')} of "
        f"{counted(block.warps, 'warp')}, {block.blocks * block.warps} of {block.on.warps_per_sm} warps."
    )


def _alt(block: Block) -> str:
    room = ", ".join(f"{RESOURCES[name]} {count}" for name, count in block.limits.items())
    return (
        f"Occupancy on {block.on.name} by block size, with {block.registers} registers per thread and "
        f"{block.shared // 1024} KB a block: {block.percent:.3g} % with {block.threads} threads. "
        f"Blocks that an SM has room for: {room}."
    )


def _room(block: Block, name: str) -> str:
    """Say how a resource's number of blocks comes about."""
    on, count = block.on, counted(block.limits[name], "block")
    if not block.limits[name]:
        return f"{RESOURCES[name]}: not one block fits."
    if name == "registers":
        own = on.registers_per_sm // on.warp_unit
        fit = own // block.registers_of_warp
        return (
            f"registers: a warp takes {block.registers_of_warp:,}, so each sub-partition of the SM with its "
            f"{own:,} has room for {counted(fit, 'warp')}: {fit * on.warp_unit} warps, {count}."
        )
    if name == "shared_mem":
        if not block.shared_taken:
            return "shared memory: the block takes none."
        return (
            f"shared memory: a block takes {block.shared_taken / 1024:g} of "
            f"{on.shared_bytes_per_sm / 1024:g} KB: {count}."
        )
    if name == "warps":
        return f"warps: a block has {block.warps}, and an SM holds {on.warps_per_sm} resident warps: {count}."
    return f"blocks: an SM holds {on.blocks_per_sm}, whatever they take."


def _taken(block: Block) -> str:
    """Say what a block takes, and of how much."""
    on = block.on
    text = (
        f"A block of {block.threads} threads has {block.warps} of the {on.warps_per_sm} resident warps that "
        f"an SM holds, {block.warps} × {block.registers_of_warp:,} of its {on.registers_per_sm:,} registers "
        f"(each of its {on.warp_unit} sub-partitions has its own)"
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
        return ["An SM holds no more resident warps than these: no resource keeps more out."]
    lines = [
        f"Limited by {RESOURCES[name]}. With {_difference(name, better)}, "
        f"{counted(better.blocks, 'block')} would fit: {better.percent:.3g} %."
        for name, better in cures(block).items()
    ]
    return lines or [f"Limited by {_limits(block)}: to change one of them alone gives no more warps."]


def _difference(name: str, better: Block) -> str:
    if name == "registers":
        return f"at most {better.registers} registers per thread"
    if name == "shared_mem":
        return (
            f"at most {better.shared / 1024:g} KB of shared memory a block"
            if better.shared
            else "no shared memory"
        )
    return f"blocks of {better.threads} threads"


def _limits(block: Block) -> str:
    return " and ".join(RESOURCES[name] for name in block.limited_by)
