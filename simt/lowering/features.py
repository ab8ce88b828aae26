"""Refuse, by name and line, each feature that the simulator does not have."""

import re

from simt.common.errors import SimtError
from simt.ptx import Address, Instruction, Kernel, Symbol, Vector

# A pattern for the opcode or a name among the operands, and the name by which students know it.
_OPCODES = {
    r"txq|suq|istypep": "questions about a texture or surface (txq, suq): pass its sizes as arguments",
    r"sured": "atomic operations on surfaces (sured): use atomicAdd on a plain array",
    r"suld\.p|sust\.p": "surface accesses with conversion (sust.p): write the element's own type",
    r"suld|sust": "surface accesses of this kind: use surf1D, surf2D or surf3D",
    r"tex\.(2dms|a2dms|base)": "multi-sampled textures (tex.2dms): use tex2D",
    r"st\.bulk": "bulk stores (st.bulk): clear shared memory in a loop",
    r"mma\.sp(::\w+)?|wgmma\.mma_async\.sp": "products of sparse matrices (mma.sp, wgmma.sp): use dense ones",
    r"tcgen05": "tensor memory (tcgen05): use wgmma, WMMA (nvcuda::wmma) or mma.sync",
    r"multimem": "sums over several GPUs (multimem): add the parts on one GPU",
    r"clusterlaunchcontrol": "blocks that take over others' work (clusterlaunchcontrol): launch them all",
    r"alloca|stacksave|stackrestore": "arrays whose size is known at run time only (alloca)",
}
_NAMES = {
    r"%envreg\d*": (
        "grid-wide synchronisation (cg::this_grid().sync()) in code compiled with -G: leave -G away"
    ),
    r"cudaCGGetIntrinsicHandle|cudaCGSynchronize\w*": (
        "grid-wide synchronisation (cg::this_grid().sync()): end the kernel and launch another"
    ),
    r"cudaLaunchDevice\w*|cudaGetParameterBuffer\w*|__cudaCDP\w+|cudaDeviceSynchronize|cudaStream\w*": (
        "dynamic parallelism (kernels that launch kernels): launch from the host"
    ),
    r"malloc|free|_Zn[wa]m|_Zd[la]Pvm?": (
        "heap (malloc, free, new, delete in a kernel): pass an array to the kernel"
    ),
}


def refuse(kernel: Kernel) -> None:
    """Raise SimtError if the kernel uses a feature that the simulator does not have."""
    for instruction in kernel.code:
        if feature := _feature(instruction):
            where = f"line {instruction.line}: " if instruction.line else ""
            raise SimtError(f"{where}the simulator has no {feature}")


def _feature(instruction: Instruction) -> str | None:
    for pattern, feature in _OPCODES.items():
        if re.match(rf"({pattern})(\.|$)", instruction.opcode):
            return feature
    first = instruction.operands[0] if instruction.operands else None
    if (
        instruction.is_texture
        and isinstance(first, Vector)
        and any(isinstance(i, Vector) for i in first.items)
    ):
        return "sparse textures (tex2D with a bool* for residency): leave that argument out"
    for operand in instruction.operands:
        name = operand.base if isinstance(operand, Address) else operand
        if isinstance(name, Symbol):
            for pattern, feature in _NAMES.items():
                if re.fullmatch(pattern, name.name):
                    return feature
    return None
