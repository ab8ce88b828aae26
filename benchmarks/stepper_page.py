"""Time the page of `labkit.step` in Chromium: opening a recording, steps, playing, and scrubs.

    python benchmarks/stepper_page.py RECORDING.json [...]

Opens each recording (the JSON that the page gets) as an exported page does, without a kernel. A step's time
is what the page works until the new moment is laid out: script, style and layout, without the wait for the
next frame. Frames are counted while the page plays as fast as it can. A scrub goes to 50 places across the
whole run. Goals: opening 1 s, a step 16 ms, a frame 16.7 ms, a place of a scrub 100 ms.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]

import chromium  # noqa: E402

from labkit.widgets.step import still  # noqa: E402

STEPS, PLACES, PLAYED_MS = 60, 50, 3000

# Milliseconds of each kind. Every move starts at another place, so that nothing is shown twice.
MEASURE = """async ([steps, places, playedMs]) => {
    const root = document.querySelector("section.lks"), {player, recording, opened} = root.lks;
    const median = list => list.slice().sort((a, b) => a - b)[list.length >> 1];
    const high = list => list.slice().sort((a, b) => a - b)[Math.floor(list.length * 0.95)];
    const frame = () => new Promise(requestAnimationFrame);
    const press = (key, shiftKey = false) => {
        const start = performance.now();
        root.dispatchEvent(new KeyboardEvent("keydown", {key, shiftKey, bubbles: true}));
        root.getBoundingClientRect();
        return performance.now() - start;
    };
    const pressed = async (...key) => {
        const found = [];
        for (let i = 0; i < steps; i++) {
            if (i % 10 === 0) player.go(Math.round((recording.n * (i + 5)) / (steps + 10)));
            await frame();
            found.push(press(...key));
        }
        return found;
    };
    const result = {
        "load: decode and index": [opened.decoded],
        "load: until shown": [opened.shown],
        "line step forward": await pressed("ArrowRight"),
        "line step back": await pressed("ArrowLeft"),
        "instruction step": await pressed("ArrowRight", true),
        "to the next barrier": await pressed("b"),
    };
    player.go(0);
    player.speed = 0;
    player.play();
    const frames = [];
    const until = performance.now() + playedMs;
    for (let last = await frame(); last < until;) {
        const now = await frame();
        frames.push(now - last);
        last = now;
        if (!player.playing) player.play();
    }
    player.pause();
    result["frame while playing fast"] = frames;
    const scrub = [];
    for (let i = 0; i < places; i++) {
        await frame();
        const start = performance.now();
        player.go((recording.n * ((i * 31) % places)) / (places - 1));
        root.getBoundingClientRect();
        scrub.push(performance.now() - start);
    }
    result["place of a scrub"] = scrub;
    return Object.entries(result).map(([what, list]) => [what, median(list), high(list), list.length]);
}"""


def measure(recording: Path) -> tuple[list[list[Any]], float]:
    """Rows of [what, median, 95th percentile, count], and the megabytes of the page's heap."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder, "step.html")
        page_file.write_text(still(recording.read_text(encoding="utf-8"), "Steps"), encoding="utf-8")
        arguments = [*chromium.ARGUMENTS, "--enable-precise-memory-info"]
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=arguments)
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(page_file.as_uri())
        page.wait_for_function("document.querySelector('section.lks')?.lks.opened")
        rows = page.evaluate(MEASURE, [STEPS, PLACES, PLAYED_MS])
        heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        browser.close()
    return rows, heap


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        rows, heap = measure(path)
        table = pd.DataFrame(rows, columns=["milliseconds", "median", "p95", "count"]).set_index(
            "milliseconds"
        )
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB of JSON, {heap:.0f} MB of heap")
        print(table.round(2).to_string(), end="\n\n")
