"""The GPU's rungs beside cuBLAS and cudaMemcpy: rates, and the best rung's share of the reference.

    python benchmarks/gpu_ladder.py

Every result is verified before it is timed. The best rung and the reference are timed in turns, several
rounds, and their ratio is the median of the rounds' ratios: a change of the clock's rate meets both. "Again"
is the best rung's time in the last round over that in the table. The tensor cores' rung rounds its inputs, so
it is shown, but no rival in float32. Last two lines: best rung / cuBLAS (TF32 off), and best rung / copy from
device to device.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from rich.console import Console
from rich.table import Table

from labkit import ladder
from labkit.device import NoGpu, find_gpu
from labkit.problems import Matmul, Problem, Transpose
from labkit.timing import Timing, time_kernel

ROUNDS = 5
SECONDS = 0.2  # of each measurement
PRODUCTS = (2048, 4096, 8192)
PLANES = (8192, 16384)
DTYPES = ("int32", "float64")
NO_RIVALS = (*ladder.COPIES, "cublas", ladder.ROUNDING)  # no transposes, no kernel of ours, not in float32

console = Console(width=120)


@dataclass(frozen=True)
class Measured:
    "Times of the rungs and the reference on a problem; the best rung's share of the reference, and again."

    problem: Problem
    times: dict[str, Timing]
    best: str
    share: float
    again: float

    def rate(self, rung: str) -> float:
        "GFLOP/s of a product, GB/s of a transpose."
        form = self.problem.gflops if self.problem.flops else self.problem.gbytes_per_s
        return form(self.times[rung].seconds)


def measure(problem: Problem) -> Measured:
    "Verify and time each rung, then the best and the reference in turns."
    from labkit.device import xp

    args, cases = problem.args(xp), ladder.cases(problem)
    launches, times = {}, {}
    for case in cases:
        name = " ".join([case.rung, dict(case.macros).get("PRECISION", "")]).strip()
        launches[name] = ladder.launcher(case, args)
        ladder.poison(problem.output(args))
        launches[name]()
        ladder.verify(case, args)
        times[name] = time_kernel(launches[name], seconds=SECONDS)
    reference = cases[0].rung
    best = min(
        (name for name in times if name.split()[0] not in NO_RIVALS), key=lambda name: times[name].median
    )

    rounds = []
    for _ in range(ROUNDS):
        ours, theirs = (time_kernel(launches[name], seconds=SECONDS) for name in (best, reference))
        rounds.append((ours.median, theirs.median))
    share = median(theirs / ours for ours, theirs in rounds)
    return Measured(problem, times, best, share, rounds[-1][0] / times[best].median)


def show(title: str, results: list[Measured], unit: str) -> None:
    "A row a rung: rate, and percent of the reference's, for each problem."
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


def shares(results: list[Measured]) -> Iterator[str]:
    return (f"{result.share:.2f}" for result in results)


def main() -> None:
    "Print the tables."
    try:
        console.print(find_gpu())
    except NoGpu as none:
        sys.exit(str(none))
    products = [measure(Matmul(n, n, n)) for n in PRODUCTS]
    show("matmul, float32", products, "GFLOP/s")
    planes = {dtype: [measure(Transpose(n, n, dtype=dtype)) for n in PLANES] for dtype in DTYPES}
    for dtype, results in planes.items():
        show(f"transpose, {dtype}", results, "GB/s")
    console.print(f"best/cuBLAS at {', '.join(map(str, PRODUCTS))}: {' '.join(shares(products))}")
    copies = (f"{dtype} {' '.join(shares(results))}" for dtype, results in planes.items())
    console.print(f"best/copy at {', '.join(map(str, PLANES))}: {', '.join(copies)}")


if __name__ == "__main__":
    main()
