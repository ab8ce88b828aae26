"""The explorer of a GPU's map says of the chosen part what the table has."""

import pytest

from labkit import widgets
from labkit.model.gpu_parts import PARTS, parts
from labkit.widgets.gpu_map_view import gpu_map_view
from simt.common.occupancy import gpu


@pytest.mark.parametrize("name", ["H200", "T4", "P100"])
def test_the_text_has_all_figures_of_the_part(name):
    for part in PARTS:
        view = gpu_map_view(name, part)
        assert view.conclusion.lower().startswith(part.lower())
        for figure in parts(gpu(name))[part].figures:
            assert figure.told in view.details
    assert "measured: NVIDIA H200, 2026-11-24." in gpu_map_view("H200", "L2 cache").details
    assert "no figure" in gpu_map_view("RTX 3060", "L2 cache").details


def test_a_control_moves_the_map():
    shown = widgets.gpu_map()
    assert "141 GB" in shown.current().text
    view = shown.set(gpu="T4", part="shared memory")
    assert "64 KB" in view.text and "a T4" in view.text
    with pytest.raises(ValueError, match="part has no position 'texture'"):
        shown.set(part="texture")
