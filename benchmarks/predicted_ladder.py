"""Write data/predicted.csv: the predicted times that explorers and curves show at once.

usage: python benchmarks/predicted_ladder.py [--only RE] [--workers N]
The rungs, sizes and blocks are those of the reports' sweeps, of the ladders at the sizes of LADDERS, and of
the explorer of unrolling; the GPUs are those of GPUS for which gpus.csv has what a
prediction needs. What cannot be predicted is left out, and named at the end. With --only, nothing is written:
rows whose text matches are printed. Run it again after each change of the model (simt/timing,
time_model.json, gpus.csv): three to five minutes on two cores, and a run that was stopped goes on.
"""

import csv
import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from labkit.kernels.problem import problem, problem_class  # noqa: E402
from labkit.ladder.running import Case, case, rungs  # noqa: E402
from labkit.model.predicted import PLACE, TABLE, TABLE_COLUMNS, predict  # noqa: E402
from labkit.records.tables import frame_of, sizes_of  # noqa: E402
from labkit.widgets.report_sweeps import NAMES, REPORTS, times_of  # noqa: E402
from labkit.widgets.unrolling_view import DTYPES, ELEMENTS, SIDE  # noqa: E402
from labkit.widgets.unrolling_view import TILE as UNROLLED_TILE  # noqa: E402
from simt.common.errors import SimtError  # noqa: E402
from simt.timing.prediction import predictable  # noqa: E402

GPUS = ("H200", "H100 SXM5", "A100-SXM4-80GB", "RTX 4090", "T4")
LADDERS = {"matmul": (512, 1024, 2048, 4096, 8192), "transpose": (2048, 8192)}  # in float32, squares


def cases() -> list[Case]:
    """Return what is predicted, each once, the cases of one kernel together: they share compiled code."""
    found = dict.fromkeys([*_of_reports(), *_of_ladders(), *_of_unrolling()])
    return sorted(found, key=lambda each: (each.family, each.rung, each.problem.dtype, each.macros))


def _of_reports() -> Iterator[Case]:
    for report in REPORTS:
        frame = times_of(report)
        places = frame[["m", "n", "k", "dtype"]].drop_duplicates().itertuples(index=False, name=None)
        sides = sorted({int(side) for side in frame.block_x})
        for m, n, k, dtype in places:
            product = problem("matmul", int(m), int(n), int(k), dtype=dtype)
            yield from (case(rung, product, TILE=side) for rung in NAMES for side in sides)


def _of_ladders() -> Iterator[Case]:
    for family, sizes in LADDERS.items():
        for size in sizes:
            each = problem(family, *[size] * len(problem_class(family).size_names))
            yield from (case(rung, each) for rung in rungs(family) if rung not in each.rounding)


def _of_unrolling() -> Iterator[Case]:
    for dtype in DTYPES.values():
        plane = problem("transpose", SIDE, SIDE, dtype=dtype)
        yield from (case(rung, plane) for rung in ("copy", "padded"))
        yield from (case("unrolled", plane, ROWS=UNROLLED_TILE // elements) for elements in ELEMENTS)


def row(chosen: Case, gpu: str) -> dict[str, object] | str:
    """Return a row of the table, or why there is none."""
    try:
        found = predict(chosen.rung, chosen.problem, gpu, **dict(chosen.macros))
    except SimtError as error:
        return f"{chosen} on {gpu}: {error}"
    place = chosen.place()
    sizes = {name: place[name] for name in sizes_of(frame_of([place])) if place[name] is not None}
    place["size"] = " ".join(f"{name}={size}" for name, size in sizes.items())
    figures = {name: f"{getattr(found, name):.4g}" for name in ("seconds", "low", "high")}
    return {name: place[name] for name in PLACE} | {"gpu": found.gpu.name, "limit": found.limit} | figures


def rows_of(task: tuple[str, list[Case]]) -> list[dict[str, object] | str]:
    """Return the rows of one kernel on one GPU."""
    gpu, chosen = task
    return [row(each, gpu) for each in chosen]


def main(
    only: Annotated[str, typer.Option(help="predict the cases whose text matches; write nothing")] = "",
    workers: Annotated[int, typer.Option(help="processes that predict at once")] = 2,
) -> None:
    """Predict every case on every GPU, and write the table."""
    chosen = [each for each in cases() if re.search(only, str(each))]
    kinds: dict[object, list[Case]] = {}
    for each in chosen:
        kinds.setdefault((each.family, each.rung, each.problem.dtype, each.macros), []).append(each)
    gpus = [name for name in GPUS if name in predictable()]
    tasks = [(gpu, some) for some in kinds.values() for gpu in gpus]
    rows: list[dict[str, object]] = []
    missing: list[str] = []
    with ProcessPoolExecutor(workers) as pool, tqdm(total=len(chosen) * len(gpus), unit="time") as bar:
        for found in pool.map(rows_of, tasks):
            rows += [each for each in found if isinstance(each, dict)]
            missing += [each for each in found if isinstance(each, str)]
            bar.update(len(found))
    if only:
        csv.DictWriter(sys.stdout, TABLE_COLUMNS).writerows(rows)
    else:
        write(rows, gpus)
    print(*missing, f"{len(rows)} predicted times, {len(missing)} left out", sep="\n")


def write(rows: list[dict[str, object]], gpus: list[str]) -> None:
    """Write data/predicted.csv, sorted by GPU, and data/predicted.json beside it."""
    rows.sort(key=lambda each: gpus.index(str(each["gpu"])))
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, TABLE_COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    told = {
        "what": "times predicted by simt.timing; none was measured",
        "command": "python benchmarks/predicted_ladder.py",
        "model": "simt/timing, with simt/data/time_model.json and simt/data/gpus.csv",
        "date": date.today().isoformat(),
        "gpus": gpus,
        "columns": {
            "seconds": "predicted time of a launch, as CUDA events measure it with a cold L2",
            "low, high": "the time lies between them as often as `confidence` in time_model.json says",
            "limit": "the part of the GPU that would take longest alone",
            "problem to note": "as in data/SOURCES.md",
        },
    }
    TABLE.with_suffix(".json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
