"""Criteria on predicted times: what `kernel.predict` says of a launch on an H200, which need not be here."""

from collections.abc import Callable, Sequence
from typing import Any

from labkit.core.errors import SimtError
from labkit.core.kernel import Predicted
from labkit.core.occupancy import gpu
from labkit.core.text import duration
from labkit.course.criteria.launches import Launch, as_said
from labkit.course.exercise import Unmet, criterion
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import Problem
from labkit.model import predicted
from labkit.model.time.prediction import NoPrediction
from labkit.simt import AnyKernel

GPU = "H200"
LONGEST = 3  # limits that a message lists
MOST_OF = 0.95  # of the time that the multiply-adds take alone


@criterion("{text}")
def limited_by(
    kernel: AnyKernel, text: str, part: str, make: Callable[[AnyKernel], Launch], hint: str
) -> None:
    """Ask that `part` of an H200 is the lowest limit of a launch."""
    launch = make(kernel)
    found = _predicted(kernel, launch)
    if found.limit != part:
        raise Unmet(f"{launch}\n{_told(found)}; the goal is that {part} takes longest\n{hint}")


@criterion("predicted for an H200: at least {factor:g} times as fast as {rung}, {where}")
def quicker(kernel: AnyKernel, factor: float, rung: str, problem: Problem, where: str, hint: str) -> None:
    """Ask that the predicted time is so many times shorter than that of a rung of the ladder."""
    found = _predicted(kernel, as_said(kernel, problem))
    if isinstance(problem, Matmul) and found.limits.seconds.get("FP32", 0) < MOST_OF * _multiplying(problem):
        raise Unmet(
            f"{problem}\npredicted for an H200: the kernel does not do all of its {problem.flops // 2:,} "
            "multiply-adds. Do its loops depend on something else than the sizes?"
        )
    least = predicted.predict(rung, problem).seconds
    if least < factor * found.seconds:
        raise Unmet(
            f"{problem}\n{_told(found)}. {rung} takes {duration(least)}: yours is "
            f"{least / found.seconds:.3g} times as fast, and the goal is {factor:g} times.\n{hint}"
        )


@criterion("predicted for an H200: at most {most:g} ms")
def within(
    kernel: AnyKernel,
    most: float,
    least: float,
    launch: Callable[[], tuple[Any, Any, Sequence[object]]],
    hint: str,
) -> None:
    """Ask for at most so many predicted ms; less than `least` ms is less than the work takes.

    `launch` makes grid, block and arguments. Results are not verified, and in a grader's sandbox arrays hold
    zeros: other criteria must ask for right results.
    """
    grid, block, args = launch()
    try:
        found = kernel.predict(grid, block, args, gpu=GPU)
    except SimtError as error:
        raise Unmet(f"its time on an H200 cannot be predicted: {error}\n{hint}") from None
    if 1e3 * found.seconds > most:
        raise Unmet(f"{_told(found)}; the goal is at most {duration(most / 1e3)}\n{hint}")
    if 1e3 * found.seconds < least:
        raise Unmet(
            f"{_told(found)}; the work takes at least {duration(least / 1e3)}. Does the kernel do all of it "
            "at any size?"
        )


def _multiplying(problem: Matmul) -> float:
    """Return the seconds that the multiply-adds of a product take at least on the CUDA cores of an H200."""
    on = gpu(GPU)
    assert on.fp32_cores_per_sm and on.boost_mhz
    return problem.flops / 2 / (on.multiprocessors * on.fp32_cores_per_sm * on.boost_mhz * 1e6)


def _predicted(kernel: AnyKernel, launch: Launch) -> Predicted:
    try:
        return launch.predicted(kernel, GPU)
    except NoPrediction as error:
        raise Unmet(f"{launch}\n{error}") from None


def _told(found: Predicted) -> str:
    """Write the predicted time, and the parts of the GPU that would take longest alone."""
    parts = found.limits.seconds.head(LONGEST).items()
    alone = ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts)
    return f"predicted for an H200: {duration(found.seconds)}; its limits alone: {alone}"
