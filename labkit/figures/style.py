"""What plots of matplotlib share: they are shown as SVG, and a line below says where numbers come from."""

import re
from collections.abc import Sequence
from io import StringIO
from typing import Literal

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.figures.svg import INK, PAPER, SOFT, Svg

PIXELS = 96  # per inch, as CSS has it
# Matplotlib's own black and white, and the greys of lines and notes, become those of the page.
_THEME = {"#000000": INK, "#ffffff": PAPER, "#595959": SOFT, "#4d4d4d": SOFT}


class Plot(Figure):
    """A Figure that Jupyter shows by itself, as SVG in the colours of the page's theme, with alt text.

    pyplot does not know it, so nothing stays open.
    """

    @property
    def alt(self) -> str:
        """Return in words what the plot shows: its titles, and the names of its axes."""
        titles = [self.get_suptitle(), *(axes.get_title(loc) for axes in self.axes for loc in _TITLES)]
        named = [f"{axes.get_ylabel()} by {axes.get_xlabel()}" for axes in self.axes if axes.get_ylabel()]
        return "; ".join(text.replace("\n", " ") for text in [*titles, *named] if text)

    def svg(self) -> Svg:
        """Draw it; a place in it, in pixels from the left and from the top, is `place(axes, x, y)`."""
        width, height = self.get_size_inches()
        picture = Svg(width * PIXELS, height * PIXELS, self.alt)
        written = StringIO()
        for axes in self.axes:
            axes.patch.set_alpha(0)
            axes.title.set_gid(_TITLE)  # a notebook's own plot has it in the middle
        if engine := self.get_layout_engine():
            engine.execute(self)
            self.set_layout_engine("none")  # savefig would draw all twice
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": self.alt, "path.simplify": True}):
            self.savefig(written, format="svg", facecolor="none", metadata={"Date": None})
        self.set_layout_engine(engine)  # what is added to the plot later needs room, too
        with picture.group(transform=f"scale({PIXELS / 72:.5g})", stroke_linejoin="round"):
            picture.raw(_themed(written.getvalue()))
        return picture

    def place(self, axes: Axes, x: float, y: float) -> tuple[float, float]:
        """Return where a point of axes is in the picture."""
        across, up = axes.transData.transform((x, y)) / self.dpi * PIXELS
        return float(across), float(self.get_size_inches()[1] * PIXELS - up)

    def _repr_svg_(self) -> str:
        return str(self.svg())

    def __str__(self) -> str:
        return f"plot: {self.alt}"


_TITLE = "lk-title"  # the class of titles in the picture
_TITLES: tuple[Literal["left", "center", "right"], ...] = ("left", "center", "right")


def _themed(svg: str) -> str:
    """Return what is inside matplotlib's SVG, in the theme's colours, with nothing that reaches the page."""
    body = svg[svg.index("</defs>") + len("</defs>") : svg.rindex("</svg>")]
    body = body.replace(f' id="{_TITLE}"', f' class="{_TITLE}"')
    body = re.sub(r' id="[\w.]+_\d+"', "", body).replace("xlink:href", "href")
    body = re.sub(r"font-family: ([^;\"]*)", _font, body)
    return re.sub("|".join(_THEME), lambda found: _THEME[found[0]], body)


def _font(found: re.Match[str]) -> str:
    return f"font-family: {'var(--jp-code-font-family, monospace)' if 'Mono' in found[1] else 'inherit'}"


def titled(axes: Axes, text: str, pad: float | None = None) -> None:
    """Set the title of axes: one line, with one finding. Tests refuse one that has no room.

    `pad` is the room below it, in points.
    """
    axes.set_title(" ".join(text.split()), loc="left", fontsize=10, pad=pad, gid=_TITLE)


def label_bar(axes: Axes, end: float, place: float, text: str) -> None:
    """Write beside the end of a horizontal bar; spaces would not keep them apart, as SVG drops them."""
    axes.annotate(text, (end, place), (4, 0), textcoords="offset points", va="center", fontsize=9)


def sign(figure: Figure, *sets: pd.DataFrame, looks: Sequence[str] = (), start: str = "") -> None:
    """Write the sources of the records `sets` at the bottom of a figure.

    With several sets, each has its own line, which begins with how the figure draws it, such as "dashed".
    """
    lines = ["; ".join(dict.fromkeys(data.source)) for data in sets]
    if len(sets) > 1:
        lines = [f"{look}: {line}" for look, line in zip(looks, lines, strict=False)]
    figure.supxlabel(start + "\n".join(lines), x=0.01, ha="left", fontsize=9, color="0.35")
