"""How far apart in memory neighbouring lanes are, where that is known when code is made."""

from functools import cache

from simt.analysis.flow import Flow
from simt.analysis.lanes import Shape
from simt.common.limits import WARP
from simt.ptx import Address, Instruction, Kernel


def strides(kernel: Kernel, flow: Flow) -> list[int | None]:
    """Return each instruction's commonest distance in bytes between neighbouring lanes.

    None: no distance is common. 0: the same address, or known only when the kernel runs, or no access.
    """

    def found(instruction: Instruction) -> int | None:
        address = next(operand for operand in instruction.operands if isinstance(operand, Address))
        return stride(flow.rules.operand(address.base, flow.shapes))

    return [found(instruction) if instruction.is_access else 0 for instruction in kernel.code]


@cache
def stride(shape: Shape) -> int | None:
    """Return the commonest step between lanes that share a base, since different bases lie anywhere."""
    offsets = shape.lane_offsets()
    steps = [offsets[i + 1] - offsets[i] for i in range(WARP - 1) if (i + 1) % shape.group]
    commonest = max(steps, key=steps.count, default=0)
    return commonest if 2 * steps.count(commonest) >= len(steps) else None
