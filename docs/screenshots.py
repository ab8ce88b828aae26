"""Make the pictures of the README anew: lab, explorer, check, feedback and roofline, as docs/*.png.

    python docs/screenshots.py                  # all of them, in a minute or two
    python docs/screenshots.py roofline         # some of them

A copy of the students' notebook is run in JupyterLab, in the simulator, with Chromium (tests/browser). Its
times differ from machine to machine; results and counts do not. Look at each picture before it is committed.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path += [str(ROOT / "tests" / folder) for folder in ("browser", "grader", "")]
os.environ["LABKIT_DEVICE"] = "simt"

NOTEBOOK = ROOT / "notebooks" / "02_naive_cuda.ipynb"
STEP, EXPLORER, CHECK = "labkit.step(owner", "labkit.widgets.thread_map()", 'labkit.check("02.4")'
STUDENT = "bob"  # of the made-up class


def notebook() -> None:
    """lab.png, the window; explorer.png, a cell with sliders; check.png, what a check says before any
    work.
    """
    import lab

    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(NOTEBOOK, folder)
        with lab.jupyter_server(Path(folder)) as server, lab.browser_page(1300, 1200) as page:
            lab.open_notebook(page, server, NOTEBOOK.name)
            lab.run_all(page, 400, failing=lab.failing_on_purpose(NOTEBOOK))
            for name, text in (("explorer", EXPLORER), ("check", CHECK)):
                cell = page.locator(".jp-CodeCell", has_text=text).first
                cell.scroll_into_view_if_needed()
                page.wait_for_timeout(1000)  # the page settles
                cell.screenshot(path=DOCS / f"{name}.png")
            page.set_viewport_size({"width": 1300, "height": 1000})
            page.wait_for_timeout(1000)
            cell = page.locator(".jp-CodeCell", has_text=STEP).first
            cell.evaluate("cell => cell.scrollIntoView({block: 'start'})")
            cell.locator("section.lks").focus()
            for _ in range(5):
                page.keyboard.press("ArrowRight")  # a line on
            page.wait_for_timeout(1000)
            page.screenshot(path=DOCS / "lab.png")


def feedback() -> None:
    """feedback.png: a student's page of `labkit grade`, of a made-up class."""
    import lab
    from made_up_class import SOLVED, exercises, made_up

    from grader.report import write_all
    from grader.results.manifest import Run
    from grader.results.store import Store
    from grader.sandbox.limits import LIMITS
    from grader.text import slug

    with tempfile.TemporaryDirectory() as folder:
        kept, names = Store(Path(folder), 7, exercises("02")), []
        for graded in made_up(20, ("02",)):
            names.append(graded.submission.student)
            kept.put(graded)
        write_all(kept, Run(7, "labkit grade", SOLVED, LIMITS), names)
        with lab.browser_page(1000, 900) as page:
            page.goto((kept.out / "feedback" / f"{slug(STUDENT)}.html").as_uri())
            page.screenshot(path=DOCS / "feedback.png")


def roofline() -> None:
    """roofline.png: an H200's, with every rung of the recorded run."""
    import lab

    from labkit import problem, records
    from labkit import roofline as draw
    from labkit.ladder import running

    runs = records.recorded("h200")
    counts = runs[(runs.m == 1024) & (runs.dtype == "float32")]
    picture = draw(running.recorded(problem("matmul", 4096, 4096, 4096)), counts, runs)
    with lab.browser_page(picture.width + 16, picture.height + 16) as page:
        page.set_content(f"<body style='background: white'>{picture}</body>")
        page.screenshot(path=DOCS / "roofline.png")


PICTURES = {
    "lab": notebook,
    "explorer": notebook,
    "check": notebook,
    "feedback": feedback,
    "roofline": roofline,
}

if __name__ == "__main__":
    wanted = sys.argv[1:] or list(PICTURES)
    if unknown := set(wanted) - set(PICTURES):
        sys.exit(f"there is no picture {', '.join(unknown)}. Choose of: {', '.join(PICTURES)}.")
    for make in dict.fromkeys(PICTURES[name] for name in wanted):
        make()
