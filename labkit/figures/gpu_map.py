"""A map of a GPU, from the host down to the cores; and a strip of it that says "you are here".

The map is drawn as far memory above and near memory below: each frame holds what is inside it. Its figures
are those of `labkit.model.gpu_parts`, each with its origin below it.
"""

from collections.abc import Mapping

import numpy as np

from labkit.figures.svg import BLUE, Svg, button, ink_on
from labkit.model.gpu_parts import (
    CORES,
    DEVICE_MEMORY,
    HOST,
    L1,
    L2,
    PARTS,
    REGISTERS,
    SCHEDULER,
    SHARED,
    TENSOR,
    Figure,
    Part,
    parts,
)
from simt.common.limits import WARP
from simt.common.occupancy import DEFAULT_GPU, Gpu
from simt.common.occupancy import gpu as find_gpu
from simt.common.text import article

_WIDTH, _ROW = 640, 38
_COLUMNS = {"size": 238, "rate": 356, "latency": 500}  # where the figures of a row begin
_CHOSEN = BLUE
_LONG = 76  # letters: more have no room in the strip's title


def gpu_map(gpu: Gpu, chosen: str = "", acts: bool = False) -> Svg:
    """Draw the parts of a GPU with size, rate and latency; the part `chosen` stands out.

    With `acts`, a click on a part sets an explorer's control `part` to its place in PARTS.
    """
    found = parts(gpu)
    title = _finding(gpu, found)
    picture = Svg(_WIDTH, 606, f"Map of {article(gpu.name)}, from the host to the cores. {title}")
    picture.title(title)
    for heading, x in zip(("size", "bandwidth or rate", "latency"), _COLUMNS.values(), strict=True):
        picture.text(x, 36, heading, class_="soft")
    rows = _Rows(picture, found, chosen, acts)
    rows.draw(HOST, 8, 48)
    _link(picture, 86, "PCIe or NVLink")
    _frame(picture, (8, 112, 624, 488), "the GPU's board")
    rows.draw(DEVICE_MEMORY, 16, 132)
    _link(picture, 170)
    _frame(picture, (16, 190, 608, 402), "the GPU's chip")
    rows.draw(L2, 24, 210)
    _link(picture, 248)
    for offset in (10, 5):  # other SMs behind the one that is shown
        picture.rect(24 + offset, 268 + offset, 578, 306, class_="grid")
    clock = f", {gpu.boost_mhz:,} MHz at most (data sheet)" if gpu.boost_mhz else ""
    sms = f"one of {gpu.multiprocessors} SMs (data sheet){clock}"
    _frame(picture, (24, 268, 578, 306), sms, filled=True)
    _cells(picture, (594, 270), gpu.multiprocessors, 4, 4)
    rows.draw(L1, 32, 288, 562)
    rows.draw(SHARED, 32, 288 + _ROW, 562)
    _cells(picture, (228, 293 + _ROW), WARP, 1, 1.5, 24)  # its banks
    _partitions(picture, gpu, 32, 374)
    for place, name in enumerate((SCHEDULER, REGISTERS, CORES, TENSOR)):
        rows.draw(name, 40, 412 + _ROW * place, 546)
    _cells(picture, (228, 419), gpu.warps_per_sm // gpu.warp_unit, 2, 6, 10)  # its warp slots
    _cells(picture, (228, 417 + 2 * _ROW), gpu.fp32_cores_per_sm // gpu.warp_unit, 4, 6)
    return picture


def you_are_here(*names: str, gpu: str = DEFAULT_GPU) -> Svg:
    """Draw a strip of the map of a GPU in which the parts `names` stand out: those of PARTS.

    Below it stand their figures. Raises ValueError for a part that is not on the map.
    """
    unknown = [name for name in names if name not in PARTS]
    if unknown or not names:
        asked = f"there is no part {unknown[0]!r} on the map" if unknown else "name at least one part"
        raise ValueError(f"{asked}. Choose from: {', '.join(PARTS)}.")
    board = find_gpu(gpu)
    figures = [f"{name} ({board.name}): {told}" for name in names if (told := _told(parts(board)[name]))]
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
    alt = f"You are here: {listed}, on a GPU's map. {'. '.join(figures)}"
    picture = Svg(_WIDTH, 106 + 16 * len(figures), alt)
    title = f"You are here: {listed if len(listed) < _LONG else f'the {len(names)} parts that are marked'}"
    picture.title(title, 10)
    for x, y, width, height, title in _STRIP_FRAMES:
        picture.rect(x, y, width, height, class_="grid")
        picture.text(x + 6, y + 8, title, class_="soft", font_size=9)
    for name, (x, y, width, height) in _STRIP.items():
        marked = name in names
        picture.rect(x, y, width, height, **({"fill": _CHOSEN} if marked else {"class_": "empty"}))
        look = {"class_": ink_on(_CHOSEN), "font_weight": "600"} if marked else {}
        words = name.split() if height > 30 else [name]
        for line, word in enumerate(words):
            middle = y + height / 2 + 13 * (line - (len(words) - 1) / 2)
            picture.text(x + width / 2, middle, word, "middle", font_size=11, **look)
    for x in (64, 156, 238):
        picture.line(x, 66, x + 16, 66)
    for line, told in enumerate(figures):
        picture.text(8, 110 + 16 * line, told, class_="soft", font_size=11)
    return picture


# Place and size of each part on the strip, from far to near, and of the frames around them.
_STRIP = {
    HOST: (8, 44, 56, 44),
    DEVICE_MEMORY: (88, 44, 68, 44),
    L2: (172, 44, 66, 44),
    L1: (262, 46, 108, 20),
    SHARED: (262, 68, 108, 20),
    SCHEDULER: (384, 49, 114, 18),
    REGISTERS: (501, 49, 114, 18),
    CORES: (384, 69, 114, 18),
    TENSOR: (501, 69, 114, 18),
}
_STRIP_FRAMES = (
    (80, 22, 552, 76, "GPU"),
    (254, 27, 374, 67, "SM"),
    (378, 33, 244, 58, "sub-partition"),
)


class _Rows:
    """Draws the rows of a map: a part's name, and its figures with their origins."""

    def __init__(self, picture: Svg, found: Mapping[str, Part], chosen: str, acts: bool) -> None:
        self.picture, self.found, self.chosen, self.acts = picture, found, chosen, acts

    def draw(self, name: str, x: float, y: float, width: float = 0) -> None:
        """Draw the part's row at (x, y); without a width, it is in the middle of the picture."""
        part, picture, marked = self.found[name], self.picture, name == self.chosen
        width, tip = width or _WIDTH - 2 * x, f"{name}: {part.says}"
        acts = button(name, tip, {"part": PARTS.index(name)}, marked) if self.acts else {}
        with picture.group(data_link=name, **acts):
            picture.rect(x, y, width, _ROW - 4, class_="empty")
            if marked:
                picture.rect(x, y, width, _ROW - 4, stroke=_CHOSEN, stroke_width=3, fill="none")
            picture.text(x + 8, y + 17, name, font_weight="700" if marked else "600")
            for column, left in _COLUMNS.items():
                figure: Figure | None = getattr(part, column)
                if figure is None and not part.figures and column == "size":
                    picture.text(left, y + 17, "none", class_="soft")
                if figure is not None:
                    known = figure.value is not None
                    picture.text(left, y + 11, figure.text, class_=None if known else "soft")
                    picture.text(left, y + 26, figure.whence, class_="soft", font_size=10)


def _frame(picture: Svg, place: tuple[float, float, float, float], title: str, filled: bool = False) -> None:
    """Draw a frame with its title inside; a filled one hides what is behind it."""
    if filled:
        picture.rect(*place, style="fill:var(--jp-layout-color0, var(--vscode-editor-background, #ffffff))")
    picture.rect(*place, class_="grid")
    picture.text(place[0] + 8, place[1] + 11, title, class_="soft", font_size=11)


def _cells(
    picture: Svg, corner: tuple[float, float], count: int, rows: int, width: float, height: float = 0
) -> None:
    """Draw `count` cells in so many rows, to the left of the upper right corner."""
    columns = -(-count // rows)
    kinds = np.where(np.arange(rows * columns) < count, 0, -1).reshape(rows, columns)
    size = (width, height or width)
    picture.cells(corner[0] - columns * width, corner[1], size, kinds, [{"class_": "mid"}])


def _link(picture: Svg, y: float, name: str = "") -> None:
    """Draw an arrow that points both ways, from one memory to the next."""
    x = 110
    picture.path(f"M{x} {y}v20m-4 -5l4 5l4 -5m-8 -10l4 -5l4 5", class_="line")
    picture.text(x + 12, y + 11, name, class_="soft", font_size=11)


def _partitions(picture: Svg, gpu: Gpu, x: float, y: float) -> None:
    """Draw an SM's sub-partitions side by side; lines lead from the first to the rows that show it."""
    count, gap = gpu.warp_unit, 6
    width = (562 - gap * (count - 1)) / count
    for number in range(count):
        left = x + number * (width + gap)
        picture.rect(left, y, width, 20, class_="empty" if number else "mid")
        picture.text(left + width / 2, y + 10, f"sub-partition {number}", "middle", font_size=11)
    picture.rect(x, y + 32, 562, 4 * _ROW + 8, class_="grid")
    picture.path(f"M{x} {y + 20}V{y + 32}M{x + width} {y + 20}L{x + 562} {y + 32}", class_="grid")


def _finding(gpu: Gpu, found: Mapping[str, Part]) -> str:
    """State what the map shows in one sentence."""
    far, near = found[DEVICE_MEMORY].latency, found[SHARED].latency
    if far and near and far.value and near.value:
        times = far.value / near.value
        return f"{gpu.name}: device memory has {times:.0f} times the latency of shared memory"
    return f"{gpu.name}: {gpu.multiprocessors} SMs with {gpu.fp32_cores_per_sm} CUDA cores each"


def _told(part: Part) -> str:
    """List the figures of a part's row that are known."""
    known = [each for each in (part.size, part.rate, part.latency) if each and each.value is not None]
    return "; ".join(f"{each.text} ({each.whence})" for each in known)
