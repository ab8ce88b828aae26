"""How far apart in memory neighbouring lanes are, where that is known when code is made."""

from labkit.core.limits import WARP
from labkit.simt.analysis.accesses import Accesses
from labkit.simt.analysis.flow import Flow
from labkit.simt.analysis.lanes import Shape
from labkit.simt.analysis.layout import Layout
from labkit.simt.ptx import Kernel


def strides(kernel: Kernel, flow: Flow, layout: Layout) -> list[int | None]:
    """Return each instruction's commonest distance in bytes between neighbouring lanes.

    None: no distance is common. 0: the same address, or known only when the kernel runs, or no access.
    """
    found: list[int | None] = [0] * len(kernel.code)
    site = {id(instruction): number for number, instruction in enumerate(kernel.code)}
    for block in flow.blocks:
        for position, access in Accesses(block, flow, layout).at.items():
            found[site[id(block.code[position])]] = stride(access.shape)
    return found


def stride(shape: Shape) -> int | None:
    """Return the commonest step between lanes that share a base, since different bases lie anywhere."""
    offsets = shape.lane_offsets()
    steps = [offsets[i + 1] - offsets[i] for i in range(WARP - 1) if (i + 1) % shape.group]
    commonest = max(steps, key=steps.count, default=0)
    return commonest if 2 * steps.count(commonest) >= len(steps) else None
