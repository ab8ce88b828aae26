"""`labkit.matmul` beside cuBLAS (float32, TF32 off), for matrices of many shapes, on a GPU.

    python benchmarks/any_shape.py [MxNxK ...]

Every product is verified before it is timed. A time is that of many launches in the GPU's queue, divided by
their number: the queue is held up until all are in it, so the host's pace does not count, and small matrices
stay in the L2 cache. Ours and cuBLAS take turns for ROUNDS rounds; the ratio is the median of the rounds'
ratios, cuBLAS's time over ours: above 1, ours is faster. Last line: the ratios' geometric mean and the least.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

import labkit
from labkit.devices.select import Device, NoGpu, find_gpu
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.matmul.product import choose

SHAPES = (
    *((n, n, n) for n in (256, 512, 768, 1024, 1536, 2048, 4096, 8192)),
    *((1000, 1001, 999), (5003, 4999, 2003), (4100, 4100, 4100)),
    *((128, 16384, 4096), (16384, 128, 4096), (64, 64, 65536), (16384, 16384, 64)),
)
ROUNDS, MOST = 5, 50  # MOST: launches in the queue at a time
MILLISECONDS = 3  # of work in the queue, at least one launch
FILLED = 2**30  # bytes that are filled to hold up the queue: 0.25 ms on an H200


@dataclass(frozen=True)
class Measured:
    """Milliseconds of one product with `labkit.matmul` and with cuBLAS, in each round."""

    problem: Matmul
    ours: tuple[float, ...]
    cublas: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Return how many times faster ours is."""
        return median(theirs / own for own, theirs in zip(self.ours, self.cublas, strict=True))


class Queue:
    """Times launches that wait in the GPU's queue until all are there: `queue(call, count)`."""

    def __init__(self) -> None:
        import cupy

        self._cupy, self._filled, self._fills = cupy, cupy.empty(FILLED, cupy.uint8), 1

    def __call__(self, call: Callable[[], object], count: int) -> float:
        """Return the milliseconds of one of `count` calls."""
        while True:
            start, end = (self._cupy.cuda.Event() for _ in range(2))
            for _ in range(self._fills):
                self._filled.fill(0)
            start.record()
            for _ in range(count):
                call()
            was_held_up = not start.done
            end.record()
            end.synchronize()
            if was_held_up:
                return float(self._cupy.cuda.get_elapsed_time(start, end)) / count
            self._fills *= 2


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
    return Measured(problem, own, theirs)


HEAD = ("M x N x K", "rung", "tile", "blocks", "ours, us", "cuBLAS, us", "TFLOP/s", "ratio")
FORM = "{:>22} {:>12} {:>9} {:>7} {:>9} {:>11} {:>8} {:>6}"


def row(measured: Measured, gpu: Device) -> str:
    """Return a line of the table: the rule's choice, the times and their ratio."""
    problem = measured.problem
    chosen = choose(problem.M, problem.N, problem.K, gpu.multiprocessors)
    (_, tile_m), (_, tile_n), *_ = chosen.macros
    own, theirs = median(measured.ours), median(measured.cublas)
    return FORM.format(
        f"{problem.M} x {problem.N} x {problem.K}",
        chosen.kernel.partition("/")[2],
        f"{tile_m} x {tile_n}",
        chosen.grid[0] * chosen.grid[1],
        f"{1e3 * own:.1f}",
        f"{1e3 * theirs:.1f}",
        f"{problem.flops / own / 1e9:.1f}",
        f"{measured.ratio:.3f}",
    )


def main() -> None:
    """Measure the shapes named on the command line, or SHAPES."""
    try:
        gpu = find_gpu()
    except NoGpu as missing:
        sys.exit(str(missing))
    shapes = [tuple(map(int, word.split("x"))) for word in sys.argv[1:]] or SHAPES
    queue, ratios = Queue(), []
    print(f"{gpu.name}, float32", FORM.format(*HEAD), sep="\n", flush=True)
    for shape in shapes:
        measured = measure(Matmul(*shape), queue)
        ratios.append(measured.ratio)
        print(row(measured, gpu), flush=True)
    print(f"geometric mean {geometric_mean(ratios):.3f}, least {min(ratios):.3f}")


if __name__ == "__main__":
    main()
