"""A student opens each notebook of the course, runs it, and moves every slider with the keyboard."""

import re
import shutil
from pathlib import Path

import pytest
from lab import control, failing_on_purpose, move, open_notebook, result, run_all

from labkit import widgets

pytestmark = pytest.mark.browser

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
FIRST = ("00", "05")  # make test opens these, .ci/run the other notebooks, too


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name.startswith(FIRST) else [pytest.mark.slow]) for name in NAMES]
)
def test_notebook(page, server, folder, name):
    run_and_move(page, server, folder, name, slice(2))


@pytest.mark.slow  # the browser's second half
@pytest.mark.parametrize("name", NAMES)
def test_its_other_sliders(page, server, folder, name):
    run_and_move(page, server, folder, name, slice(2, None))


def sliders(path):
    """Return the labels of the sliders of a notebook's explorers, as far as they have an effect at first."""
    source = path.read_text(encoding="utf-8")
    shown = [getattr(widgets, name)() for name in re.findall(r'"labkit\.widgets\.(\w+)\(\)"', source)]
    controls = [control for explorer in shown for control in explorer.now.values()]
    return [each.label for each in controls if each.kind != "menu" and not each.why]


def run_and_move(page, server, folder, name, part):
    shutil.copy(NOTEBOOKS / name, folder)
    open_notebook(page, server, name)
    run_all(page, failing=failing_on_purpose(folder / name))
    for label in sliders(NOTEBOOKS / name)[part]:
        before, value = result(page, label), control(page, label).input_value()
        seconds = move(page, label)
        after = result(page, label)
        print(f"{name}: {label} answered after {seconds:.2f} s")
        assert control(page, label).input_value() != value
        assert after.text != before.text
        assert after.pictures != before.pictures
