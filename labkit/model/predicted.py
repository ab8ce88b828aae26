"""Predicted times of rungs and of a student's own kernels on a problem, and the table of those shipped.

`predict` works one out, in a second or so, and keeps it on disk. `times` reads data/predicted.csv, which
benchmarks/predicted_ladder.py writes, so that explorers answer at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import simt
from labkit import kernels
from labkit.devices.timed_launch import contents_decide
from labkit.kernels.heads import shared_bytes
from labkit.kernels.problem import Problem
from labkit.ladder.running import Case, case, rungs
from labkit.paths import shipped
from labkit.records.tables import COLUMNS, frame_of, sizes_of
from simt.common.cache import digest
from simt.common.limits import Dim3
from simt.common.occupancy import DEFAULT_GPU
from simt.common.occupancy import gpu as find_gpu
from simt.common.paths import DATA
from simt.common.text import article
from simt.disk_cache import disk_cached
from simt.kernel import PATIENCE_SECONDS
from simt.kernel import launch_of as as_launch
from simt.timing import prediction
from simt.timing.limits import missing
from simt.timing.prediction import NoPrediction, Prediction, predict_launch

TABLE = shipped("data") / "predicted.csv"
PREDICTED = "predicted for "  # the source of predicted times begins so
PLACE = ("problem", "kernel", "dtype", "size", "block_x", "block_y", "tile", "note")
TABLE_COLUMNS = (*PLACE, "gpu", "seconds", "low", "high", "limit")


def predict(
    kernel: str | simt.AnyKernel, problem: Problem, gpu: str = DEFAULT_GPU, **macros: int | str
) -> Prediction:
    """Predict how long a kernel takes for a problem on a GPU of gpus.csv, which need not be here.

    `kernel` is a rung, such as "matmul/2_tiled" or "tiled", or a compiled kernel whose source has a line
    `// launch:`; it takes the arrays and scalars of the problem. It is compiled with `macros`, such as
    TILE=16. Arrays are zeros, which take no memory, unless their contents decide what runs. Raises ValueError
    for an unknown rung, macro or GPU, LaunchError where the source does not say how it is launched, and
    NoPrediction where the time cannot be predicted.
    """
    on_gpu = find_gpu(gpu)
    found: simt.AnyKernel
    rung: Case | None = None
    if isinstance(kernel, str):
        rung = rung_case(kernel, problem, **macros)
        found, grid, block = _rung(rung)
    elif hasattr(kernel, "predict"):
        found, grid, block = _compiled(kernel, problem, macros)
    else:
        raise ValueError(f"{kernel!r} is no CUDA kernel. Give one, or the name of a rung, such as 'tiled'.")
    if not isinstance(found, simt.Kernel):
        raise NoPrediction("this kernel runs in a sandbox, which keeps its machine code to itself")
    kept: simt.Kernel = found

    def worked_out() -> Prediction:
        # A GPU without the figures is refused before anything is bound.
        args = () if missing(on_gpu) else _arguments(kept, problem, on_gpu.name)
        given, shared_mem = rung.launch(args)[2:] if rung and args else (args, 0)
        launch = as_launch(grid, block, given, shared_mem, PATIENCE_SECONDS)
        return predict_launch(kept, launch, on_gpu.name)

    module = kept.module
    key = [module.code, *module.options, *module.name_expressions, kept.name]
    key += [repr((grid, block, problem)), on_gpu.name, _model()]
    return disk_cached("predicted", key, worked_out)


def rung_case(name: str, problem: Problem, **macros: int | str) -> Case:
    """Return the case of a rung named "tiled" or "matmul/2_tiled". Raises ValueError."""
    known = rungs(problem.family)
    rung = next((rung for rung, full in known.items() if name in (rung, full)), None)
    if rung is None:
        raise ValueError(
            f"{problem.family} has no rung {name!r} for a GPU. Choose one of {', '.join(known)}, or give a "
            "compiled kernel."
        )
    return case(rung, problem, **macros)


def _rung(chosen: Case) -> tuple[simt.Kernel, Dim3, Dim3]:
    """Compile a rung for the simulator; return it with grid and block."""
    own, ctype, known = kernels.defaults(chosen.kernel), chosen.problem.ctype, kernels.types(chosen.kernel)
    if ctype not in known:
        raise ValueError(
            f"{chosen.kernel} takes {', '.join(known)} alone, and the problem has {chosen.problem.dtype}."
        )
    grid, block = kernels.launch(chosen.kernel, chosen.problem, **dict(chosen.macros))
    macros = {"DTYPE": ctype} | dict(chosen.macros)
    options = ("--std=c++17", *(f"-D{name}={value}" for name, value in macros.items() if name in own))
    return _made(kernels.source_with_includes(chosen.kernel), options, chosen.family), grid, block


@cache
def _made(code: str, options: tuple[str, ...], name: str) -> simt.Kernel:
    made = simt.RawModule(code=code, options=options).get_function(name)
    made.max_dynamic_shared_size_bytes = shared_bytes(code, kernels.macros_of(options)) or None
    return made


def _compiled(
    kernel: simt.AnyKernel, problem: Problem, macros: Mapping[str, int | str]
) -> tuple[simt.AnyKernel, Dim3, Dim3]:
    """Return a kernel as it runs in the simulator, compiled anew if there are `macros`; grid and block."""
    found = kernel.simulated
    if macros:
        kept = [each for each in found.module.options if macros.keys().isdisjoint(kernels.macros_of([each]))]
        options = [*kept, *(f"-D{name}={value}" for name, value in macros.items())]
        found = found.module.with_options(options).get_function(found.name)
    known = kernels.macros_of(found.module.options)
    return found, *kernels.launch_of(found.module.code, problem, **known)


def _arguments(kernel: simt.Kernel, problem: Problem, gpu: str) -> tuple[object, ...]:
    """Return the arguments of a launch: zeros, or the problem's inputs where contents decide what runs."""
    if contents_decide(kernel, gpu):
        return problem.args(np)
    return (*problem.zeros(), *problem.scalars())


@cache
def _model() -> str:
    """Return a digest of what a prediction depends on beside the kernel and the simulator."""
    sources = sorted(Path(prediction.__file__).parent.glob("*.py"))
    data = [DATA / name for name in ("time_model.json", "gpus.csv")]
    return digest([path.read_bytes() for path in (*sources, *data)])


# The table.


def times(gpu: str, **where: object) -> pd.DataFrame:
    """Return the shipped predicted times on a GPU, in the columns of `records.load`.

    `where` are columns, with one value or a list of them; the table is empty where nothing fits. Beside each
    time stand `low` and `high`, in ms, and `limit`. `source` says for which GPU, and how wide these intervals
    are: "± 12 %" is half the width, in the median.
    """
    frame = _table()
    for column, wanted in {"gpu": find_gpu(gpu).name, **where}.items():
        values = list(wanted) if isinstance(wanted, Iterable) and not isinstance(wanted, str) else [wanted]
        frame = frame[frame[column].isin(values)]
    return _signed(frame, gpu)


def beside(frame: pd.DataFrame, gpu: str, *columns: str) -> pd.DataFrame:
    """Return the shipped predicted times on a GPU for the kernels, types and sizes of a frame of records.

    With further `columns`, such as "block_x", these agree, too.
    """
    place = ["problem", "kernel", "dtype", *sizes_of(frame), *columns]
    found = times(gpu).merge(frame[place].drop_duplicates(), on=place)
    return _signed(found, gpu)


def _signed(frame: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Say in `source` for which GPU the times are predicted, and how far they may be off."""
    off = float(((frame.high - frame.low) / frame.value / 2).median()) if len(frame) else 0.0
    return frame.assign(source=f"{PREDICTED}{article(find_gpu(gpu).name)}, ± {100 * off:.0f} %")


@cache
def gpus() -> tuple[str, ...]:
    """Return the names of the GPUs in the table."""
    return tuple(_table().gpu.unique())


@cache
def _table() -> pd.DataFrame:
    """Read data/predicted.csv as records, in milliseconds; callers must not modify it."""
    if not TABLE.exists():
        return frame_of([]).assign(gpu="", low=0.0, high=0.0, limit="")
    read = pd.read_csv(TABLE, keep_default_na=False)
    rows = [
        dict.fromkeys(COLUMNS)
        | {name: row[name] for name in ("problem", "kernel", "dtype", "note")}
        | {name: int(row[name]) if row[name] != "" else None for name in ("block_x", "block_y", "tile")}
        | {name: int(size) for name, size in (each.split("=") for each in row["size"].split())}
        | {"report": "", "machine": row["gpu"], "quantity": "time", "unit": "ms"}
        | {"value": 1e3 * row["seconds"]}
        for row in read.to_dict("records")
    ]
    return frame_of(rows).assign(gpu=read.gpu, low=1e3 * read.low, high=1e3 * read.high, limit=read.limit)
