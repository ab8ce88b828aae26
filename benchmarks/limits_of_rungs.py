"""Write data/limits_of_rungs.csv: how long each part of an H200 would take alone for each rung of products.

usage: python benchmarks/limits_of_rungs.py
The model of simt.timing says so, at every size and dtype that the explorer of the roofline offers;
nothing here is measured. It takes a minute. Write it again after
benchmarks/predict.py --fit.
"""

import csv
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
os.environ["LABKIT_DEVICE"] = "simt"

import numpy as np  # noqa: E402
from tqdm import tqdm  # noqa: E402

from labkit import kernels  # noqa: E402
from labkit.kernels.matmul.family import Matmul  # noqa: E402
from labkit.ladder import running  # noqa: E402
from labkit.model.limits import CYCLES, MODEL, NAMES, times_of  # noqa: E402
from labkit.widgets.roofline_view import DTYPES, SIZES  # noqa: E402
from simt.common.errors import SimtError  # noqa: E402
from simt.timing.prediction import Prediction  # noqa: E402

GPU = "H200"


def main() -> None:
    """Predict each timed rung at each size, and write the table."""
    rows = []
    problems = [Matmul(n, n, n, dtype=dtype) for dtype in DTYPES for n in SIZES]
    for problem in tqdm(problems, unit="problem"):
        timed = set(times_of(problem).kernel)
        for rung in running.rungs("matmul"):
            if rung in timed:
                try:
                    rows.append(row(rung, problem, predicted(rung, problem)))
                except SimtError as refused:
                    tqdm.write(f"{rung} on {problem}: {refused}")
    with MODEL.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def predicted(rung: str, problem: Matmul) -> Prediction:
    """Predict a rung with its defaults; addresses do not depend on the values, so the arrays are zeros."""
    case = running.case(rung, problem)
    macros = dict(case.macros)
    kernel = kernels.load(case.kernel, DTYPE=problem.ctype, **macros)
    launch = case.launch((*problem.zeros(), *problem.scalars()))
    return kernel.simulated.predict(*launch, gpu=GPU)


def row(rung: str, problem: Matmul, found: Prediction) -> dict[str, object]:
    """Return a row of the table: times in milliseconds, with four digits."""
    parts = {part.name: part for part in found.parts}
    times = {"predicted": found.seconds, "low": found.low, "high": found.high}
    times |= {name: parts[name].seconds for name in NAMES}
    inputs = 2 * problem.N**2 * np.dtype(problem.dtype).itemsize  # come once at least: the L2 is cold
    counts = {column: parts[name].count for name, column in CYCLES.items()}
    return (
        {"kernel": rung, "dtype": problem.dtype, "n": problem.N}
        | {name: f"{1e3 * seconds:.4g}" for name, seconds in times.items()}
        | {"DRAM bytes": f"{max(found.dram_bytes, inputs):.4g}"}
        | {column: f"{count:.4g}" for column, count in counts.items()}
    )


if __name__ == "__main__":
    main()
