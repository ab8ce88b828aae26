"""Explorers for the notebooks: sliders with a picture and a text that answer when a slider is released.

Each file `NAME_view.py` in this folder holds one explorer, the function NAME: `widgets.banks()` is in
banks_view.py and is imported when it is first used. `dir(widgets)` lists all of them, and `help(widgets)`
says what each one shows.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from labkit.widgets.explorer import Explorer, View

EXPLORERS = [
    found.name.removesuffix("_view") for found in iter_modules(__path__) if found.name.endswith("_view")
]

__all__ = ["Explorer", "View", *EXPLORERS]


def __getattr__(name: str) -> Callable[..., Explorer]:
    if name not in EXPLORERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    explorer: Callable[..., Explorer] = getattr(import_module(f"{__name__}.{name}_view"), name)
    return explorer


def __dir__() -> list[str]:
    return sorted([*globals(), *EXPLORERS])
