"""Drive JupyterLab as a student does: open a notebook, run it, move a control, read what it shows.

with jupyter_server(folder) as url, browser_page() as page:
    open_notebook(page, url, "02_naive_cuda.ipynb")
    run_all(page)
    before = result(page, "TILE")
    seconds = move(page, "TILE")
    after = result(page, "TILE")
"""

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import chromium
import nbformat
from playwright.sync_api import Locator, Page, TimeoutError, sync_playwright

# What an explorer shows apart from its controls: its text, and its pictures.
SOLUTIONS = Path(__file__).parents[2] / "notebooks" / "solutions"
READ_RESULT = """explorer => {
    const all = chosen => [...explorer.querySelectorAll(chosen)];
    const text = all(".lk-conclusion, .lk-side > details > div").map(part => part.textContent).join(" ");
    return [text, all(".lk-scroll").map(picture => picture.innerHTML)];
}"""

# A kernel can be called idle before the page is connected to it; what is run then is lost.
KERNEL_READY = """() => {
    const context = window.jupyterapp?.shell.currentWidget?.sessionContext;
    return context?.isReady && context.session?.kernel?.connectionStatus === "connected";
}"""


@dataclass(frozen=True)
class Result:
    """What an explorer shows: the text without the controls, and the pictures as SVG."""

    text: str
    pictures: tuple[str, ...]


@contextmanager
def jupyter_server(folder: Path) -> Iterator[str]:
    """A JupyterLab on `folder` with settings of its own; gives its address with the token as `http://...?token=...`."""
    with tempfile.TemporaryDirectory(prefix="labkit-jupyter-", ignore_cleanup_errors=True) as private:
        variables = {
            "JUPYTER_CONFIG_DIR": f"{private}/config",
            "JUPYTER_RUNTIME_DIR": f"{private}/runtime",
            "JUPYTERLAB_SETTINGS_DIR": f"{private}/settings",
            "JUPYTERLAB_WORKSPACES_DIR": f"{private}/workspaces",
            "IPYTHONDIR": f"{private}/ipython",
        }
        port, token = _free_port(), secrets.token_hex(16)
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
        command += [
            "--LabApp.expose_app_in_browser=True",
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={token}",
        ]
        command += [f"--ServerApp.root_dir={folder}", "--ServerApp.ip=127.0.0.1"]
        log = Path(private, "log")
        with log.open("w") as output:
            process = subprocess.Popen(
                command, env={**os.environ, **variables}, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            base = f"http://127.0.0.1:{port}"
            _wait_for_server(f"{base}/api?token={token}", process, log)
            yield f"{base}/lab/tree/{{path}}?reset&token={token}"  # reset: not what was open before
        finally:
            process.terminate()  # also ends the kernels
            process.wait(20)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def _wait_for_server(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start within {seconds} s:\n{log.read_text()}")


@contextmanager
def browser_page(width: int = 1400, height: int = 1000) -> Iterator[Page]:
    """A page of a fresh, headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.ARGUMENTS)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(30_000)
        yield page
        browser.close()


def write_notebook(path: Path, *sources: str) -> None:
    """Write a notebook with these code cells, for the Python that is there."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


def open_notebook(page: Page, server: str, path: str) -> None:
    """Open the notebook at `path` under the server's folder and wait for its kernel."""
    page.goto(server.format(path=path))
    page.wait_for_function(KERNEL_READY, timeout=60_000)
    wait_idle(page)


def failing_on_purpose(notebook: Path) -> int:
    """How many cells of a notebook show an error on purpose: Python's, or that of a program they run."""
    solved = SOLUTIONS / notebook.name
    cells = json.loads((solved if solved.exists() else notebook).read_text(encoding="utf-8"))["cells"]
    return sum(
        "raises-exception" in cell["metadata"].get("tags", [])
        or any(output.get("name") == "stderr" for output in cell.get("outputs", []))
        for cell in cells
    )


def run_all(page: Page, seconds: float = 240, failing: int = 0) -> None:
    """Menu Run, Run All Cells; returns when the last cell is done.

    Raises AssertionError unless just `failing` cells fail.
    """
    started = page.locator(".jp-InputPrompt", has_text=re.compile(r"\[(\*|\d+)\]")).first
    for _ in range(2):  # a busy machine may lose a click on a menu that is still being drawn
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.locator("[data-command='runmenu:run-all']").click()
        with suppress(TimeoutError):
            started.wait_for()
            break
    else:
        raise AssertionError("Run All Cells starts nothing")
    wait_idle(page, seconds)
    # What a program writes in pieces is one cell with several of these.
    error = page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr'], .jp-mod-error")
    failed = page.locator(".jp-CodeCell", has=error)
    if failed.count() != failing:
        texts = "\n".join(error.all_inner_texts())
        raise AssertionError(f"{failed.count()} cells failed, {failing} should:\n{texts}")


def wait_idle(page: Page, seconds: float = 60) -> None:
    """Wait until the kernel is idle and no cell waits, twice in a row half a second apart."""
    idle = """() => document.querySelector(".jp-Notebook-ExecutionIndicator")?.dataset.status === "idle"
        && ![...document.querySelectorAll(".jp-InputPrompt")].some(prompt => prompt.textContent === "[*]:")"""
    for _ in range(2):
        page.wait_for_function(idle, timeout=seconds * 1000)
        page.wait_for_timeout(500)
    page.wait_for_function(idle, timeout=seconds * 1000)


def control(page: Page, label: str) -> Locator:
    """The slider or menu of an explorer with exactly this label."""
    return page.locator(".lk input[type=range], .lk select").and_(page.get_by_label(label, exact=True)).first


def explorer(page: Page, label: str) -> Locator:
    """The explorer with the control of this label."""
    return control(page, label).locator("xpath=ancestor::section[contains(@class, 'lk')]")


def result(page: Page, label: str) -> Result:
    """What the explorer with this control shows beside its controls."""
    text, pictures = explorer(page, label).evaluate(READ_RESULT)
    return Result(text, tuple(pictures))


def move(page: Page, label: str, seconds: float = 20) -> float:
    """Press the right arrow key, or at its end the left one, on the slider; seconds until another picture."""
    before, handle = result(page, label), control(page, label)
    key = "ArrowLeft" if handle.evaluate("it => it.value === it.max") else "ArrowRight"
    handle.focus()
    start = time.perf_counter()
    handle.press(key)
    while result(page, label).pictures in (before.pictures, ()):
        if time.perf_counter() - start > seconds:
            raise AssertionError(f"slider {label!r}: the same picture {seconds} s after {key}")
        page.wait_for_timeout(20)
    elapsed = time.perf_counter() - start
    wait_idle(page)
    return elapsed
