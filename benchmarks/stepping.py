"""Print how long it takes to record a block, and how large the recording is in a page.

usage: python benchmarks/stepping.py [--out FOLDER]
With --out, the recordings are written as JSON, which benchmarks/stepper_page.py opens in a browser.
"""

import sys
import time
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import typer

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "simt" / "recording")]

from test_recording import NO_BARRIER, TILED  # noqa: E402

from labkit import kernels, simt  # noqa: E402
from simt.recording.page_data import page_data  # noqa: E402
from simt.recording.record import record  # noqa: E402

TIMES = 5
Case = tuple[str, str, str, tuple[int, int], tuple[int, int], int, bool]


def cases() -> list[Case]:
    """Return (name, source, kernel, grid, block, size of the square matrices, is it optimised code)."""
    naive = kernels.source("matmul/1_naive")
    return [
        ("tiled 16 x 16, K = 64", TILED, "tiled", (4, 4), (16, 16), 64, False),
        ("the same, optimised", TILED, "tiled", (4, 4), (16, 16), 64, True),
        ("the same with a race", NO_BARRIER, "tiled", (4, 4), (16, 16), 64, False),
        ("tiled 16 x 16, K = 512", TILED, "tiled", (32, 32), (16, 16), 512, False),
        ("naive 16 x 16, K = 256", naive, "matmul", (16, 16), (16, 16), 256, False),
    ]


def main(out: Annotated[Path | None, typer.Option(help="folder for the recordings, as JSON")] = None) -> None:
    """Record each case, and print a table: medians of 5 runs, after the first."""
    print(f"{'recording':26} {'first s':>8} {'again s':>8} {'events':>9} {'page MB':>8} {'encoded s':>9}")
    for number, (name, source, entry, grid, block, size, optimised) in enumerate(cases()):
        args = arguments(entry, size)
        kernel = simt.RawModule(code=source).get_function(entry)
        times = []
        for _ in range(TIMES + 1):
            start = time.perf_counter()
            found = record(kernel, grid, block, args, optimised=optimised)
            times.append(time.perf_counter() - start)
        start = time.perf_counter()
        text = page_data(found)
        encoded = time.perf_counter() - start
        print(
            f"{name:26} {times[0]:8.2f} {median(times[1:]):8.2f} {len(found.events):9,} "
            f"{len(text) / 1e6:8.2f} {encoded:9.2f}"
        )
        if out:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{number}.json").write_text(text, encoding="utf-8")


def arguments(entry: str, size: int) -> tuple[object, ...]:
    """Return random square matrices and their sizes, as the kernel takes them."""
    random = np.random.default_rng(1)
    a, b = (random.random((size, size), np.float32) for _ in range(2))
    c, n = np.zeros((size, size), np.float32), np.int32(size)
    return (a, b, c, n, n) if entry == "tiled" else (a, b, c, n, n, n, np.float32(1), np.float32(0))


if __name__ == "__main__":
    typer.run(main)
