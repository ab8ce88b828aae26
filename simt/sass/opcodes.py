"""The one table of opcodes of machine code: what is known of each, by the first part of its name.

What computes has a rule in `lift`, too, without which its results are unknown.
Reference: NVIDIA, CUDA Binary Utilities, "Instruction Set Reference".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from simt.compiler.machine_code import Instruction

OTHER_LATENCY = 15.0
PIPES = ("alu", "fma", "fp64", "xu", "lsu", "uniform", "cbu", "tensor")
_WIDTHS = ("8", "16", "32", "64", "128", "256")
_PER_THREAD = ("SR_TID", "SR_LANEID")  # special registers that the lsu pipe reads


@dataclass(frozen=True)
class Opcode:
    """What is known of the instructions with this opcode.

    kind:  as what they are counted; "": by their name, accesses also by their width.
    pipe:  of a multiprocessor of Hopper (compute capability 9.0), by Nsight Compute's name; "" for none of
        PIPES. Fitted to what it recorded on an H200: data/h200/machine_code/counters.csv. The pipes are alu
        (integers, logic, comparisons), fma (also integer products), fp64, xu (conversions and special
        functions), lsu (memory), uniform (for a warp at once), cbu (branches), tensor.
    access, space:  what they do to which memory; of a copy from global to shared memory, the load.
    end:  how they end a basic block; "" if they do not. "jump": with a branch to the label they name;
        "lanes": some lanes may leave, and only a listing shows a new block.
    decides:  which code runs next, or which threads wait.
    waits:  for the threads of the block, or of the warp.
    is_free:  they do nothing in the simulator, because a warp runs in step and memory is always up to date.
    is_warpgroup:  products of a warpgroup, which run beside the warps that issue them.
    registers:  how many a result takes at most: one (4 with `.64`), 2 (one without a type of 64 bits), or 4.
    reads_together:  an arithmetic pipe reads their registers at once; others do so over several cycles.
    latency:  clocks until the result is there, which hardly differ between GPUs (`latency` in
        data/h200/limits.csv; Jia et al. 2018). None: that of the memory, or OTHER_LATENCY.
    tensor_clocks:  for which they keep the tensor cores of a sub-partition busy where the GPU does 4096 FLOP
        a clock, as of a 16 x 8 x 16 product of halves. 0: not known.
    """

    kind: str = ""
    pipe: str = ""
    access: Literal["", "load", "store", "atomic"] = ""
    space: Literal["", "global", "shared", "local", "generic"] = ""
    end: Literal["", "jump", "other", "lanes"] = ""
    decides: bool = False
    waits: Literal["", "block", "warp"] = ""
    is_free: bool = False
    is_warpgroup: bool = False
    registers: Literal[1, 2, 4] = 4
    reads_together: bool = False
    latency: float | None = None
    tensor_clocks: int = 0


_UNKNOWN, _UNIFORM = Opcode(), Opcode("uniform", "uniform")  # the latter: any other U... , for a warp at once
_ROWS = {
    # integers, bits, predicates
    "IABS IADD3 IMNMX ISETP VIADDMNMX VIMNMX": Opcode("integer", "alu", reads_together=True),
    "LEA LOP3 PRMT SEL SHF": Opcode("integer", "alu", registers=1, reads_together=True),
    "BMSK PLOP3 R2P SGXT VIMNMX3": Opcode("integer", "alu"),
    "P2R VABSDIFF": Opcode("integer", "alu", registers=1),
    "IMAD VIADD": Opcode("integer", "fma", reads_together=True),
    "IDP": Opcode("integer", "fma", registers=1),
    "BREV FLO POPC": Opcode("integer", "xu", registers=1, latency=18.0),
    "IADD LOP": Opcode("integer", reads_together=True),
    "VABSDIFF4": Opcode("integer", registers=1),
    "IDP4A IMNMX3 IMUL ISCADD ISET LOP32I PSETP SHL SHR": Opcode("integer"),
    # floating point
    "FADD FFMA FMUL": Opcode("", "fma", registers=1, reads_together=True),
    "DADD DFMA DMUL": Opcode("", "fp64", reads_together=True, latency=8.0),
    "HADD2 HFMA2 HMUL2": Opcode("half", "fma", registers=1, reads_together=True),
    "MUFU": Opcode("", "xu", registers=1, latency=18.0),
    "VHMNMX": Opcode(registers=1),
    # comparisons
    "FMNMX FSEL": Opcode("compare", "alu", registers=1, reads_together=True),
    "FSETP": Opcode("compare", "alu", reads_together=True),
    "FSET HMNMX2 HSET2": Opcode("compare", "alu", registers=1),
    "HSETP2": Opcode("compare", "alu"),
    "DSETP": Opcode("compare", "fp64", latency=8.0),
    "FCHK": Opcode("compare", "xu"),
    "FMNMX3": Opcode("compare"),
    # conversions
    "I2FP": Opcode("convert", "alu", reads_together=True),
    "F2FP I2IP": Opcode("convert", "alu", registers=1),
    "F2F F2I FRND I2F": Opcode("convert", "xu", registers=2, latency=18.0),
    "F2IP I2I": Opcode("convert"),
    # products of matrices
    "HMMA IMMA": Opcode("matrix", "tensor", latency=33.0, tensor_clocks=8),
    "DMMA": Opcode("matrix", "tensor", tensor_clocks=8),
    "BMMA": Opcode("matrix", "tensor"),
    "BGMMA HGMMA IGMMA QGMMA WGMMA": Opcode("matrix", is_warpgroup=True),
    "LDTM OMMA QMMA": Opcode("matrix"),
    # moves
    "MOV": Opcode("move", "alu", reads_together=True),
    "CS2R": Opcode("move", "alu"),
    "S2R": Opcode("move", registers=1, latency=20.0),  # its pipe follows from what it reads
    "MOV32I": Opcode("move"),
    "UMOV": Opcode("uniform"),
    "S2UR": Opcode("uniform", registers=1, latency=20.0),
    "R2UR": Opcode("uniform", "alu", registers=1, latency=12.0),
    "B2R SUQUERY TLD": Opcode(registers=1),
    # what the lanes of a warp do together
    "SHFL": Opcode("move", "lsu", registers=1, latency=24.0),
    "MOVM": Opcode("move", "lsu", registers=1),
    "VOTE": Opcode("branch", "alu", registers=1, latency=12.0),
    "MATCH": Opcode("branch", registers=1),
    "ELECT": Opcode("branch"),
    "VOTEU": Opcode("uniform", latency=12.0),
    "REDUX": Opcode("uniform", latency=20.0),
    "CREDUX": Opcode("uniform"),
    # memory
    "LDC ULDC": Opcode("constant", latency=30.0),
    "LDCU": Opcode("constant"),
    "LD": Opcode("", "lsu", "load", "generic"),
    "LDG LDGSTS": Opcode("", "lsu", "load", "global"),
    "LDL": Opcode("", "lsu", "load", "local"),
    "LDS": Opcode("", "lsu", "load", "shared"),
    "LDSM": Opcode("matrix", "lsu", "load", "shared", latency=30.0),
    "ST": Opcode("", "lsu", "store", "generic"),
    "STG": Opcode("", "lsu", "store", "global"),
    "STL": Opcode("", "lsu", "store", "local", latency=20.0),
    "STS": Opcode("", "lsu", "store", "shared"),
    "STSM": Opcode("STSM", "", "store", "shared"),
    "ATOM": Opcode("atomic", "lsu", "atomic", "generic"),
    "ATOMG": Opcode("atomic", "lsu", "atomic", "global"),
    "ATOMS": Opcode("atomic", "lsu", "atomic", "shared", registers=1, latency=60.0),
    "RED": Opcode("atomic", "lsu", "atomic", "generic", latency=OTHER_LATENCY),  # nothing comes back
    "REDG": Opcode("atomic", "lsu", "atomic", "global", latency=OTHER_LATENCY),
    "SUATOM SURED": Opcode("atomic"),
    "CCTL LDGDEPBAR MEMBAR": Opcode("branch", "lsu", is_free=True),
    # control flow
    "BRA JMP": Opcode("branch", end="jump", decides=True),
    "BPT BRXU JMX KILL": Opcode("branch", end="other", decides=True),
    "BRX BSYNC CALL EXIT RET": Opcode("branch", "cbu", end="other", decides=True),
    "WARPSYNC": Opcode("branch", "cbu", end="other", decides=True, waits="warp"),
    "BAR": Opcode(end="other", decides=True, waits="block"),
    "BREAK": Opcode("branch", "cbu", end="lanes", decides=True),
    "BSSY": Opcode("branch", "cbu", decides=True),
    "RPCMOV": Opcode("branch", decides=True),
    "LEPC": Opcode("branch"),
    # hints, and what orders accesses
    "BMOV NANOSLEEP YIELD": Opcode("branch", "cbu", is_free=True),
    "ACQBULK DEPBAR ENDCOLLECTIVE ERRBAR FENCE NOP PREEXIT": Opcode("branch", is_free=True),
    "CGAERRBAR": Opcode(is_free=True),
    "UCGABAR_ARV UCGABAR_WAIT": Opcode("uniform", "uniform", is_free=True),
}
OPCODES = {name: row for names, row in _ROWS.items() for name in names.split()}


@lru_cache(maxsize=4096)
def known(opcode: str) -> Opcode:
    """Return what is known of an opcode, with or without its modifiers."""
    name = opcode.partition(".")[0]
    return OPCODES.get(name, _UNIFORM if name.startswith("U") else _UNKNOWN)


def accesses(access: str, *spaces: str) -> tuple[str, ...]:
    """Return the opcodes that access one of these spaces so: `accesses("load", "shared")`."""
    return tuple(name for name, row in OPCODES.items() if row.access == access and row.space in spaces)


def kind(opcode: str) -> str:
    """Return the kind of an instruction by its opcode.

    Memory accesses are counted by width in bits (`LDG.128`), what computes in floating point by its name
    (`FFMA`), a barrier of the block as `BAR`; the rest by family: integer, uniform, convert, move, constant,
    compare, branch, atomic, matrix, half.
    """
    row, name = known(opcode), opcode.partition(".")[0]
    return row.kind or (f"{name}.{width(opcode)}" if row.access else name)


def width(opcode: str) -> int:
    """Return the bits per lane that an access moves: 32 where its opcode names none."""
    parts = opcode.split(".")[1:]
    named = [part.lstrip("US") for part in parts if part.lstrip("US") in _WIDTHS]
    return int(named[0]) if named else 32


def pipe(instruction: Instruction) -> str:
    """Return the pipe that an instruction goes to, by Nsight Compute's name; "" for one of none of these."""
    name, *parts = instruction.opcode.split(".")
    special = instruction.operands[-1] if instruction.opcode == "S2R" else ""
    if special.startswith(_PER_THREAD) or special.endswith("MASK"):
        return "lsu"
    return "tensor" if name == "HFMA2" and "MMA" in parts else known(name).pipe
