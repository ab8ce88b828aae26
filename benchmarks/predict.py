"""Hold predicted times against recorded ones, kernel by kernel; --fit fits the model's constants first.

usage: python benchmarks/predict.py [--fit] [--only RE]
The kernels are those of benchmarks/timed; data/h200/timed and data/h100/timed have their times. Constants are
fitted to the kernels of the set `build` alone, on both GPUs together. What is printed last, and the interval
of each prediction, comes from the set `held out`. Only launches of 10 microseconds or more are judged.
With --fit, simt/data/time_model.json is written: the constants, which kernels they are from, and the errors.
"""

import csv
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, product
from pathlib import Path
from statistics import median, quantiles
from typing import Annotated

import numpy as np
import typer
from tqdm import tqdm

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests")]

import timed  # noqa: E402
from gallery import Argument  # noqa: E402

import simt  # noqa: E402
from simt.common.occupancy import gpu  # noqa: E402
from simt.kernel import launch_of  # noqa: E402
from simt.sass.control_slice import NoCounts  # noqa: E402
from simt.timing import work  # noqa: E402
from simt.timing.constants import Constants, fitted  # noqa: E402
from simt.timing.limits import Limit, limits, seconds  # noqa: E402

GPUS = {"H200": "h200", "H100 SXM5": "h100"}
LEAST = 10e-6  # seconds: a shorter launch is not judged
ALIKE = 1.05  # times that differ by a smaller factor have no order
CONFIDENCE = 0.9
FEW = 12  # held-out launches with one first limit: fewer have no interval of their own
# What is fitted, and within which bounds.
BOUNDS = {
    "power": (1.5, 8),
    "power_of_cores": (1.5, 8),
    "start_us": (2.5, 6),
    "block_clocks": (0, 1500),
    "warp_clocks": (0, 30),
    "loaded_l2": (0, 6),
    "loaded_dram": (0, 2),
    "cold": (0.8, 2),
    "line_clocks": (0, 6),
    "barrier_clocks": (0, 60),
    "barrier_warp_clocks": (0.5, 6),
    "barrier_cycles": (0, 2),
    "shared_clocks": (0.8, 2),
    "l2_read": (0.3, 1.1),
    "l2_write": (0.25, 1),
    "atomic_gs": (30, 150),
    "read_gain": (1, 1.2),
    "scattered": (0, 4),
    "miss_cycles": (0, 1),
    "register_banks": (0, 1),
    "barrier_queue": (0, 1.5),
    "tail": (0, 1),
    "dirty": (0.1, 0.6),
}
ROUNDS, STEP, SHRINK, NEAR = 5, 0.15, 0.6, 0.08


@dataclass(frozen=True)
class Judged:
    """A recorded launch, and what is needed to predict it."""

    launch: timed.Launch
    gpu: str
    measured: float  # seconds
    work: work.Work
    code: object

    def limits(self, constants: Constants) -> list[Limit]:
        """Return the limits of the launch."""
        return limits(self.work, self.code, constants)  # type: ignore[arg-type]

    def predicted(self, constants: Constants) -> float:
        """Return the predicted seconds."""
        return seconds(self.limits(constants), constants)


def main(
    fit: Annotated[bool, typer.Option(help="fit the constants, and write simt/data/time_model.json")] = False,
    only: Annotated[str, typer.Option(help="a regular expression for the names of launches")] = "",
) -> None:
    """Predict every recorded launch, and print how far off that is."""
    start = time.perf_counter()
    judged, refused = gathered(only)
    print(f"{len(judged)} launches counted in {time.perf_counter() - start:.0f} s")
    constants = fitted_to([each for each in judged if is_fitted(each)]) if fit else fitted()
    for each in judged:
        show(each, constants)
    for line in refused:
        print(line)
    held_out = [each for each in judged if each.launch.set == "held out" and each.measured >= LEAST]
    if fit and not only:
        write(constants, judged, held_out)
    for name in GPUS:
        for its_set in ("build", "held out"):
            some = [e for e in judged if e.gpu == name and e.launch.set == its_set and e.measured >= LEAST]
            print(summary(f"{its_set}, {name}", some, constants))


def is_fitted(each: Judged) -> bool:
    """Say whether constants may be fitted to a launch."""
    return each.launch.set == "build" and each.measured >= LEAST


def gathered(only: str) -> tuple[list[Judged], list[str]]:
    """Run a sample of every launch's blocks; return what they do on each GPU, and what is refused."""
    times = {name: recorded(folder) for name, folder in GPUS.items()}
    chosen = [each for each in timed.launches() if re.search(only, each.name)]
    found, refused = [], []
    for launch in tqdm(chosen, unit="launch"):
        try:
            sampled, code = counted(launch)
            for name in GPUS:
                here = replace(sampled, launched=replace(sampled.launched, gpu=gpu(name)))
                found.append(Judged(launch, name, times[name][launch.name], work.work_of(here), code))
        except NoCounts as error:
            refused.append(f"{launch.name:28} not predicted: {error}")
    return found, refused


def counted(launch: timed.Launch) -> tuple[work.Sampled, object]:
    """Run a sample of a launch's blocks in the simulator."""
    case, first = launch.case, next(iter(GPUS))
    module = simt.RawModule(code=case.source, options=case.options, name_expressions=case.name_expressions)
    kernel = module.get_function(case.entry)
    kernel.max_dynamic_shared_size_bytes = case.shared_mem or None
    sass = kernel.sass(first)
    decides = kernel.lifted(sass.code, keeps_traffic=True).needs_contents
    args = tuple(value(each, decides) for each in case.arguments)
    asked = launch_of(case.grid, case.block, args, case.shared_mem, 60)
    bound = kernel.bind(asked)
    launched = work.launched(gpu(first), asked.grid, asked.block, sass.registers, bound.shared_bytes)
    return work.run(launched, lambda *which: kernel.traffic(bound, which[0], first, which[1])), sass.code


def value(argument: Argument, decides: bool) -> object:
    """Return an argument of a large launch: zeros, which take no memory, where contents decide nothing."""
    if argument.shape is None:
        return np.dtype(argument.dtype).type(argument.fill)
    if not decides:
        return np.zeros(argument.shape, argument.dtype)
    return np.resize(timed.values(argument), argument.shape)


def recorded(folder: str) -> dict[str, float]:
    """Read the times of a GPU, in seconds by launch."""
    with (ROOT / "data" / folder / "timed" / "times.csv").open() as file:
        return {row["launch"]: float(row["median_ms"]) / 1e3 for row in csv.DictReader(file)}


def show(each: Judged, constants: Constants) -> None:
    """Print one launch: predicted and measured."""
    found = sorted(each.limits(constants), key=lambda one: -one.seconds)[:3]
    predicted = each.predicted(constants)
    first = ", ".join(f"{one.name} {one.seconds * 1e6:.1f}" for one in found)
    error = predicted / each.measured - 1
    print(
        f"{each.launch.name:28} {each.launch.set:9} {each.gpu:10} {predicted * 1e6:9.1f} us "
        f"{each.measured * 1e6:9.1f} us {error:+7.1%}  {first}"
    )


def summary(label: str, some: Sequence[Judged], constants: Constants) -> str:
    """Return the last lines: how far predictions are off, and how often they are in the right order."""
    if not some:
        return f"{label}: n 0 launches"
    pairs = [(each.predicted(constants), each.measured) for each in some]
    errors = [abs(a / b - 1) for a, b in pairs]
    within = sum(error <= 0.2 for error in errors) / len(errors)
    return (
        f"{label}: n {len(some)} launches, median error {median(errors):.1%}, within 20 %: {within:.1%}, "
        f"order right {in_order(pairs):.1%}"
    )


def in_order(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the share of pairs of launches with different times that are predicted in the right order."""
    different = [(a, b) for a, b in combinations(pairs, 2) if max(a[1] / b[1], b[1] / a[1]) > ALIKE]
    right = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in different)
    return right / len(different) if different else 1.0


# ---------------------------------------------------------------------------------------------------- fitting


def fitted_to(some: Sequence[Judged]) -> Constants:
    """Return the constants that fit these launches best, one after the other (coordinate descent).

    The loss grows with the square of small errors and linearly with large ones (Huber): a few kernels that
    the model does not understand must not bend it.
    """

    def loss(constants: Constants) -> float:
        errors = np.abs([np.log(each.predicted(constants) / each.measured) for each in some])
        return float(np.mean(np.where(errors < NEAR, errors**2 / (2 * NEAR), errors - NEAR / 2)))

    best, step = Constants(), STEP
    least = loss(best)
    for _ in range(ROUNDS):
        for name, sign in product(BOUNDS, (1, -1)):
            while (tried := moved(best, name, sign * step)) and (now := loss(tried)) < least - 1e-6:
                best, least = tried, now
        step *= SHRINK
        print(f"loss {least:.4f}", flush=True)
    return best


def moved(constants: Constants, name: str, step: float) -> Constants | None:
    """Return the constants with one of them larger by a share, within bounds; None for no change."""
    low, high = BOUNDS[name]
    now = getattr(constants, name)
    changed = min(high, max(low, now * (1 + step)))
    return None if changed == now else replace(constants, **{name: changed})


def write(constants: Constants, judged: Sequence[Judged], held_out: Sequence[Judged]) -> None:
    """Write simt/data/time_model.json."""
    factors: dict[str, list[float]] = {"any": []}
    for each in held_out:
        found = each.limits(constants)
        factor = each.measured / seconds(found, constants)
        factors["any"].append(factor)
        factors.setdefault(max(found, key=lambda one: one.seconds).name, []).append(factor)
    told = {
        "what": "constants of simt.timing, and how far its predictions are off",
        "command": "python benchmarks/predict.py --fit",
        "constants": {name: round(value, 4) for name, value in asdict(constants).items()},
        "build": sorted({each.launch.kernel for each in judged if is_fitted(each)}),
        "held_out": sorted({each.launch.kernel for each in held_out}),
        "validated": list(GPUS),
        "confidence": CONFIDENCE,
        "errors": {name: ends(some) for name, some in factors.items() if len(some) >= FEW},
        "median_error": round(
            median(abs(each.predicted(constants) / each.measured - 1) for each in held_out), 4
        ),
    }
    (ROOT / "simt" / "data" / "time_model.json").write_text(json.dumps(told, indent=2) + "\n")


def ends(factors: Sequence[float]) -> tuple[float, float]:
    """Return the quantiles of measured / predicted between which CONFIDENCE of them lie."""
    cuts = quantiles(factors, n=40, method="inclusive")
    outside = round((1 - CONFIDENCE) / 2 * 40)
    return round(cuts[outside - 1], 4), round(cuts[-outside], 4)


if __name__ == "__main__":
    typer.run(main)
