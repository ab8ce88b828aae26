"""Fit the constants of labkit/kernels/matmul/rule.py: measure shapes drawn at random on a GPU, then fit.

    python benchmarks/any_shape_rule.py measure times.jsonl --count 400 --seed 11    # on a GPU: minutes
    python benchmarks/any_shape_rule.py fit times.jsonl                              # anywhere: a minute

`measure` times cuBLAS and what the rule could choose for each shape, unless its estimate is over MOST times
the least. Each result is compared with float64. `fit` changes the constants so that the estimates' logarithms
come near those of the times, most of all for the quickest (Levenberg-Marquardt), with three of four shapes.
It prints the constants, and the time of the rule's choices over the quickest's, for these shapes and the
others.
"""

import json
import random
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import geometric_mean
from typing import Annotated, Any

import numpy as np
import typer

from labkit.kernels import source_with_includes
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.matmul.rule import COSTS, Choice, Costs, PartCosts, Shape, TileCosts, candidates

LARGEST, MOST_FLOPS = 14, 2**38  # 2 to this power is the largest size
MOST, SURE = 2.0, 5.0  # times the least estimate; microseconds, below which all are measured
CHECKED = 2**33  # multiply-adds of products that are compared with float64
ROUNDS, LAUNCHES, MILLISECONDS = 2, 25, 0.4
GOOD = 0.85  # of cuBLAS: the ratio that most shapes should have
NEAR = 2.2  # times the quickest: what is slower has no part in the fit
STEPS, SLOPE, SOFT = 10, 0.02, 0.1  # of the fit; residuals above SOFT count less than their square

app = typer.Typer(add_completion=False)


def drawn(count: int, seed: int) -> list[tuple[int, int, int]]:
    """Draw shapes: M, N and K log-uniform from 1 to 2^LARGEST, with at most MOST_FLOPS operations."""
    rng, shapes = random.Random(seed), list[tuple[int, int, int]]()
    while len(shapes) < count:
        m, n, k = (int(2 ** rng.uniform(0, LARGEST)) for _ in range(3))
        if 2 * m * n * k <= MOST_FLOPS:
            shapes.append((m, n, k))
    return shapes


@app.command()
def measure(
    to: Path, count: Annotated[int, typer.Option()] = 400, seed: Annotated[int, typer.Option()] = 11
) -> None:
    """Measure shapes on a GPU, and write their times."""
    import cupy
    from any_shape import Queue

    sms = cupy.cuda.Device().attributes["MultiProcessorCount"]
    wanted = [(Shape(*shape, sms), _in_question(Shape(*shape, sms))) for shape in drawn(count, seed)]
    modules = {(each.kernel, each.macros) for _, choices in wanted for each in choices}
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        list(pool.map(_cached, modules))
    compiled = {module: _compile(module) for module in modules}
    queue = Queue()
    with to.open("w") as lines:
        for shape, choices in wanted:
            row = _measured(shape, choices, compiled, queue)
            print(json.dumps(row), file=lines, flush=True)
            print(*shape, f"{row['cublas']:.1f} us by cuBLAS, {row['times'][0][0]:.1f} us", flush=True)


def _in_question(shape: Shape) -> list[Choice]:
    all_of_it = list(candidates(shape, COSTS))
    limit = max(SURE, MOST * min(time for time, _ in all_of_it))
    return [choice for time, choice in all_of_it if time <= limit]


def _cached(module: tuple[str, tuple[tuple[str, int], ...]]) -> None:
    """Compile a kernel into CuPy's cache on the disk."""
    _compile(module)


def _compile(module: tuple[str, tuple[tuple[str, int], ...]]) -> Any:
    import cupy

    name, macros = module
    options = ("-std=c++17", "-default-device", *(f"-D{macro}={value}" for macro, value in macros))
    return cupy.RawModule(code=source_with_includes(name), options=options).get_function("matmul")


def _measured(
    shape: Shape, choices: Sequence[Choice], compiled: dict[Any, Any], queue: Callable[..., float]
) -> dict[str, Any]:
    import cupy

    problem, rng = Matmul(shape.m, shape.n, shape.k), cupy.random.default_rng(0)
    a, b = (problem.drawn(rng, problem.shapes()[name]) for name in "AB")
    c = cupy.empty(problem.shapes()["C"], cupy.float32)
    args = (a, b, c, *problem.scalars())
    is_small = shape.m * shape.n * shape.k <= CHECKED
    exact = a.astype(float) @ b.astype(float) if is_small else None
    cublas, times = _microseconds(problem.reference_call(args), queue), []
    for choice in choices:
        kernel = compiled[choice.kernel, choice.macros]
        c.fill(cupy.nan)
        kernel(choice.grid, choice.block, args)
        if exact is not None and not abs(c - exact).max() < 1e-4 * shape.k**0.5:
            sys.exit(f"{choice} is wrong for {shape}.")

        def launch(kernel: Any = kernel, choice: Choice = choice) -> None:
            kernel(choice.grid, choice.block, args)

        times.append((_microseconds(launch, queue), choice))
    return {"shape": shape, "cublas": cublas, "times": sorted(times)}


def _microseconds(call: Callable[[], object], queue: Callable[..., float]) -> float:
    once = queue(call, 1)
    count = max(1, min(LAUNCHES, int(MILLISECONDS / once)))
    return 1e3 * min(queue(call, count) for _ in range(ROUNDS if once < MILLISECONDS else 1))


@app.command()
def fit(of: Path) -> None:
    """Fit the constants to measured times, and print them."""
    rows = [
        (Shape(*row["shape"]), row["cublas"], {_key(*choice): time for time, choice in row["times"]})
        for row in map(json.loads, of.read_text().splitlines())
    ]
    held_out, fitted = rows[::4], [row for i, row in enumerate(rows) if i % 4]
    values, damping = _flat(COSTS), 1e-2
    residuals = _residuals(values, fitted)
    for _ in range(STEPS):
        slopes = np.stack(
            [(_residuals(values + SLOPE * unit, fitted) - residuals) / SLOPE for unit in np.eye(values.size)],
            1,
        )
        hessian, gradient = slopes.T @ slopes, slopes.T @ residuals
        for _ in range(6):
            scaled = hessian + damping * np.diag(hessian.diagonal() + 1e-3)
            stepped = values + np.clip(np.linalg.solve(scaled, -gradient), -0.5, 0.5)
            found = _residuals(stepped, fitted)
            if found @ found < residuals @ residuals:
                values, residuals, damping = stepped, found, damping / 4
                break
            damping *= 5
    print(_costs(values))
    for name, some in (("fitted", fitted), ("held out", held_out)):
        print(f"{name}: {_verdict(values, some)}")


def _key(kernel: str, macros: Any, grid: Any, _block: Any) -> tuple[Any, ...]:
    return kernel, tuple(tuple(macro) for macro in macros), tuple(grid)


def _flat(costs: Costs) -> np.ndarray:
    """Return the logarithms of all constants; 0 becomes the least that may follow from them."""
    first = (costs.launch, costs.read, costs.written, costs.unaligned, costs.share, costs.share_element)
    tiles = (value for tile in costs.tiles.values() for value in tile)
    return np.log(np.maximum([*first, *tiles, *costs.rows, *costs.columns], 1e-6))


def _costs(values: np.ndarray) -> Costs:
    numbers = [float(f"{value:.4g}") for value in np.exp(values)]
    of_tiles, width = 6, len(TileCosts._fields)
    of_rows = of_tiles + width * len(COSTS.tiles)
    of_columns = of_rows + len(PartCosts._fields)
    tiles = {tile: TileCosts(*numbers[of_tiles + width * i :][:width]) for i, tile in enumerate(COSTS.tiles)}
    parts = PartCosts(*numbers[of_rows:of_columns]), PartCosts(*numbers[of_columns:])
    return Costs(*numbers[:of_tiles], tiles, *parts)


def _residuals(values: np.ndarray, rows: Sequence[Any]) -> np.ndarray:
    costs, found = _costs(values), []
    for shape, _, times in rows:
        quickest = min(times.values())
        for estimate, choice in candidates(shape, costs):
            time = times.get(_key(*choice))
            if time and time < NEAR * quickest:
                found.append(np.log(estimate / time) * quickest / time)
    plain = np.array(found)
    return np.sign(plain) * SOFT * np.sqrt(2 * (np.sqrt(1 + (plain / SOFT) ** 2) - 1))


def _verdict(values: np.ndarray, rows: Sequence[Any]) -> str:
    costs, slower, ratios = _costs(values), [], []
    for shape, cublas, times in rows:
        known = [(time, _key(*choice)) for time, choice in candidates(shape, costs)]
        _, chosen = min(each for each in known if each[1] in times)
        slower.append(times[chosen] / min(times.values()))
        ratios.append(cublas / times[chosen])
    good = np.mean(np.array(ratios) >= GOOD)
    return (
        f"{len(rows)} shapes, {geometric_mean(slower):.3f} of the quickest's time, cuBLAS's time over it "
        f"{geometric_mean(ratios):.2f}, least {min(ratios):.2f}, {good:.0%} >= {GOOD}"
    )


if __name__ == "__main__":
    app()
