"""Trace which instructions the warps of a block run, in order, and with which lanes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simt.common.limits import WARP
from simt.counters.tracing import MOST
from simt.kernel import SECONDS, Size, launch_of
from simt.launch.sample import choose_sample
from simt.module import Kernel
from simt.ptx import Instruction


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
    bound = kernel._bind(launch)
    program = kernel._program(launch, "traced")
    sample = choose_sample([number], launch.grid)
    (count, *_), *visits = kernel._run(program, bound, sample).visits[0]
    if count > MOST:
        raise ValueError(f"block {number} of `{kernel.name}` takes {count} steps; choose at most {MOST}")
    code = kernel.parsed.code
    return [
        Step(
            int(warp),
            np.array([lanes >> lane & 1 for lane in range(WARP)], bool),
            tuple(code[site] for site in program.compiled.blocks[index]),
        )
        for index, lanes, warp in visits[:count]
    ]
