"""A checked run of a kernel with mbarriers, bulk copies, wgmma or clusters.

What orders two accesses to shared memory is more than a barrier there. So each access to shared memory, each
wgmma and each fence between proxies is told to the host, which keeps the order (asynchronous/ordering.py). Global
and local memory are checked as in other kernels.
"""

from llvmlite import ir

from labkit.core.limits import WARP
from labkit.simt.analysis.accesses import Access
from labkit.simt.code import services
from labkit.simt.code.abi import I32, I64, POINTER, Launch, Value, field
from labkit.simt.code.careful import entry_slot
from labkit.simt.code.instructions import Kind
from labkit.simt.code.observe import Look
from labkit.simt.ptx import Instruction, Operand, Vector
from labkit.simt.sanitizer.checking import Checking

TOLD = {("wgmma", "mma_async"), ("fence", "proxy")}


class AsynchronousChecking(Checking):
    """Tells the host of accesses to shared memory, and checks the others itself."""

    def fast(self, instruction: Instruction, access: Access) -> None:
        """Check an access that a whole warp makes in its fast form."""
        if access.space == "shared":
            self._track(instruction, access)
        else:
            super().fast(instruction, access)

    def careful(self, look: Look) -> None:
        """Tell the host of an access to shared memory, or of one that may go there."""
        if look.access.space in ("shared", "generic"):
            self._tell(look.b, look.launch, look.frame, look.site, look.mask, [look.addresses])
        if look.access.space != "shared":
            super().careful(look)

    def step(self, instruction: Instruction) -> None:
        """Tell the host of what reads shared memory by itself, and of fences between proxies."""
        super().step(instruction)
        if instruction.parts[:2] in TOLD:
            w = self.w
            values = [w.value(each, Kind("b64"), WARP) for each in told(instruction)]
            self._tell(w.b, w.launch, w.frame, w.site(instruction), w.active(instruction), values)

    def _tell(
        self, b: ir.IRBuilder, launch: Value, frame: Value, site: Value, mask: Value, values: list[Value]
    ) -> None:
        slot = entry_slot(b, ir.ArrayType(services.LANES, max(1, len(values))))
        for number, value in enumerate(values):
            b.store(value, b.gep(slot, [ir.Constant(I32, 0), ir.Constant(I32, number)]))
        with b.if_then(b.icmp_unsigned("!=", mask, ir.Constant(I32, 0))):
            place = b.load(field(b, Launch, launch, "serve"), typ=I64)
            pointer = b.bitcast(slot, POINTER)
            b.call(b.inttoptr(place, services.SERVE.as_pointer()), [frame, site, mask, pointer, pointer])


def told(instruction: Instruction) -> list[Operand]:
    """Return the operands of a wgmma that are descriptors: A, unless it is in registers, and B."""
    if instruction.parts[:2] != ("wgmma", "mma_async"):
        return []
    return [each for each in instruction.operands[1:3] if not isinstance(each, Vector)]
