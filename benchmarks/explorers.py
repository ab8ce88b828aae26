"""Time from a control's move to the new picture in the browser, for each explorer: a drag, place after place.

    python benchmarks/explorers.py [NAME ...]

Runs each explorer in JupyterLab in a headless Chromium (tests/browser). Each control is dragged through at
most eleven places that were not shown before, as a mouse would, and each move is timed in the page, from the
input event to the frame after the new picture is in the document. The second column is the answer alone: what
Python takes, without the browser and Jupyter. The first move of an explorer, which compiles its kernels, is
listed alone. Goals: a drag 50 ms, a new place that runs the simulator or a C kernel 300 ms.
"""

import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import nbformat
import numpy as np
import pandas as pd

ROOT = Path(__file__).parent.parent
sys.path += [str(ROOT / "tests" / "browser"), str(ROOT / "tests")]
os.environ.setdefault("LABKIT_DEVICE", "simt")

import lab  # noqa: E402

from labkit import widgets  # noqa: E402

DRAG, SIMULATED = 50, 300  # milliseconds, median
RUN_SOMETHING = {"divergence", "block_sweep", "tiling", "unrolling", "cpu_ladder"}
PLACES = 11

# Moves each slider of the explorer number `index` in turn; returns [label, milliseconds] of each move.
DRAG_ALL = """async ([index, places]) => {
    const root = document.querySelectorAll(".lk")[index], found = [];
    const pictures = root.querySelector(".lk-pictures");
    for (const input of root.querySelectorAll("input[type=range]")) {
        const name = document.querySelector(`label[for="${input.id}"]`).textContent, first = input.value;
        for (let i = 0; i < places; i++) {
            const to = Math.round(i * Math.max(input.max / (places - 1), 1));
            if (to === Number(input.value) || to > Number(input.max)) continue;
            const changed = new Promise(done => {
                const watch = new MutationObserver(() => (watch.disconnect(), requestAnimationFrame(done)));
                watch.observe(pictures, {childList: true});
                setTimeout(done, 20000);
            });
            const start = performance.now();
            input.value = to;
            input.dispatchEvent(new Event("input", {bubbles: true}));
            await changed;
            found.push([name, performance.now() - start]);
            await new Promise(later => setTimeout(later, 60));
        }
        input.value = first;
        input.dispatchEvent(new Event("input", {bubbles: true}));
        await new Promise(later => setTimeout(later, 500));
    }
    return found;
}"""


def in_python(name: str) -> float:
    """Median milliseconds of the same moves without browser and Jupyter."""
    shown, found = getattr(widgets, name)(), []
    for control in shown.controls:
        if shown.now[control].kind == "menu":
            continue
        first, choices = shown.values[control], shown.now[control].choices
        for _, place in choices[:: max(1, len(choices) // PLACES)]:
            if place in [value for _, value in shown.now[control].choices] and place != shown.values[control]:
                start = perf_counter()
                shown.set(**{control: place})
                found.append(1e3 * (perf_counter() - start))
        shown.set(**{control: first})
    return float(np.median(found[1:]))


def in_browser(names: list[str]) -> dict[str, list[float]]:
    """Milliseconds of each move in the page, by explorer."""
    with tempfile.TemporaryDirectory() as folder:
        cells = [nbformat.v4.new_code_cell("import labkit")]
        cells += [nbformat.v4.new_code_cell(f"labkit.widgets.{name}()") for name in names]
        notebook = nbformat.v4.new_notebook(cells=cells)
        notebook.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        nbformat.write(notebook, Path(folder, "all.ipynb"))
        with lab.jupyter_server(Path(folder)) as server, lab.browser_page() as page:
            page.set_default_timeout(300_000)
            lab.open_notebook(page, server, "all.ipynb")
            lab.run_all(page, 300)
            page.wait_for_function(f"document.querySelectorAll('.lk').length === {len(names)}")
            moves = {name: page.evaluate(DRAG_ALL, [i, PLACES]) for i, name in enumerate(names)}
    return {name: [milliseconds for _, milliseconds in each] for name, each in moves.items()}


def row(name: str, moves: list[float]) -> dict[str, object]:
    """The figures of one explorer."""
    goal, median = SIMULATED if name in RUN_SOMETHING else DRAG, float(np.median(moves[1:]))
    return {
        "explorer": name,
        "moves": len(moves),
        "first": moves[0],
        "median": median,
        "p90": np.percentile(moves[1:], 90),
        "Python alone": in_python(name),
        "goal": f"{goal} {'met' if median < goal else 'MISSED'}",
    }


if __name__ == "__main__":
    chosen = sys.argv[1:] or widgets.EXPLORERS
    timed = in_browser(chosen)
    table = pd.DataFrame(row(name, timed[name]) for name in chosen).set_index("explorer")
    print("milliseconds\n", table.round(1).to_string(), sep="")
