"""A student opens a notebook, runs it, moves a slider, and sees the text and the picture change."""

import nbformat
import pytest
from lab import move_slider, open_notebook, result, run_all, slider

pytestmark = pytest.mark.browser

# A slider as the course has it: redraw on release, text beside the picture, figures closed.
SLIDER = """
import ipywidgets as widgets
import matplotlib.pyplot as plt
from IPython.display import display

def show(tile):
    print(f"tile {tile}: {tile * tile} threads in a block")
    figure, axes = plt.subplots(figsize=(3, 2))
    axes.bar(range(tile), range(tile))
    display(figure)
    plt.close(figure)

widgets.interact(show, tile=widgets.IntSlider(4, 1, 32, description="tile", continuous_update=False));
"""


def write_notebook(path, source):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source.strip())])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


def test_a_slider_moved_with_the_keyboard_changes_text_and_picture(page, server, folder):
    write_notebook(folder / "slider.ipynb", SLIDER)
    open_notebook(page, server, "slider.ipynb")
    run_all(page)
    before = result(page, "tile")
    assert before.text == "tile 4: 16 threads in a block" and len(before.pictures) == 1
    move_slider(page, "tile")
    after = result(page, "tile")
    assert after.text == "tile 5: 25 threads in a block"
    assert after.pictures != before.pictures
    assert slider(page, "tile").get_attribute("aria-valuenow") == "5.0"


def test_a_failing_cell_is_reported(page, server, folder):
    write_notebook(folder / "failing.ipynb", "1 / 0")
    open_notebook(page, server, "failing.ipynb")
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run_all(page)
