"""`labkit.matmul` beside cuBLAS (float32, TF32 off), for matrices of many shapes, on a GPU.

    python benchmarks/any_shape.py [MxNxK ...]
    python benchmarks/any_shape.py --random 200 --seed 7     # M, N and K log-uniform in 1 to 16384

Every product is verified before it is timed. A time is that of many launches in the GPU's queue, divided by
their number: the queue is held up until all are in it, so the host's pace does not count, and small matrices
stay in the L2 cache. Ours and cuBLAS take turns for ROUNDS rounds; the ratio is the median of the rounds'
ratios, cuBLAS's time over ours: above 1, ours is faster. The last two columns are the same at the host's
pace: calls of `labkit.matmul` one after another as Python makes them, and those of `cupy.matmul`, both with
`out`.
Last lines: the ratios' geometric mean, the least, and how many are 0.85 or more.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from statistics import geometric_mean, median
from time import perf_counter
from typing import Annotated, Any

import typer
from any_shape_rule import GOOD, drawn

import labkit
from labkit.devices.select import Device, NoGpu, find_gpu, synchronize
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.matmul.rule import choose

SHAPES = (
    *((n, n, n) for n in (256, 512, 768, 1024, 1536, 2048, 4096, 8192)),
    *((1000, 1001, 999), (5003, 4999, 2003), (4100, 4100, 4100)),
    *((128, 16384, 4096), (16384, 128, 4096), (64, 64, 65536), (16384, 16384, 64)),
)
ROUNDS, MOST = 5, 50  # MOST: launches in the queue at a time
FEWEST_CALLS = 10  # at the host's pace
MILLISECONDS = 3  # of work in the queue, at least one launch
FILLED = 2**30  # bytes that are filled to hold up the queue: 0.25 ms on an H200
LAUNCHED = 15  # in that time, by the host


@dataclass(frozen=True)
class Measured:
    """Milliseconds of one product with `labkit.matmul` and with cuBLAS in each round."""

    problem: Matmul
    ours: tuple[float, ...]
    cublas: tuple[float, ...]
    called: tuple[float, ...]
    cupy: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Return how many times faster ours is."""
        return _ratio(self.ours, self.cublas)

    @property
    def ratio_of_calls(self) -> float:
        """Return how many times faster ours is at the host's pace."""
        return _ratio(self.called, self.cupy)


def _ratio(ours: tuple[float, ...], theirs: tuple[float, ...]) -> float:
    return median(other / own for own, other in zip(ours, theirs, strict=True))


class Queue:
    """Times launches that wait in the GPU's queue until all are there: `queue(call, count)`."""

    def __init__(self) -> None:
        import cupy

        self._cupy, self._filled = cupy, cupy.empty(FILLED, cupy.uint8)

    def __call__(self, call: Callable[[], object], count: int) -> float:
        """Return the milliseconds of one of `count` calls."""
        fills = ceil(count / LAUNCHED)
        while True:
            start, end = (self._cupy.cuda.Event() for _ in range(2))
            for _ in range(fills):
                self._filled.fill(0)
            start.record()
            for _ in range(count):
                call()
            was_held_up = not start.done
            end.record()
            end.synchronize()
            if was_held_up:
                return float(self._cupy.cuda.get_elapsed_time(start, end)) / count
            fills *= 2


def measure(problem: Matmul, queue: Queue) -> Measured:
    """Verify `labkit.matmul` on a problem, then time it and cuBLAS in turns. Exits where it is wrong."""
    import cupy

    rng = cupy.random.default_rng(0)
    a, b = (problem.drawn(rng, problem.shapes()[name]) for name in "AB")
    c = cupy.full(problem.shapes()["C"], cupy.nan, cupy.float32)

    def ours() -> Any:
        return labkit.matmul(a, b, out=c)

    if problem.is_wrong(ours(), a, b, c):
        sys.exit(f"labkit.matmul is wrong for {problem}.")
    cublas = problem.reference_call((a, b, c, *problem.scalars()))
    count = max(1, min(MOST, int(MILLISECONDS / queue(cublas, 2))))
    queue(ours, count)
    rounds = [(queue(ours, count), queue(cublas, count)) for _ in range(ROUNDS)]
    own, theirs = zip(*rounds, strict=True)

    def of_cupy() -> Any:
        return cupy.matmul(a, b, out=c)

    count = max(FEWEST_CALLS, count)
    calls = [(_paced(ours, count), _paced(of_cupy, count)) for _ in range(ROUNDS)]
    called, by_cupy = zip(*calls, strict=True)
    return Measured(problem, own, theirs, called, by_cupy)


def _paced(call: Callable[[], object], count: int) -> float:
    """Return the milliseconds of one of `count` calls, which the GPU may have to wait for."""
    synchronize()
    start = perf_counter()
    for _ in range(count):
        call()
    synchronize()
    return 1e3 * (perf_counter() - start) / count


HEAD = (
    "M x N x K",
    "kernel",
    "form",
    "blocks",
    "ours, us",
    "cuBLAS, us",
    "TFLOP/s",
    "ratio",
    "call, us",
    "ratio",
)
FORM = "{:>22} {:>14} {:>9} {:>7} {:>9} {:>11} {:>8} {:>6} {:>9} {:>6}"


def row(measured: Measured, gpu: Device) -> str:
    """Return a line of the table: the rule's choice, the times and their ratio."""
    problem = measured.problem
    chosen = choose(problem.M, problem.N, problem.K, gpu.multiprocessors)
    (_, rows), (_, columns), *_ = chosen.macros
    own, theirs = median(measured.ours), median(measured.cublas)
    return FORM.format(
        f"{problem.M} x {problem.N} x {problem.K}",
        chosen.kernel.partition("/")[2],
        f"{rows} x {columns}",
        chosen.grid[0] * chosen.grid[1],
        f"{1e3 * own:.1f}",
        f"{1e3 * theirs:.1f}",
        f"{problem.flops / own / 1e9:.1f}",
        f"{measured.ratio:.3f}",
        f"{1e3 * median(measured.called):.1f}",
        f"{measured.ratio_of_calls:.3f}",
    )


def verdict(name: str, ratios: list[float]) -> str:
    """Return a line on ratios."""
    good = sum(ratio >= GOOD for ratio in ratios) / len(ratios)
    return (
        f"{name}: geometric mean {geometric_mean(ratios):.3f}, least {min(ratios):.3f}, {good:.1%} >= {GOOD}"
    )


def main(
    shapes: Annotated[list[str] | None, typer.Argument(metavar="[MxNxK]...")] = None,
    count: Annotated[int, typer.Option("--random", help="Draw so many shapes instead.")] = 0,
    seed: Annotated[int, typer.Option()] = 7,
) -> None:
    """Measure `labkit.matmul` beside cuBLAS."""
    try:
        gpu = find_gpu()
    except NoGpu as missing:
        sys.exit(str(missing))
    named = [tuple(map(int, shape.split("x"))) for shape in shapes or ()] or SHAPES
    queue, found = Queue(), []
    print(f"{gpu.name}, float32", FORM.format(*HEAD), sep="\n", flush=True)
    for shape in drawn(count, seed) or named:
        found.append(measure(Matmul(*shape), queue))
        print(row(found[-1], gpu), flush=True)
    print(verdict("queue held up", [each.ratio for each in found]))
    print(verdict("at the host's pace", [each.ratio_of_calls for each in found]))


if __name__ == "__main__":
    typer.run(main)
