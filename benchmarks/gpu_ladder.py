"""The GPU's rungs beside cuBLAS and cudaMemcpy: rates, and the best rung's share of the reference.

    python benchmarks/gpu_ladder.py [matmul] [transpose] [tensor_matmul]

Every result is verified before it is timed. The best rung and the reference are then timed in turns, several
rounds, and their ratio is the median of the rounds' ratios: a change of the clock's rate meets both. Each
round has its arrays in another place: where they lie in memory changes a transpose, and a copy alike, by up
to a tenth, and not both by the same. "Again" is the time of the best rung measured a second time, over the
first. matmul/tensor_cores rounds its inputs, so it is shown, but no rival in float32. The last lines have the
best rung / cuBLAS (in float32 with TF32 off), and best rung / copy from device to device.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from labkit.devices.select import NoGpu, find_gpu
from labkit.devices.timing import Timing, time_kernel
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import Problem
from labkit.kernels.tensor_matmul.family import TensorMatmul
from labkit.kernels.transpose.family import Transpose
from labkit.ladder import running

ROUNDS = 5
SPACER = 17 * 2**20  # bytes between the arrays of one round and the next, twice as many each time
SECONDS = 0.1  # of each measurement
PRODUCTS, ON_TENSOR_CORES = (2048, 4096, 8192), (4096, 8192)
PLANES = (8192, 16384)
DTYPES = ("int32", "float64")
FAMILIES = ("matmul", "transpose", "tensor_matmul")
NO_RIVALS = ("copy", "memcpy", "cublas", "tensor_cores")  # no transposes, no kernel of ours, not in float32

console = Console(width=120)


@dataclass(frozen=True)
class Measured:
    """Times of the rungs and the reference on a problem; the best rung's share of the reference, and
    again.
    """

    problem: Problem
    times: dict[str, Timing]
    best: str
    share: float
    again: float

    def rate(self, rung: str) -> float:
        """GFLOP/s of a product, GB/s of a transpose."""
        form = self.problem.gflops if self.problem.flops else self.problem.gbytes_per_s
        return form(self.times[rung].seconds)


def measure(problem: Problem) -> Measured:
    """Verify and time each rung, then the best and the reference in turns."""
    from labkit.devices.select import xp

    args, cases, times = problem.args(xp), {}, {}
    for case in running.cases(problem):
        name = " ".join([case.rung, dict(case.macros).get("PRECISION", "")]).strip()
        launch, _ = running.verified(case, args)
        cases[name], times[name] = case, time_kernel(launch, seconds=SECONDS)
    rivals = [name for name in times if name.split()[0] not in NO_RIVALS]
    best = min(rivals, key=lambda name: times[name].median)
    again = time_kernel(running.launcher(cases[best], args), seconds=SECONDS)

    ratios, spacers = [], []
    for spacing in range(ROUNDS):
        ours, theirs = (
            time_kernel(running.launcher(cases[name], args), seconds=SECONDS).median
            for name in (best, next(iter(cases)))
        )
        ratios.append(theirs / ours)
        args = moved(args)
        spacers.append(xp.empty(SPACER << spacing, xp.uint8))  # or the next copy lies where the last one did
    return Measured(problem, times, best, median(ratios), again.median / times[best].median)


def moved(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same arguments with their arrays elsewhere in the GPU's memory."""
    import cupy

    copies = tuple(arg.copy() if isinstance(arg, cupy.ndarray) else arg for arg in args)
    cupy.get_default_memory_pool().free_all_blocks()
    return copies


def show(title: str, results: list[Measured], unit: str) -> None:
    """A row a rung: rate, and percent of the reference's, for each problem."""
    table = Table(title=title)
    table.add_column("rung")
    for result in results:
        size = result.problem.shapes()[result.problem.output_name][0]
        table.add_column(f"{size}, {unit}", justify="right")
        table.add_column("%", justify="right")
    reference = next(iter(results[0].times))
    for rung in results[0].times:
        shares = ((result.rate(rung), result.rate(rung) / result.rate(reference)) for result in results)
        table.add_row(
            rung, *(cell for rate, share in shares for cell in (f"{rate:,.0f}", f"{100 * share:.0f}"))
        )
    for label, cells in (("best", "best"), ("best / " + reference, "share"), ("again", "again")):
        values = [getattr(result, cells) for result in results]
        texts = [value if isinstance(value, str) else f"{value:.3f}" for value in values]
        table.add_row(label, *(cell for text in texts for cell in (text, "")))
    console.print(table)


def ladders(families: Sequence[str]) -> Iterator[tuple[str, str, list[Problem]]]:
    """Title, unit and problems of the table of each family and type."""
    if "matmul" in families:
        yield "matmul, float32", "GFLOP/s", [Matmul(n, n, n) for n in PRODUCTS]
    if "transpose" in families:
        for dtype in DTYPES:
            yield f"transpose, {dtype}", "GB/s", [Transpose(n, n, dtype=dtype) for n in PLANES]
    if "tensor_matmul" in families:
        for dtype in TensorMatmul.dtypes:
            yield (
                f"tensor_matmul, {dtype}",
                "GFLOP/s",
                [TensorMatmul(n, n, n, dtype) for n in ON_TENSOR_CORES],
            )


def main() -> None:
    """Print the tables."""
    try:
        console.print(str(find_gpu()))
    except NoGpu as none:
        sys.exit(str(none))
    lines = []
    for title, unit, problems in ladders(sys.argv[1:] or FAMILIES):
        results = [measure(problem) for problem in problems]
        show(title, results, unit)
        sizes = ", ".join(str(problem.shapes()[problem.output_name][0]) for problem in problems)
        shares = " ".join(f"{result.share:.2f}" for result in results)
        lines.append(f"{title}: best/{problems[0].reference_name} at {sizes}: {shares}")
    console.print("\n".join(lines))


if __name__ == "__main__":
    main()
