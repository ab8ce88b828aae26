"""Name what an instruction of machine code does: `FFMA`, `LDS.128`, `integer`, `branch`.

Reference: NVIDIA, CUDA Binary Utilities, "Instruction Set Reference".
"""

from functools import lru_cache

_FAMILIES = {
    "integer": "IADD IADD3 IMAD IMUL IMNMX IMNMX3 VIADD VIADDMNMX VIMNMX VIMNMX3 IABS IDP IDP4A ISCADD LEA "
    "SHF SHL SHR LOP LOP3 PLOP3 BMSK BREV FLO POPC SGXT ISETP ISET VABSDIFF VABSDIFF4 LOP32I PRMT SEL P2R "
    "R2P PSETP",
    "uniform": "R2UR S2UR UP2UR VOTEU REDUX CREDUX",
    "convert": "F2F F2I I2F I2I F2FP I2FP I2IP FRND F2IP",
    "move": "MOV MOV32I CS2R S2R SHFL MOVM",
    "constant": "LDC ULDC LDCU",
    "compare": "FSETP FSET DSETP HSETP2 HSET2 FCHK FMNMX FMNMX3 FSEL HMNMX2",
    "branch": "BRA BRX BRXU JMP JMX EXIT RET CALL BSSY BSYNC BREAK BMOV WARPSYNC YIELD NANOSLEEP KILL BPT "
    "RPCMOV ELECT ACQBULK ENDCOLLECTIVE VOTE MATCH DEPBAR LDGDEPBAR NOP ERRBAR CCTL MEMBAR FENCE LEPC "
    "PREEXIT",
    "matrix": "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA WGMMA LDSM LDTM",
    "half": "HADD2 HFMA2 HMUL2",
}
_FAMILY = {opcode: family for family, opcodes in _FAMILIES.items() for opcode in opcodes.split()}
_WIDTHS = ("8", "16", "32", "64", "128", "256")
_MEMORY = ("LD", "ST", "LDG", "STG", "LDS", "STS", "LDL", "STL", "LDGSTS")
_ATOMIC = ("ATOM", "ATOMG", "ATOMS", "RED", "REDG", "SUATOM", "SURED")


@lru_cache(maxsize=4096)
def kind(opcode: str) -> str:
    """Return the kind of an instruction by its opcode.

    Memory accesses are counted by width in bits (`LDG.128`), what computes in floating point by its name
    (`FFMA`), a barrier of the block as `BAR`; the rest by family: integer, uniform, convert, move, constant,
    compare, branch, atomic, matrix, half.
    """
    name, *_ = opcode.split(".")
    if name in _MEMORY:
        return f"{name}.{width(opcode)}"
    if name in _ATOMIC:
        return "atomic"
    if name in _FAMILY:
        return _FAMILY[name]
    return "uniform" if name.startswith("U") else name


def width(opcode: str) -> int:
    """Return the bits per lane that an access moves: 32 where its opcode names none."""
    parts = opcode.split(".")[1:]
    named = [part.lstrip("US") for part in parts if part.lstrip("US") in _WIDTHS]
    return int(named[0]) if named else 32
