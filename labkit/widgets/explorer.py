"""Explorers: controls with pictures, a sentence and details, which follow while a control is dragged.

A view is a plain function of the controls' values that returns a View. The page (page/explorer.js) asks for
other positions of the controls; here the view computes and draws, and the page shows the answer. A saved
notebook keeps the first picture as SVG, with its text: it needs neither kernel nor script.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, Literal

import anywidget
import traitlets

from labkit.devices.select import NoGpu, device
from labkit.figures.svg import Svg, stacked
from simt.common.errors import SimtError

Choices = Sequence[tuple[str, Any]]  # (label, value)
PAGE = Path(__file__).parent / "page"


@dataclass(frozen=True)
class View:
    """What an explorer shows: pictures, one sentence, and details with one paragraph per line.

    `hint` says what can be pointed at or clicked, and `markup` is HTML below the details' paragraphs.
    """

    pictures: tuple[Svg, ...]
    conclusion: str
    details: str = ""
    hint: str = ""
    markup: str = ""

    @property
    def text(self) -> str:
        """Return the sentence and the details."""
        return f"{self.conclusion}\n{self.details}".strip()


@dataclass(frozen=True)
class Control:
    """A slider, a menu, or a slider with buttons that step and play.

    `why` says why it has no effect now, if that is so; it is then disabled.
    """

    kind: Literal["slider", "menu", "steps"]
    label: str
    choices: Choices
    value: Any
    group: str = ""
    why: str = ""


@dataclass(frozen=True)
class Offer:
    """What a control offers beside certain values of the others; None: what it offered at first."""

    choices: Choices | None = None
    why: str = ""


@lru_cache(maxsize=512)
def drawn(view: Callable[..., View], _device: str, **values: Any) -> View | str:
    """Return `view(**values)`, remembered by the values and the device; or what keeps it from being drawn."""
    try:
        return view(**values)
    except (ValueError, SimtError, NoGpu) as error:  # what another choice mends, and says so
        return str(error)


class Explorer(anywidget.AnyWidget):
    """Controls with what `view(**values)` returns for their values.

    `offer(**values)`, where given, says what some of the controls offer beside these values.
    """

    _esm = PAGE / "explorer.js"
    _css = PAGE / "explorer.css"
    title = traitlets.Unicode().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        view: Callable[..., View],
        controls: dict[str, Control],
        offer: Callable[..., Mapping[str, Choices | Offer]] | None = None,
        title: str = "Explorer",
    ) -> None:
        self.view, self.controls, self.offer = view, controls, offer
        self.values = {name: control.value for name, control in controls.items()}
        self.now = dict(controls)  # as they are beside these values
        super().__init__(title=title, shown=self._shown(0))
        self.observe(self._answer, "asked")

    def set(self, **values: Any) -> View | str:
        """Move controls, and return the view, or what keeps it from being drawn. Raises ValueError."""
        for name, value in values.items():
            if value not in _values(self.now[name].choices):
                labels = ", ".join(label for label, _ in self.now[name].choices)
                raise ValueError(f"{name} has no position {value!r}. Choose one of: {labels}.")
            self.values[name] = value
        self.shown = self._shown(self.shown["id"] + 1)
        return self.current()

    def current(self) -> View | str:
        """Return the view at the controls' values, or what keeps it from being drawn."""
        return drawn(self.view, device().kind, **self.values)

    def _answer(self, change: dict[str, Any]) -> None:
        """Draw what the page asks for."""
        for name, position in change["new"].get("positions", {}).items():
            choices = self.now[name].choices
            self.values[name] = choices[min(max(int(position), 0), len(choices) - 1)][1]
        self.shown = self._shown(change["new"].get("id", 0))

    def _shown(self, number: int) -> dict[str, Any]:
        self._offer()
        view = self.current()
        controls = [
            {
                "name": name,
                "kind": control.kind,
                "label": control.label,
                "labels": [label for label, _ in control.choices],
                "position": _values(control.choices).index(self.values[name]),
                "first": _first(self.controls[name].value, control),
                "group": control.group,
                "why": control.why,
            }
            for name, control in self.now.items()
        ]
        if isinstance(view, str):
            return {"id": number, "controls": controls, "pictures": [], "error": view, "details": ""}
        return {
            "id": number,
            "controls": controls,
            "pictures": [str(picture) for picture in view.pictures],
            "conclusion": view.conclusion,
            "details": _paragraphs(view.details) + view.markup,
            "hint": view.hint,
        }

    def _offer(self) -> None:
        """Let the controls offer what goes with the others; a value that is gone moves to its place."""
        for name, found in (self.offer(**self.values) if self.offer else {}).items():
            offer = found if isinstance(found, Offer) else Offer(found)
            first, before = self.controls[name], self.now[name]
            choices = first.choices if offer.choices is None else offer.choices
            values = _values(choices)
            if self.values[name] not in values:
                place = _values(before.choices).index(self.values[name])
                self.values[name] = values[min(place, len(values) - 1)]
            self.now[name] = Control(first.kind, first.label, choices, first.value, first.group, offer.why)

    def __repr__(self) -> str:
        """Return the text that stands for the explorer where there is no picture."""
        view = self.current()
        words = view if isinstance(view, str) else view.text
        settings = ", ".join(
            f"{control.label} = {control.choices[_values(control.choices).index(self.values[name])][0]}"
            for name, control in self.now.items()
        )
        return f"{words}\n({settings})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget, and for where there is no kernel its picture and text."""
        bundle = super()._repr_mimebundle_(**kwargs)
        data: Any = bundle[0] if isinstance(bundle, tuple) else bundle
        data["text/plain"] = repr(self)
        view = self.current()
        pictures = () if isinstance(view, str) else view.pictures
        if pictures:
            data["image/svg+xml"] = str(stacked(pictures))
        return bundle


def plain(values: Iterable[Any]) -> Choices:
    """Offer each value under its own name."""
    return [(str(value), value) for value in values]


def selection(label: str, choices: Choices, value: Any, group: str = "") -> Control:
    """Make a slider over `choices`."""
    return Control("slider", label, choices, value, group)


def slider(label: str, first: int, last: int, value: int, group: str = "") -> Control:
    """Make a slider over whole numbers."""
    return Control("slider", label, plain(range(first, last + 1)), value, group)


def menu(label: str, choices: Choices, value: Any = None, group: str = "") -> Control:
    """Make a menu of `choices`, at the first if no other is given."""
    return Control("menu", label, choices, choices[0][1] if value is None else value, group)


def steps(label: str, choices: Choices, group: str = "") -> Control:
    """Make a slider over steps, with buttons to go one further, one back, and to play them."""
    return Control("steps", label, choices, choices[0][1], group)


def _values(choices: Choices) -> list[Any]:
    return [value for _, value in choices]


def _first(value: Any, control: Control) -> int:
    """Return the position to which Reset goes: that of the first value, where it is offered."""
    values = _values(control.choices)
    return values.index(value) if value in values else 0


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in text.splitlines())
