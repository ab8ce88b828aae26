"""Time of predictions: the first of a kernel in a process, and later ones of other sizes and strides.

usage: python benchmarks/predictions.py [--only RE] [--save FILE] [--against FILE]

cold: the first prediction of a kernel in this process, whose machine code may be on disk; warm: the median
and the longest of the others, each of another launch. Seconds are those of the processor, of all threads.
--save writes the predicted times as JSON; --against compares them with those of such a file, so that a change
that should only be quicker is seen to change nothing.
"""

import gc
import json
import os
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

os.environ["LABKIT_DEVICE"] = "simt"

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import simt
from labkit import kernels, problem
from simt.kernel import PATIENCE_SECONDS

STRIDES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 33, 48, 64)
SIZES = (256, 512, 1024, 2048, 4096, 8192)
# Rungs of the course, by family, and the sizes of their problems.
RUNGS = {
    "matmul/1_naive": SIZES,
    "matmul/2_tiled": SIZES,
    "matmul/5_register_tile": SIZES,
    "matmul/8_warp_tile": SIZES,
    "transpose/1_naive": SIZES,
    "transpose/3_padded": SIZES,
    "reduction/3_tree": tuple(size * size for size in SIZES),
    "reduction/6_grid_stride": tuple(size * size for size in SIZES),
}
STRIDE_COPY = """extern "C" __global__ void stride_copy(const float* in, float* out, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[(long long)i * stride];
}"""
STENCIL = """extern "C" __global__ void stencil(const float* in, float* out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < n - 1 && y < n - 1) {
        int i = y * n + x;
        out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
    }
}"""
BANKS = """extern "C" __global__ void banks(float* out, int stride, int rounds) {
    __shared__ float s[32 * 64];
    int t = threadIdx.x;
    for (int i = t; i < 32 * 64; i += blockDim.x) s[i] = i;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < rounds; k++) sum += s[(t * stride + k) % (32 * 64)];
    out[blockIdx.x * blockDim.x + t] = sum;
}"""
ROW_SUM = """extern "C" __global__ void row_sum(const float* in, float* out, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int c = 0; c < columns; c++) sum += in[(long long)row * columns + c];
    out[row] = sum;
}"""
HISTOGRAM = """extern "C" __global__ void histogram(const int* in, int* out, int n, int bins) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&out[(i * 17) % bins], 1);
}"""

Call = tuple[object, object, tuple[object, ...], int]  # grid, block, arguments, bytes of shared memory


def written() -> Iterator[tuple[str, str, str, Call]]:
    """Yield (kernel, source, what its launch is of, launch) of the kernels of this file."""
    n, i32, f32 = 1 << 22, np.int32, np.float32
    for stride in STRIDES:
        arrays = np.zeros(n * stride, f32), np.zeros(n, f32)
        yield (
            "stride_copy",
            STRIDE_COPY,
            f"stride {stride}",
            (n // 256, 256, (*arrays, i32(n), i32(stride)), 0),
        )
    for size in SIZES:
        blocks = (size // 32, size // 8)
        arrays = np.zeros(size * size, f32), np.zeros(size * size, f32)
        yield "stencil", STENCIL, f"n {size}", (blocks, (32, 8), (*arrays, i32(size)), 0)
    for stride in STRIDES:
        yield (
            "banks",
            BANKS,
            f"stride {stride}",
            (1024, 256, (np.zeros(1024 * 256, f32), i32(stride), i32(256)), 0),
        )
    for size in SIZES:
        args = (np.zeros(size * size, f32), np.zeros(size, f32), i32(size), i32(size))
        yield "row_sum", ROW_SUM, f"n {size}", (-(-size // 128), 128, args, 0)
    for size in SIZES:
        args = (np.zeros(size * size, i32), np.zeros(1 << 20, i32), i32(size * size), i32(1 << 20))
        yield "histogram", HISTOGRAM, f"n {size}", (size * size // 256, 256, args, 0)


def rungs() -> Iterator[tuple[str, simt.AnyKernel, str, Call]]:
    """Yield (kernel, compiled, what its launch is of, launch) of the course's rungs."""
    for name, sizes in RUNGS.items():
        family = name.partition("/")[0]
        for size in sizes:
            asked = problem(
                family, *[size] * (1 if family == "reduction" else 2 if family == "transpose" else 3)
            )
            args = (*asked.zeros(), *asked.scalars())
            yield (
                name,
                kernels.load(name, DTYPE=asked.ctype),
                f"n {size}",
                kernels.whole_launch(name, asked, args),
            )


def cases() -> Iterator[tuple[str, simt.AnyKernel, str, Call]]:
    """Yield every launch with its compiled kernel."""
    made: dict[str, simt.AnyKernel] = {}
    for name, source, what, call in written():
        if name not in made:
            made[name] = simt.RawModule(code=source).get_function(name)
        yield name, made[name], what, call
    yield from rungs()


def timed(kernel: simt.AnyKernel, call: Call) -> tuple[float, dict[str, float]]:
    """Return the processor's seconds of a prediction, and its figures."""
    gc.collect()
    start = time.process_time()
    try:
        found = kernel.predict(*call, timeout=PATIENCE_SECONDS)
    except simt.SimtError:
        return time.process_time() - start, {}
    took = time.process_time() - start
    parts = {each.name: each.seconds for each in found.parts}
    rates = {f"{name} hits": rate for name, rate in found.hit_rates.items() if rate == rate}
    ends = {"seconds": found.seconds, "low": found.low, "high": found.high, "bytes": found.dram_bytes}
    return took, {**ends, **parts, **rates}


def changed(before: dict[str, dict[str, float]], now: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield a line for each figure of the same launch that differs by more than rounding."""
    for name in before.keys() & now.keys():
        if before[name].keys() != now[name].keys():
            yield f"{name}: other figures"
        for what in before[name].keys() & now[name].keys():
            a, b = before[name][what], now[name][what]
            if abs(a - b) > 1e-9 * max(abs(a), abs(b)):
                yield f"{name}, {what}: {a:.6g}, now {b:.6g} ({b / a - 1 if a else 0:+.2%})"


def main(
    only: Annotated[str, typer.Option(help="a regular expression for the names of kernels")] = "",
    save: Annotated[Path | None, typer.Option(help="write the predicted times there")] = None,
    against: Annotated[Path | None, typer.Option(help="compare them with those saved there")] = None,
) -> None:
    """Predict every launch, and print how long that takes."""
    spent: dict[str, list[float]] = {}
    found: dict[str, dict[str, float]] = {}
    for name, kernel, what, call in cases():
        if re.search(only, name):
            took, found[f"{name}, {what}"] = timed(kernel, call)
            spent.setdefault(name, []).append(took)
    console = Console(width=100)
    console.print(table(spent))
    if save:
        save.write_text(json.dumps(found, indent=1))
    if against:
        before = json.loads(against.read_text())
        different = sorted(changed(before, found))
        print(
            *different,
            f"{len(before.keys() & found.keys())} launches compared, {len(different)} figures differ",
            sep="\n",
        )


def table(spent: dict[str, Sequence[float]]) -> Table:
    """Return a table of seconds, a row per kernel."""
    made = Table(title="seconds of the processor per prediction")
    for heading in ("kernel", "launches", "cold", "warm, median", "warm, longest"):
        made.add_column(heading, justify="left" if heading == "kernel" else "right")
    warm = [each for first, *others in spent.values() for each in others]
    for name, (first, *others) in [*spent.items(), ("all", [max(each[0] for each in spent.values()), *warm])]:
        cells = (f"{each:.3f}" for each in (first, statistics.median(others), max(others)))
        made.add_row(name, str(1 + len(others)), *cells)
    return made


if __name__ == "__main__":
    typer.run(main)
