"""The explorer of banks: which words of shared memory a warp asks for, and how many passes that takes."""

from functools import lru_cache
from typing import Any

from labkit.figures.pictures import banks as bank_pictures
from labkit.figures.pictures.banks import COLUMN, ROW, SIZES, STRIDE, Request
from labkit.widgets.explorer import Choices, Explorer, Offer, View, menu, plain, selection, steps
from simt.common.limits import WARP
from simt.common.text import counted
from simt.counters.banks import BANK_BYTES, BANKS

TILES = (8, 16, 32)
PADDINGS = range(9)  # elements
STRIDES = range(34)  # elements
_PARTS = {1: "whole warp", 2: "half-warp", 4: "quarter-warp"}


def banks() -> Explorer:
    """Show which banks of shared memory a warp's lanes ask for, and how many passes that takes.

    Menus choose the access and swizzling; sliders set TILE, the padding, the bytes of an element, and the
    warp or the stride. Steps go through the passes.
    """

    def offer(access: str, tile: int, warp: int, step: int, **chosen: Any) -> dict[str, Offer]:
        warps = tile * tile // WARP
        request = Request(access, tile, warp=min(warp, warps - 1), **chosen)
        tiled = "" if access != STRIDE else "A stride asks for no tile."
        return {
            "step": Offer(_steps(request.wavefronts)),
            "warp": Offer(plain(range(warps)), tiled),
            "stride": Offer(why="" if access == STRIDE else "A tile's rows and columns have no stride."),
        } | {name: Offer(why=tiled) for name in ("tile", "padding", "swizzled")}

    accesses = [(f"a {COLUMN}", COLUMN), (f"a {ROW}", ROW), (f"{STRIDE} element", STRIDE)]
    controls = {
        "step": steps("pass", _steps(WARP)),
        "access": menu("the warp asks for", accesses, group="request"),
        "size": selection("size", [(counted(each, "byte"), each) for each in SIZES], 4, group="request"),
        "stride": selection("stride", plain(STRIDES), 2, group="request"),
        "warp": selection("warp", plain(range(32)), 0, group="request"),
        "tile": selection("TILE", plain(TILES), 32, group="tile in shared memory"),
        "padding": selection("padding", plain(PADDINGS), 0, group="tile in shared memory"),
        "swizzled": menu("swizzled", [("no", False), ("yes", True)], group="tile in shared memory"),
    }
    return Explorer(banks_view, controls, offer, "Which banks a warp asks, and in how many passes")


def _steps(passes: int) -> Choices:
    return [("all", 0), *((f"{number} of {passes}", number) for number in range(1, passes + 1))]


def banks_view(
    access: str, swizzled: bool, tile: int, padding: int, size: int, warp: int, stride: int, step: int = 0
) -> View:
    """Draw the words that a warp asks for in their banks; count the passes and the wasted bytes.

    The words of pass `step`, from 1, stand out; 0 shows all alike.
    """
    request = Request(access, tile, padding, swizzled, size, warp, stride)
    lines = [_passes(request), _worst_bank(request)]
    lines += [_stride(request)] if access == STRIDE else [_bytes(request), _free_paddings(request)]
    return View(
        (bank_pictures.banks(request, step),),
        _step(request, step) if step else _finding(request),
        "\n".join(lines),
        "Play the passes; point at a word or a bar to see its bank.",
    )


# Sentences.


def _finding(request: Request) -> str:
    least, passes = len(request.parts), f"{request.wavefronts} pass{'es' * (request.wavefronts != 1)}"
    if not request.conflicts:
        return f"{passes} over the banks, as few as possible: no bank conflict."
    return f"{passes} over the banks where {least} would do: {counted(request.conflicts, 'bank conflict')}."


def _step(request: Request, step: int) -> str:
    """Say which lanes a pass serves."""
    words = request.passes[step - 1][1]
    lanes = [lane for lane, address in enumerate(request.addresses) if address // BANK_BYTES in words]
    who = counted(len(lanes), "lane") if len(lanes) > 8 else f"lane {', '.join(map(str, lanes))}"
    banks = "bank delivers" if len(words) == 1 else "banks deliver"
    return f"Pass {step} of {request.wavefronts}: {len(words)} {banks} one word each, to {who}."


def _passes(request: Request) -> str:
    words, least = len(set().union(*request.parts)), len(request.parts)
    text = (
        f"The request of warp {request.warp} is for {counted(words, 'different word')}. It takes "
        f"{counted(request.wavefronts, 'wavefront')} (passes over the banks)"
    )
    if request.conflicts:
        text += f" where {least} would do: {counted(request.conflicts, 'bank conflict')}."
    else:
        text += ", as few as possible: no bank conflict."
    if least > 1:
        text += f" With {request.size} bytes per lane it is served in {_PARTS[least]}s, each in at least one."
    return text


def _worst_bank(request: Request) -> str:
    most, used = int(request.in_banks.max()), int(request.in_banks.any(axis=0).sum())
    part, bank = (int(at[0]) for at in (request.in_banks == most).nonzero())
    where = f" by one {_PARTS[len(request.parts)]}" if len(request.parts) > 1 else ""
    of_banks = f"banks in use: {used} of {BANKS}."
    if most == 1:
        return f"No bank is asked for more than one word at a time; {of_banks}"
    same = int((request.in_banks[part] == most).sum()) - 1
    others = f", and {counted(same, 'other bank')} for as many" if same else ""
    return f"Bank {bank} is asked for most, for {most} different words{where}{others}; {of_banks}"


def _bytes(request: Request) -> str:
    taken, words = request.elements * request.size, request.row_elements * request.words_each
    lost, further = request.tile * request.padding * request.size, words % BANKS
    begins = f"{counted(further, 'bank')} further on" if further else "in the same bank"
    return (
        f"A row of the tile is {words} words long, so the next begins {begins}. The tile takes {taken:,} "
        f"bytes; {f'{lost} of them ({lost / taken:.1%}) hold nothing' if lost else 'none of them is wasted'}."
    )


def _free_paddings(request: Request) -> str:
    found = ", ".join(map(str, _free(request.tile, request.size, request.swizzled)))
    swizzled = ", swizzled," if request.swizzled else ""
    return (
        f"Paddings with which this tile{swizzled} has no conflict in rows nor in columns: "
        f"{found or f'none of 0 to {PADDINGS[-1]}'}."
    )


@lru_cache(maxsize=32)
def _free(tile: int, size: int, swizzled: bool) -> tuple[int, ...]:
    """Return the paddings with which no warp has a conflict, in a row or in a column."""

    def conflicts(padding: int) -> int:
        return sum(
            Request(access, tile, padding, swizzled, size, warp).conflicts
            for access in (ROW, COLUMN)
            for warp in range(tile**2 // WARP)
        )

    return tuple(padding for padding in PADDINGS if not conflicts(padding))


def _stride(request: Request) -> str:
    words = request.stride * request.words_each
    if not words:
        return "All lanes ask for the same word: its bank hands it to all of them at once (broadcast)."
    further = f"{counted(words % BANKS, 'bank')} further on" if words % BANKS else "the same bank"
    return f"From lane to lane it is {counted(words, 'word')}: {further}."
