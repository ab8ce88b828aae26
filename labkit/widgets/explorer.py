"""Sliders with a text and pictures, made anew when a slider is released.

A view is a plain function of the sliders' values that returns a View. Pictures are PNG in an <img>, which can
have an alternative text; the text stands in a live region, which screen readers read out when it changes.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from io import BytesIO
from typing import Any

import ipywidgets
from matplotlib.figure import Figure

from labkit.core.errors import SimtError
from labkit.device.select import NoGpu, device

Choices = Sequence[tuple[str, Any]]  # (label, value)


@dataclass(frozen=True)
class View:
    """What an explorer shows: figures, and a text with one paragraph per line."""

    figures: tuple[Figure, ...]
    text: str


@dataclass(frozen=True)
class Drawn:
    """A View in HTML; or no pictures, and the sentence that says why."""

    pictures: str
    text: str


@lru_cache(maxsize=128)
def drawn(view: Callable[..., View], _device: str, **values: Any) -> Drawn:
    """Return `view(**values)` in HTML, remembered by the values and the device; no figure is left open."""
    try:
        shown = view(**values)
    except (ValueError, SimtError, NoGpu) as error:  # what another choice mends, and says so
        return Drawn("", f'<div style="color: var(--jp-error-color1, #c62828)">{escape(str(error))}</div>')
    paragraphs = "".join(f"<div>{escape(line)}</div>" for line in shown.text.splitlines())
    return Drawn("".join(map(_image, shown.figures)), paragraphs)


def _image(figure: Figure) -> str:
    png = BytesIO()
    figure.savefig(png, format="png")
    width, height = (round(inches * figure.dpi) for inches in figure.get_size_inches())
    titles = [
        figure.get_suptitle(),
        *(axes.get_title(loc) for axes in figure.axes for loc in ("left", "center")),
    ]
    alternative = escape("; ".join(" ".join(title.split()) for title in titles if title), quote=True)
    # Its size is given so that nothing moves while the browser decodes the next picture.
    return (
        f'<img width="{width}" height="{height}" style="max-width: 100%; height: auto" decoding="sync" '
        f'alt="{alternative}" src="data:image/png;base64,{b64encode(png.getvalue()).decode()}">'
    )


class Explorer(ipywidgets.VBox):
    """Controls with the text and the pictures that `view(**values)` returns for their values.

    `offer(**values)`, where given, says what some of the controls offer with these values.
    """

    def __init__(
        self,
        view: Callable[..., View],
        controls: dict[str, Any],
        offer: Callable[..., dict[str, Choices]] | None = None,
    ) -> None:
        self.view, self.controls, self.offer = view, controls, offer
        self.pictures, self.text = ipywidgets.HTML(), ipywidgets.HTML()
        self._adjusting = False
        wrap = ipywidgets.Layout(flex_flow="row wrap")
        above = ipywidgets.HBox(list(controls.values()), layout=wrap)
        super().__init__([above, self.text, self.pictures])
        for control in controls.values():
            control.observe(self._changed, "value")
        self._changed()

    def __repr__(self) -> str:
        """Say what to do where no widget can be shown: a notebook's text has this."""
        return f"controls: {', '.join(self.controls)}. Run the notebook to see and move them."

    @property
    def values(self) -> dict[str, Any]:
        """Return the value of each control, by its name."""
        return {name: control.value for name, control in self.controls.items()}

    def _changed(self, _change: object = None) -> None:
        if self._adjusting:
            return
        self._adjusting = True  # what is offered may change further values: draw once
        for name, choices in (self.offer(**self.values) if self.offer else {}).items():
            _set_choices(self.controls[name], choices)
        self._adjusting = False
        now = drawn(self.view, device().kind, **self.values)
        self.pictures.value = now.pictures
        self.text.value = f'<div role="status" aria-live="polite" style="line-height: 1.6">{now.text}</div>'


def plain(values: Iterable[Any]) -> Choices:
    """Offer each value under its own name."""
    return [(str(value), value) for value in values]


def selection(label: str, choices: Choices, value: Any) -> Any:
    """Make a slider over `choices`."""
    return ipywidgets.SelectionSlider(
        options=choices, value=value, description=label, continuous_update=False, **_look()
    )


def slider(label: str, first: int, last: int, value: int) -> Any:
    """Make a slider over whole numbers."""
    return ipywidgets.IntSlider(value, first, last, description=label, continuous_update=False, **_look())


def menu(label: str, choices: Choices) -> Any:
    """Make a menu of `choices`."""
    return ipywidgets.Dropdown(options=choices, description=label, **_look())


def _look() -> dict[str, Any]:
    return {"layout": ipywidgets.Layout(width="20em"), "style": {"description_width": "6em"}}


def _set_choices(control: Any, choices: Choices) -> None:
    """Offer other choices; keep the value, or else take the one at its old place."""
    if tuple(control.options) == tuple(choices):
        return
    value, place, values = control.value, control.index, [each for _, each in choices]
    control.options = choices
    control.index = values.index(value) if value in values else min(place, len(values) - 1)
