"""Run a notebook in JupyterLab and save a picture of the whole of it, or of one cell.

    cd tests/browser
    python screenshot.py ../../notebooks/02_naive_cuda.ipynb out.png
    python screenshot.py ../../notebooks/02_naive_cuda.ipynb ../../docs/lab.png "labkit.widgets.block_sweep()"

The notebook is copied first, with the files beside it: the run changes nothing.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import lab


def screenshot(notebook: Path, picture: Path, cell: str | None = None) -> None:
    """Run `notebook` and write a PNG of all of it, 1400 pixels wide, or of the first cell with a text."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(notebook.resolve().parent, folder, dirs_exist_ok=True)
        with lab.jupyter_server(Path(folder)) as server, lab.browser_page() as page:
            lab.open_notebook(page, server, notebook.name)
            lab.run_all(page, failing=lab.failing_on_purpose(notebook))
            cells = page.locator(".jp-Notebook .jp-WindowedPanel-viewport")
            page.set_viewport_size(
                {"width": 1400, "height": int(cells.evaluate("it => it.scrollHeight")) + 150}
            )
            page.wait_for_timeout(500)  # the page settles in its new size
            page.locator(".jp-WindowedPanel-outer").first.evaluate("it => it.scrollTo(0, 0)")
            page.wait_for_timeout(500)
            picture.parent.mkdir(parents=True, exist_ok=True)
            shown = page.locator(".jp-CodeCell", has_text=cell).first if cell else page
            shown.screenshot(path=picture)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: screenshot.py NOTEBOOK.ipynb OUT.png [TEXT OF A CELL]")
    screenshot(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
