"""Pictures as SVG text, for explorers and for notebooks that are read without a kernel.

Sizes are in CSS pixels. Text, lines and empty cells take the colours of the page's theme through the classes
`ink`, `soft`, `empty` and `grid`; data have colours of their own, which colour-blind readers can tell apart.

An element may carry what labkit/widgets/page/explorer.js acts on:

    data-link="lane3 pass1"    pointing at it marks all elements of the explorer that share one of these words
    data-tip="..."              the sentence that is shown below the picture meanwhile
    data-set='{"row": 3}'       a click, Enter or Space sets controls to these positions
    data-x, data-y, data-cols, data-rows   a grid of cells: a click or an arrow key sets the controls named
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape

import numpy as np

# Okabe and Ito's colours, and Tol's.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"),
    "#F0E442",
)
GREY = "#999999"

INK = "var(--jp-ui-font-color1, var(--vscode-editor-foreground, #212121))"
SOFT = "var(--jp-ui-font-color2, var(--vscode-descriptionForeground, #5f5f5f))"
PAPER = "var(--jp-layout-color0, var(--vscode-editor-background, #ffffff))"
STYLE = (
    f".lk-svg{{font:12px var(--jp-ui-font-family,system-ui,sans-serif);background:{PAPER}}}"
    f".lk-svg text{{fill:{INK};stroke:none}}"
    f".lk-svg .soft{{fill:{SOFT}}}"
    f".lk-svg .code{{font-family:var(--jp-code-font-family,monospace);white-space:pre}}"
    ".lk-svg text.on{fill:#000}.lk-svg text.dark{fill:#fff}"
    f".lk-svg text.halo{{stroke:{PAPER};stroke-width:3px;paint-order:stroke}}"
    f".lk-svg .empty{{fill:{INK};fill-opacity:.07}}.lk-svg .mid{{fill:{INK};fill-opacity:.22}}"
    f".lk-svg .grid{{stroke:{INK};stroke-opacity:.25;fill:none}}"
    f".lk-svg .paper{{fill:{PAPER}}}"
    f".lk-svg .line{{stroke:{INK};fill:none}}"
    f".lk-svg .hole{{stroke:{PAPER};fill:none}}"
)


class Svg:
    """A picture of width x height; `alt` says in words what it shows."""

    def __init__(self, width: float, height: float, alt: str) -> None:
        self.width, self.height, self.alt = round(width), round(height), " ".join(alt.split())
        self._parts: list[str] = []

    def add(self, tag: str, text: str = "", **attributes: object) -> None:
        """Add an element; an attribute `data_link` is written data-link, and `class_` is class."""
        self._add(tag, text, attributes)

    def _add(self, tag: str, text: str, attributes: dict[str, object]) -> None:
        self._parts.append(f"<{tag}{_written(attributes)}>{escape(text, quote=False)}</{tag}>")

    @contextmanager
    def group(self, **attributes: object) -> Iterator[None]:
        """Return a context: what is added within it is inside a group."""
        self._parts.append(f"<g{_written(attributes)}>")
        yield
        self._parts.append("</g>")

    def rect(self, x: float, y: float, width: float, height: float, **attributes: object) -> None:
        """Add a rectangle."""
        self._add("rect", "", {"x": x, "y": y, "width": width, "height": height} | attributes)

    def line(self, x1: float, y1: float, x2: float, y2: float, **attributes: object) -> None:
        """Add a straight line, in the colour of text if no other is given."""
        attributes.setdefault("class_", "line" if "stroke" not in attributes else None)
        self._add("line", "", {"x1": x1, "y1": y1, "x2": x2, "y2": y2} | attributes)

    def text(self, x: float, y: float, text: str, anchor: str = "start", **attributes: object) -> None:
        """Add a line of text whose middle is at height y; `anchor` is start, middle or end."""
        attributes.setdefault("dominant_baseline", "central")
        self._add("text", text, {"x": x, "y": y, "text_anchor": anchor} | attributes)

    def title(self, text: str, y: float = 12) -> None:
        """Add the title at the top: one line, with one finding. Tests refuse one that has no room."""
        self.text(8, y, text, font_weight="600")

    def path(self, d: str, **attributes: object) -> None:
        """Add a path."""
        self._add("path", "", {"d": d} | attributes)

    def cells(
        self,
        x: float,
        y: float,
        size: tuple[float, float],
        kinds: np.ndarray,
        looks: Sequence[dict[str, object]],
        gap: float = 1,
    ) -> None:
        """Add a cell of `size` = (width, height) for each element of `kinds` (rows, columns).

        A cell of kind k has the attributes `looks[k]`; one of kind -1 is left out. All cells of a kind are
        one path, so that thousands stay quick to draw.
        """
        width, height = size
        for kind, look in enumerate(looks):
            rows, columns = np.nonzero(kinds == kind)
            if not len(rows):
                continue
            box = f"h{width - gap:g}v{height - gap:g}h{gap - width:g}z"
            corners = zip((x + columns * width).tolist(), (y + rows * height).tolist(), strict=True)
            self.path("".join(f"M{left:g} {top:g}{box}" for left, top in corners), **look)

    def legend(self, x: float, y: float, entries: Sequence[tuple[str, dict[str, object]]]) -> None:
        """Add a row of coloured boxes, each with its name."""
        for name, look in entries:
            self.rect(x, y - 6, 12, 12, **look)
            self.text(x + 18, y, name)
            x += 34 + 6.6 * len(name)

    def raw(self, markup: str) -> None:
        """Add what another program has drawn."""
        self._parts.append(markup)

    def include(self, other: "Svg") -> None:
        """Add what is in another picture."""
        self._parts += other._parts

    def __repr__(self) -> str:
        return f"picture: {self.alt}"

    def __str__(self) -> str:
        """Return the SVG element."""
        controls = any(word in part for part in self._parts for word in ("data-set", "data-cols"))
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="lk-svg" {size} '
            f'role="{"group" if controls else "img"}" aria-label="{escape(self.alt)}">'
            f"<style>{STYLE}</style>{''.join(self._parts)}</svg>"
        )

    def _repr_svg_(self) -> str:
        return str(self)


def stacked(pictures: Sequence[Svg]) -> Svg:
    """Return one picture with these, one below the other."""
    if len(pictures) == 1:
        return pictures[0]
    width = max(each.width for each in pictures)
    whole = Svg(width, sum(each.height + 8 for each in pictures), "; ".join(each.alt for each in pictures))
    top = 0
    for each in pictures:
        with whole.group(transform=f"translate(0 {top})"):
            whole.include(each)
        top += each.height + 8
    return whole


def button(key: str, tip: str, positions: Mapping[str, int], chosen: bool = False) -> dict[str, object]:
    """Return the attributes of what sets controls to `positions`; `tip` says what it stands for.

    `key` is its name among its kind, so that it keeps the keyboard's focus when the picture is drawn again.
    """
    return {
        "data_set": json.dumps(positions),
        "data_tip": tip,
        "data_key": key,
        "tabindex": 0,
        "role": "button",
        "aria_label": tip,
        "aria_pressed": "true" if chosen else "false",
    }


def grid(
    key: str, tip: str, x: tuple[str, int] = ("", 0), y: tuple[str, int] = ("", 0), hover: bool = False
) -> dict[str, object]:
    """Return the attributes of a grid of cells: a click or an arrow key chooses one.

    `x` and `y` are the control that a column and a row set, and how many there are; `tip` says what the grid
    shows, for those who cannot see it. With `hover`, pointing at a cell is a preview of the choice.
    """
    return {
        "tabindex": 0,
        "role": "application",
        "aria_label": tip,
        "data_key": key,
        "data_x": x[0] or None,
        "data_y": y[0] or None,
        "data_cols": x[1] or 1,
        "data_rows": y[1] or 1,
        "data_hover": "" if hover else None,
    }


def ink_on(colour: str) -> str:
    """Return the class of text on a colour, `on` (black) or `dark` (white), whichever has more contrast."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]  # WCAG 2
    return "on" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "dark"


def _written(attributes: dict[str, object]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-") if name not in _CAMEL else name}="{_value(value)}"'
        for name, value in attributes.items()
        if value is not None
    )


_CAMEL = ("viewBox", "preserveAspectRatio")


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    return escape(str(value)) if not isinstance(value, int) else str(value)
