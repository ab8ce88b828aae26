"""A picture of a pipeline over time: stages of shared memory that a producer fills and a consumer empties.

It is a model. A copy takes the same time whatever else is on the way, as where latency and not bandwidth is
the limit, and one product follows the other on the tensor cores.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from labkit.figures.style import Plot, titled
from labkit.figures.svg import BLUE, GREEN, SKY
from simt.common.text import counted

STEPS = 8


class Step(NamedTuple):
    """When the tiles of a step are asked for, are there, are multiplied, and have been."""

    asked: float
    full: float
    begun: float
    empty: float


@dataclass(frozen=True)
class Pipeline:
    """A pipeline of `stages`: how long a copy takes, and the product of one stage's tiles."""

    stages: int
    copy: float
    multiply: float

    def steps(self) -> Iterator[Step]:
        """Yield the steps, without end: barriers say when the next copy and product may begin."""
        done: list[Step] = []
        while True:
            last = done[-1] if done else Step(0, 0, 0, 0)
            asked = max(last.asked, done[-self.stages].empty if len(done) >= self.stages else 0)
            full = asked + self.copy
            begun = max(full, last.empty)
            done.append(Step(asked, full, begun, begun + self.multiply))
            yield done[-1]

    @property
    def busy(self) -> float:
        """Return the part of the time, once the first tiles are there, in which the tensor cores work."""
        return min(1, self.stages * self.multiply / (self.copy + self.multiply))

    @property
    def enough(self) -> int:
        """Return the fewest stages with which the tensor cores never wait."""
        return int(-(-(self.copy + self.multiply) // self.multiply))


def timeline(stages: int = 2, copy: float = 3, multiply: float = 1) -> Plot:
    """Draw the first steps: what each stage holds over time, and when the tensor cores work.

    Times are in units of one's choice.
    """
    pipeline = Pipeline(stages, copy, multiply)
    figure = Plot(figsize=(8.5, 0.34 * (stages + 1) + 1.5), layout="constrained")
    axes = figure.subplots()
    for number, step in zip(range(STEPS), pipeline.steps(), strict=False):
        row = number % stages
        for begin, end, colour, label in (
            (step.asked, step.full, SKY, "copy on the way"),
            (step.full, step.begun, GREEN, "full, waits"),
            (step.begun, step.empty, BLUE, "multiplied"),
        ):
            named = label if number == 0 else None  # once in the legend
            axes.barh(row, end - begin, 0.8, begin, color=colour, edgecolor="white", label=named)
        axes.barh(stages, multiply, 0.8, step.begun, color=BLUE, edgecolor="white")
        axes.text(step.asked + 0.1, row, str(number), va="center", fontsize=8)
        middle = step.begun + multiply / 2
        axes.text(middle, stages, str(number), va="center", ha="center", fontsize=8, color="w")
    axes.set_yticks(range(stages + 1), [*(f"stage {row}" for row in range(stages)), "tensor cores"])
    axes.invert_yaxis()
    axes.set(xlabel="time (units; a number is the step)", xlim=(0, None))
    found = f"With {counted(stages, 'stage')} the tensor cores work {100 * pipeline.busy:.3g} % of the time"
    titled(axes, found)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
