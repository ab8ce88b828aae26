"""Run a notebook in JupyterLab and save a picture of the whole of it.

    python tests/browser/screenshot.py notebooks/02_naive_cuda.ipynb docs/lab.png

The notebook is copied first, with the files beside it: the run changes nothing.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import lab


def screenshot(notebook: Path, picture: Path) -> None:
    "Run `notebook` and write the PNG `picture`, 1400 pixels wide and as high as the notebook."
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
            page.screenshot(path=picture)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: screenshot.py NOTEBOOK.ipynb OUT.png")
    screenshot(Path(sys.argv[1]), Path(sys.argv[2]))
