"""The pipes of a multiprocessor that each instruction goes to, on Hopper (compute capability 9.0).

Fitted to what Nsight Compute recorded on an H200: data/h200/machine_code/counters.csv. Nsight Compute names
the pipes: alu (integers, logic, comparisons), fma (also integer products), fp64, xu (conversions and special
functions), lsu (memory), uniform (for a warp at once), cbu (branches), tensor.
"""

from functools import lru_cache

from simt.compiler.machine_code import Instruction

PIPES = ("alu", "fma", "fp64", "xu", "lsu", "uniform", "cbu", "tensor")
_OPCODES = {
    "alu": "BMSK CS2R F2FP FMNMX FSEL FSET FSETP HMNMX2 HSET2 HSETP2 I2FP I2IP IABS IADD3 IMNMX ISETP LEA "
    "LOP3 MOV P2R PLOP3 PRMT R2P R2UR SEL SGXT SHF VABSDIFF VIADDMNMX VIMNMX VIMNMX3 VOTE",
    "fma": "FADD FFMA FMUL HADD2 HFMA2 HMUL2 IDP IMAD VIADD",
    "fp64": "DADD DFMA DMUL DSETP",
    "xu": "BREV F2F F2I FCHK FLO FRND I2F MUFU POPC",
    "lsu": "ATOM ATOMG ATOMS CCTL LD LDG LDGDEPBAR LDGSTS LDL LDS LDSM MEMBAR MOVM RED REDG "
    "SHFL ST STG STL STS",
    "cbu": "BMOV BREAK BRX BSSY BSYNC CALL EXIT NANOSLEEP RET WARPSYNC YIELD",
    "tensor": "HMMA IMMA DMMA BMMA",
}
_PER_THREAD = ("SR_TID", "SR_LANEID")  # special registers that the lsu pipe reads
_PIPE = {opcode: pipe for pipe, opcodes in _OPCODES.items() for opcode in opcodes.split()}


def pipe(instruction: Instruction) -> str:
    """Return the pipe that an instruction goes to, by Nsight Compute's name; "" for one of none of these."""
    return _pipe(instruction.opcode, instruction.operands[-1] if instruction.opcode == "S2R" else "")


@lru_cache(maxsize=4096)
def _pipe(opcode: str, special: str) -> str:
    name, *parts = opcode.split(".")
    if special.startswith(_PER_THREAD) or special.endswith("MASK"):
        return "lsu"
    if name == "HFMA2" and "MMA" in parts:
        return "tensor"
    if name.startswith("U"):
        return "" if name in ("ULDC", "UMOV") else "uniform"
    return _PIPE.get(name, "")
