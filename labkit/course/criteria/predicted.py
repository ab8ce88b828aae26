"""Criteria on predicted times: what `kernel.predict` says of a launch on an H200, which need not be here.

The time counts where the launch is right: the blocks from whose work it follows, and some others, run on the
same arrays, and what they write is verified (`verified`). So a kernel that does less in so large a launch, in
some of its blocks or for some numbers has no predicted time, and no floor under the time is needed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from labkit.course import fresh_inputs
from labkit.course.exercise import Unmet, criterion
from labkit.figures import own_product
from labkit.kernels.matmul.family import Matmul
from labkit.model import predicted
from labkit.model.sampled import Argument, Contents, tried
from simt import AnyKernel
from simt.common.compare import differs
from simt.common.errors import SimtError
from simt.common.text import duration
from simt.kernel import Predicted
from simt.timing.prediction import NoPrediction

GPU = "H200"  # of which the criteria speak, and for which their limits were set
FLOAT = 4  # bytes
LONGEST = 3  # limits that a message lists
SHARE = 0.9  # of their fair share of the output that blocks must write: a tile may stick out
PARTS = ((0, 1 / 8), (1 / 8, 7 / 8), (7 / 8, 1))  # of a grid, from which blocks are drawn
UNIT = 2.0**-24  # half the distance from 1 to the next float32
MORE_BYTES = 1.1  # times those that a launch must move
SLACK = 0.95  # of a goal where the size is not the stated one
MORE_WORK = (1.0625, 1.125, 1.1875, 1.25)  # times the stated work
HALF_THE_WORK = (0.5, 0.53125, 0.5625, 0.59375)  # for arrays of hundreds of megabytes

# The right values at places of the output, and how far a right kernel may be from each.
Right = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | float]]


@dataclass(frozen=True)
class Large:
    """A launch that is predicted, with the arguments of the kernel, and the right values of the output.

    One of `args` is the output, `Contents` without a seed. `told` names the sizes to the student.
    """

    told: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[Argument, ...]
    right: Right

    @property
    def bytes(self) -> int:
        """Return the bytes that must be moved, each element once."""
        return sum(FLOAT * math.prod(each.shape) for each in self.args if isinstance(each, Contents))

    @property
    def output(self) -> tuple[int, ...]:
        """Return the shape of the output."""
        (shape,) = (each.shape for each in self.args if isinstance(each, Contents) and each.seed is None)
        return shape

    def __str__(self) -> str:
        return f"{self.told}, in the launch whose time is predicted"


def verified(kernel: AnyKernel, launch: Large, hint: str = "") -> Predicted:
    """Return the predicted time of a launch. Raises Unmet, with `hint`, unless its blocks do the work."""
    total = math.prod(launch.grid)
    try:
        found = tried(kernel, launch.grid, launch.block, launch.args, _blocks(total), GPU)
    except NoPrediction as error:
        told = f"its time on an H200 cannot be predicted: {error}"
        raise Unmet("\n".join(filter(None, (str(launch), told, hint)))) from None
    except SimtError as error:
        raise Unmet(f"{launch}\n{error}", error) from None
    places, values = found.places, found.values
    right, tolerance = launch.right(places)
    wrong = np.flatnonzero(differs(values, right, tolerance))
    ran, fair = len(found.blocks), math.prod(launch.output) * len(found.blocks) / total
    if len(wrong):
        first = wrong[0]
        index = ", ".join(str(int(at)) for at in np.unravel_index(places[first], launch.output))
        raise Unmet(
            f"{launch}\n[{index}] of the output is {values[first]:.9g}; it should be "
            f"{right[first]:.9g}. Of {len(places):,} elements that {ran} of its {total:,} blocks write, "
            f"{len(wrong):,} are wrong. Does the kernel do all of its work at any size?"
        )
    if (written := len(np.unique(found.places))) < SHARE * fair:
        raise Unmet(
            f"{launch}\n{ran} of its {total:,} blocks write {written:,} elements of the output; "
            f"their fair share is {fair:,.0f}. Each block should do its own part, whichever others run."
        )
    return found.predicted


@criterion("{text}")
def limited_by(kernel: AnyKernel, text: str, part: str, make: Callable[[], Large], hint: str) -> None:
    """Ask that `part` of an H200 is the lowest limit of a launch, and that it moves no bytes in vain."""
    launch = make()
    found = verified(kernel, launch, hint)
    if found.limit != part:
        raise Unmet(f"{launch}\n{_told(found)}; the goal is that {part} takes longest\n{hint}")
    moved, needed = found.limits["count"].get("DRAM", 0), launch.bytes
    if moved > MORE_BYTES * needed:
        raise Unmet(
            f"{launch}\n{moved:,.0f} bytes go to and from the device memory; {needed:,} are enough.\n{hint}"
        )


@criterion("predicted for an H200: at least {factor:g} times as fast as {rung}, {where}")
def quicker(
    kernel: AnyKernel,
    factor: float,
    rung: str,
    problem: Matmul,
    where: str,
    hint: str,
    others: tuple[int, ...] = (),
) -> None:
    """Ask that the predicted time is so many times shorter than that of a rung of the ladder.

    Inside `drawn` the product has one of the `others` for its K, and the goal has a little slack. M and N
    stay: how blocks fill the GPU depends on them.
    """
    depth = fresh_inputs.one_of(problem.K, others or (problem.K,))
    if depth != problem.K:
        factor, problem = SLACK * factor, replace(problem, K=depth)
    found = verified(kernel, product(kernel, problem), hint)
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
    make: Callable[[float], Large],
    hint: str,
    work: tuple[float, ...] = MORE_WORK,
    growing: float = 1,
) -> None:
    """Ask for at most so many predicted ms. Inside `drawn` the launch has other `work`, and time like it.

    `make` makes the launch with so many times the stated work, of whose time the share `growing` grows with
    the work. The goal then has a little slack.
    """
    times = fresh_inputs.one_of(1.0, work)
    most *= 1 if times == 1 else (1 + growing * (times - 1)) / SLACK
    found = verified(kernel, make(times), hint)
    if 1e3 * found.seconds > most:
        raise Unmet(f"{_told(found)}; the goal is at most {duration(most / 1e3)}\n{hint}")


def product(kernel: AnyKernel, problem: Matmul) -> Large:
    """Return the launch of a product without alpha and beta, as the kernel's own line says."""
    M, N, K = problem.M, problem.N, problem.K
    a = Contents((M, K), fresh_inputs.fresh(problem.seed, "A"), -1, 1)
    b = Contents((K, N), fresh_inputs.fresh(problem.seed, "B"), -1, 1)

    def right(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Multiply the rows and columns that the places need; |A| |B| is at most the product of their norms.

        The product here is rounded to float32, too: hence twice the bound.
        """
        (rows, row), (cols, col) = (np.unique(each, return_inverse=True) for each in np.divmod(places, N))
        of_a = a.at(rows[:, None] * K + np.arange(K)).astype(np.float32)
        of_b = b.at(np.arange(K)[:, None] * N + cols).astype(np.float32)
        most = np.linalg.norm(of_a, axis=1)[row] * np.linalg.norm(of_b, axis=0)[col]
        return (of_a @ of_b)[row, col].astype(np.float64), 2 * (K + 2) * UNIT * most

    grid, block = own_product.launch(kernel, problem)
    return Large(str(problem), grid, block, (a, b, Contents((M, N)), *problem.scalars()), right)


def _blocks(total: int) -> list[int]:
    """Draw blocks of a grid: near its start, in the middle and near its end."""
    rng = np.random.default_rng(fresh_inputs.fresh(total, "blocks"))
    ends = ((int(first * total), max(int(first * total) + 1, int(last * total))) for first, last in PARTS)
    return sorted({int(number) for first, last in ends for number in rng.integers(first, last, 2)})


def _told(found: Predicted) -> str:
    """Write the predicted time, and the parts of the GPU that would take longest alone."""
    parts = found.limits.seconds.head(LONGEST).items()
    alone = ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts)
    return f"predicted for an H200: {duration(found.seconds)}; its limits alone: {alone}"
