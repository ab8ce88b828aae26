"""A checked run of a kernel with mbarriers, bulk copies, wgmma or clusters.

What orders two accesses to shared memory is more than a barrier there. So each access to shared memory, each
wgmma and each fence between proxies is told to the host, which keeps the order (ordering.py).
Global and local memory are checked as in other kernels.
"""

from dataclasses import replace

from llvmlite import ir

from simt.analysis.accesses import Access
from simt.analysis.layout import STRIDE
from simt.code import services
from simt.code.abi import I32, I64, Frame, Value, load_field
from simt.code.emitter import ObservedAccess
from simt.code.instructions import Kind, constant
from simt.code.vectors import broadcast
from simt.code.warp import Warp
from simt.common.limits import WARP
from simt.ptx import Instruction, Kernel, Operand, Vector
from simt.sanitizer.checking import CheckingEmitter

TOLD = {("wgmma", "mma_async"), ("fence", "proxy"), ("fence", "mbarrier_init")}


class AsynchronousEmitter(CheckingEmitter):
    """Tells the host of accesses to shared memory, and checks the others itself."""

    def attach(self, w: Warp) -> None:
        """Find the registers that hold sums of products."""
        super().attach(w)
        self.sums = sums(w.kernel)

    def kind(self, instruction: Instruction) -> object:
        """Keep instructions that read sums apart from others."""
        return super().kind(instruction), self._reads_sums(instruction)

    def _reads_sums(self, instruction: Instruction) -> bool:
        is_product = instruction.parts[0] == "wgmma"
        return not is_product and any(register.name in self.sums for register in instruction.sources)

    def reads(self, instruction: Instruction) -> None:
        """Tell the host of an instruction that reads sums, by the complement of its number."""
        super().reads(instruction)
        if self._reads_sums(instruction):
            w = self.w
            site = w.b.not_(w.site(instruction))
            services.call_host(w.b, w.launch, w.frame, site, w.active(instruction), [])

    def fast(self, instruction: Instruction, access: Access) -> None:
        """Check an access that a whole warp makes in its fast form."""
        if access.space == "shared":
            self._track(instruction, access)
        else:
            super().fast(instruction, access)

    def careful(self, look: ObservedAccess) -> None:
        """Tell the host of an access to shared memory, or of one that may go there."""
        if look.access.space in ("shared", "generic"):
            services.call_host(look.b, look.launch, look.frame, look.site, look.mask, [look.addresses])
        if look.access.space == "generic":
            super().careful(replace(look, mask=self._elsewhere(look)))
        elif look.access.space != "shared":
            super().careful(look)

    def _elsewhere(self, look: ObservedAccess) -> Value:
        """Return the lanes whose addresses lie in no shared memory of the cluster."""
        b, blocks = look.b, self.w.flow.kernel.blocks_together
        rank = b.zext(load_field(b, Frame, look.frame, "rank"), I64)
        start = b.sub(
            b.ptrtoint(load_field(b, Frame, look.frame, "shared"), I64), b.mul(rank, ir.Constant(I64, STRIDE))
        )
        offsets = b.sub(look.addresses, broadcast(b, start, WARP))
        elsewhere = b.icmp_unsigned(">=", offsets, constant(offsets, blocks * STRIDE))
        return b.and_(look.mask, b.bitcast(elsewhere, I32))

    def step(self, instruction: Instruction) -> None:
        """Tell the host of what reads shared memory by itself, and of fences for it."""
        super().step(instruction)
        if instruction.parts[:2] in TOLD:
            w = self.w
            values = [w.value(each, Kind("b64"), WARP) for each in told(instruction)]
            services.call_host(w.b, w.launch, w.frame, w.site(instruction), w.active(instruction), values)


def sums(kernel: Kernel) -> set[str]:
    """Return the registers to which products add, and those that copies make of them."""
    found = {
        register.name
        for each in kernel.code
        if each.parts[:2] == ("wgmma", "mma_async")
        for register in each.results
    }
    copies = [each for each in kernel.code if each.parts[0] == "mov"] if found else []
    grows = bool(found)
    while grows:
        more = {
            register.name
            for each in copies
            if any(source.name in found for source in each.sources)
            for register in each.results
        }
        grows = not more <= found
        found |= more
    return found


def told(instruction: Instruction) -> list[Operand]:
    """Return the operands of a wgmma that are descriptors: A, unless it is in registers, and B."""
    if instruction.parts[:2] != ("wgmma", "mma_async"):
        return []
    return [each for each in instruction.operands[1:3] if not isinstance(each, Vector)]
