"""Trace which instructions the warps of a block run, in order, and with which lanes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simt.common.limits import WARP
from simt.counters.recording import ENTER, TAG_BITS, Recording
from simt.kernel import SECONDS, Size, launch_of
from simt.launch.sample import choose_sample
from simt.module import Kernel
from simt.ptx import Instruction

MOST = 10_000  # steps
MEGABYTES = 64  # of recorded values, within which so many steps end


@dataclass(frozen=True)
class Step:
    """PTX instructions that a warp runs together; `lanes` says which of the 32 take part."""

    warp: int
    lanes: np.ndarray
    instructions: tuple[Instruction, ...]


def trace(
    kernel: Kernel,
    grid: Size,
    block: Size,
    args: Sequence[object],
    *,
    number: int = 0,
    timeout: float = SECONDS,
) -> list[Step]:
    """Run block `number` of a launch, and return its steps in the order in which the simulator runs them.

    A warp continues at the lowest basic block at which any of its lanes wait, so that lanes that have parted
    meet again as soon as they can. Raises ValueError for more than 10,000 steps, and what a launch raises.
    """
    launch = launch_of(grid, block, args, 0, timeout)
    order = np.arange(-(-math.prod(launch.block) // WARP))
    recording = Recording(MEGABYTES, order[np.newaxis])
    kernel.bind(launch).run(recording, choose_sample([number], launch.grid))
    entered = recording.log.heads[recording.log.heads["tag"] % (1 << TAG_BITS) == ENTER]
    is_whole = len(recording.log.heads) == recording.log.total
    if len(entered) > MOST or not is_whole:
        count = str(len(entered)) if is_whole else f"more than {len(entered)}"
        raise ValueError(f"block {number} of `{kernel.name}` takes {count} steps; choose at most {MOST}")
    code = kernel.parsed.code
    return [
        Step(
            int(visit["warp"]),
            np.array([int(visit["mask"]) >> lane & 1 for lane in range(WARP)], bool),
            tuple(code[site] for site in recording.blocks[visit["tag"] >> TAG_BITS]),
        )
        for visit in entered
    ]
