"""Predict how long a launch takes on a named GPU, which need not be here, and say what limits it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from simt.common.errors import SimtError
from simt.common.occupancy import DEFAULT_GPU, Gpu, gpus
from simt.common.occupancy import gpu as find_gpu
from simt.common.text import article, duration
from simt.compiler.nvrtc import supported_architectures
from simt.kernel import Launch
from simt.module import Kernel
from simt.sass.control_slice import NoCounts
from simt.sass.listing import Sass
from simt.timing import work
from simt.timing.constants import fitted, load_model
from simt.timing.limits import Limit, limits, missing, seconds

if TYPE_CHECKING:
    import pandas as pd

ADVICE = {
    "issue slots": "each instruction takes one; fewer instructions per result help",
    "FP32": "the CUDA cores are busy",
    "integer": "index arithmetic, comparisons and logic fill their pipe; fewer of them per result help",
    "FP64": "the units for double precision are busy",
    "special functions": "roots, sines and conversions fill their pipe",
    "tensor cores": "the tensor cores are busy",
    "uniform": "arithmetic for a whole warp fills its pipe",
    "L1 requests": "the L1 delivers one line of 128 bytes per clock; fewer requests, or ones that touch "
    "fewer lines, help",
    "shared memory": "its 32 banks deliver a word per clock each; registers help, or removing bank "
    "conflicts where there are any",
    "L1 stores": "the L1 passes one sector of 32 bytes per clock on to the L2",
    "latency": "warps wait for results; more warps, or more independent work per warp, help",
    "starting blocks": "so many small blocks are started; more work per block helps",
    "L2": "the bandwidth of the L2 is used up; more reuse in the L1 or shared memory helps",
    "DRAM": "the bandwidth of the memory is used up; fewer bytes help",
}
UNTRIED = 1.3  # the factor by which the interval grows, both ways, on a GPU without recorded times


class NoPrediction(SimtError):
    """The time of a launch cannot be predicted; the message says why."""


@dataclass(frozen=True)
class Prediction:
    """The predicted time of a launch on a GPU: `seconds`, between `low` and `high` in `confidence` of cases.

    `limits` says how long each part of the GPU would take alone, and `limit` names the longest. The times are
    those of CUDA events around a launch whose data is not in the L2, as `labkit.time` measures them.
    `validated` says whether predictions were held against times of this GPU. `str()` is a sentence.
    """

    kernel: str
    gpu: Gpu
    seconds: float
    low: float
    high: float
    confidence: float
    validated: bool
    parts: tuple[Limit, ...]
    hit_rates: Mapping[str, float]
    dram_bytes: float

    @property
    def limit(self) -> str:
        """Return the part that would take longest: the one to work on."""
        return max(self.parts, key=lambda each: each.seconds).name

    @cached_property
    def limits(self) -> pd.DataFrame:
        """Return a table, the longest first.

        seconds   that the part takes if nothing else does
        share     of the predicted time
        count     what the launch asks of it, in `unit`; cycles are those of its busiest pipe
        rate      of the whole GPU, in `unit` per second
        """
        import pandas as pd

        rows = [
            {
                "limit": each.name,
                "seconds": each.seconds,
                "share": each.seconds / self.seconds,
                "count": each.count,
                "unit": each.unit,
                "rate": each.rate,
            }
            for each in sorted(self.parts, key=lambda each: -each.seconds)
            if each.seconds
        ]
        return pd.DataFrame(rows).set_index("limit")

    def __str__(self) -> str:
        name, share = self.limit, max(each.seconds for each in self.parts) / self.seconds
        range_ = f"{duration(self.low)} to {duration(self.high)} in {self.confidence:.0%} of cases"
        text = f"Predicted for {article(self.gpu.name)}: `{self.kernel}` takes "
        text += f"{duration(self.seconds)} ({range_}). "
        if share < START_SHARE:
            text += "Most of that is the start and the end of the launch; the lowest limit of the rest is "
        else:
            text += "Its lowest limit is "
        text += f"{name}: {ADVICE[name]}."
        if not self.validated:
            text += f" No prediction was compared with times of {article(self.gpu.name)} yet."
        return text

    def __repr__(self) -> str:
        return str(self)


START_SHARE = 0.3


def predict_launch(kernel: object, launch: Launch, gpu: str = DEFAULT_GPU) -> Prediction:
    """Predict a launch. Raises ValueError for an unknown GPU, LaunchError, and NoPrediction."""
    on_gpu = find_gpu(gpu)
    if not isinstance(kernel, Kernel):
        raise NoPrediction("this kernel runs in a sandbox, which keeps its machine code to itself")
    constants = fitted()
    found, code = launch_work(kernel, launch, on_gpu)
    parts = limits(found, code.code, constants)
    time = seconds(parts, constants)
    low, high, validated = interval(on_gpu, parts)
    memory = found.memory
    asked = memory.requested
    return Prediction(
        kernel=kernel.name,
        gpu=on_gpu,
        seconds=time,
        low=time * low,
        high=time * high,
        confidence=load_model()["confidence"],
        validated=validated,
        parts=tuple(parts),
        hit_rates={"L1": 1 - memory.l2_read / asked if asked else math.nan, "L2": memory.l2_hit_share},
        dram_bytes=memory.fetched + memory.written,
    )


def launch_work(kernel: Kernel, launch: Launch, gpu: Gpu) -> tuple[work.Work, Sass]:
    """Return what a launch does on a GPU, and its machine code. Raises LaunchError and NoPrediction."""
    if unknown := missing(gpu):
        raise NoPrediction(
            f"the time on {article(gpu.name)} cannot be predicted: gpus.csv does not have "
            f"{', '.join(unknown)}. Choose one of {', '.join(predictable())}"
        )
    bound = kernel.bind(launch)
    try:
        sass = kernel.sass(gpu.name)
        launched = work.launched(gpu, launch.grid, launch.block, sass.registers, bound.shared_bytes)
        sampled = work.run(
            launched, lambda numbers, in_order: kernel.traffic(bound, numbers, gpu.name, in_order)
        )
        return work.work_of(sampled), sass
    except NoCounts as error:
        raise NoPrediction(f"the time of `{kernel.name}` cannot be predicted: {error}") from error


def predictable() -> list[str]:
    """Return the names of the GPUs that the compiler knows and gpus.csv has the needed figures of."""
    made = supported_architectures()
    return [each.name for each in gpus() if not missing(each) and int(each.arch[3:]) in made]


def interval(gpu: Gpu, parts: Sequence[Limit]) -> tuple[float, float, bool]:
    """Return the factors from the predicted time to its low and high end, and whether the GPU was tried.

    They are quantiles of the errors on held-out kernels that have the same lowest limit, or, where these are
    too few, on all of them.
    """
    known = load_model()
    first = max(parts, key=lambda each: each.seconds).name
    low, high = known["errors"].get(first, known["errors"]["any"])
    validated = gpu.name in known["validated"]
    return (low, high, True) if validated else (low / UNTRIED, high * UNTRIED, False)
