"""The explorer of banks: which words of shared memory a warp asks for, and how many passes that takes."""

from functools import lru_cache

from labkit.core.limits import WARP
from labkit.core.text import counted
from labkit.figures.pictures import banks as bank_pictures
from labkit.figures.pictures.banks import COLUMN, ROW, SIZES, STRIDE, Request
from labkit.simt.counters.banks import BANKS
from labkit.widgets.explorer import Choices, Explorer, View, menu, plain, selection

TILES = (8, 16, 32)
PADDINGS = range(9)  # elements
STRIDES = range(34)  # elements
_PARTS = {1: "whole warp", 2: "half-warp", 4: "quarter-warp"}


def banks() -> Explorer:
    """Show which banks of shared memory a warp's lanes ask for, and how many passes that takes.

    Menus choose the access and swizzling; sliders set TILE, the padding, the bytes of an element, and the
    warp or the stride.
    """

    def offer(access: str, tile: int, **chosen: int) -> dict[str, Choices]:
        if access == STRIDE:
            unused = {"tile": tile} | {name: chosen[name] for name in ("padding", "swizzled", "warp")}
            return {name: [("not used", value)] for name, value in unused.items()} | {
                "stride": plain(STRIDES)
            }
        return {
            "tile": plain(TILES),
            "padding": plain(PADDINGS),
            "swizzled": [("no", False), ("yes", True)],
            "warp": plain(range(tile * tile // WARP)),
            "stride": [("not used", chosen["stride"])],
        }

    controls = {
        "access": menu("access", [(f"a {COLUMN}", COLUMN), (f"a {ROW}", ROW), (f"{STRIDE} element", STRIDE)]),
        "swizzled": menu("swizzled", [("no", False), ("yes", True)]),
        "tile": selection("TILE", plain(TILES), 32),
        "padding": selection("padding", plain(PADDINGS), 0),
        "size": selection("size (bytes)", plain(SIZES), 4),
        "warp": selection("warp", plain(range(32)), 0),
        "stride": selection("stride", [("not used", 2)], 2),
    }
    return Explorer(banks_view, controls, offer)


def banks_view(
    access: str, swizzled: bool, tile: int, padding: int, size: int, warp: int, stride: int
) -> View:
    """Draw the words that a warp asks for in their banks; count the passes and the wasted bytes."""
    request = Request(access, tile, padding, swizzled, size, warp, stride)
    lines = [_passes(request), _worst_bank(request)]
    lines += [_stride(request)] if access == STRIDE else [_bytes(request), _free_paddings(request)]
    return View((bank_pictures.banks(request),), "\n".join(lines))


# Sentences.


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
        text += f" With {request.size} bytes a lane it goes by {_PARTS[least]}s, a wavefront each at least."
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
