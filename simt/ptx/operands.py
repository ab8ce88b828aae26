"""Read one PTX instruction: its opcode, its guard and its operands.

Reference: PTX ISA, chapters 4.3 (statements), 4.5 (constants) and 6 (operands).
"""

import re
from dataclasses import replace

from simt.common.errors import SimtError
from simt.common.limits import WARP
from simt.ptx import Address, Guard, Immediate, Instruction, Operand, Register, Symbol, Vector

CARRY = Register("%cc")
_ADDRESS = re.compile(r"\s*(?P<base>[^\s,+-]+|-\d+)\s*(?:(?P<sign>[+-])\s*(?P<offset>-?\w+))?\s*")
_SPECIAL = re.compile(
    r"%(n?tid|n?ctaid|laneid|n?warpid|n?smid|gridid|lanemask_\w+|clock\w*|globaltimer\w*|envreg\d*|\w+_smem_\w+"
    r"|n?clusterid|cluster_\w+|is_explicit_cluster|pm\d+\w*)\b"
)
_PART = re.compile(r"-?%?[\w$]+\.[bh][0-3]+")  # of a register, in video instructions
_ANY_BLOCK = ("ld", "st", "atom", "red", "cvta", "isspacep")  # take an address in any block of a cluster
_GUARD = re.compile(r"@(!?)(%?[\w$]+)\s+(.*)$", re.S)


def read_instruction(text: str, line: int) -> Instruction:
    """Read an instruction with its guard from a line of PTX."""
    guard = None
    if guarded := _GUARD.match(text):
        guard = Guard(Register(guarded[2]), bool(guarded[1]))
        text = guarded[3]
    opcode, _, rest = text.replace("\n", " ").replace("\t", " ").partition(" ")
    operands = tuple(operand for part in _split_operands(rest) for operand in _operands(part))
    if part := next((part for part in _split_operands(rest) if _PART.fullmatch(part)), None):
        where = f"line {line}: " if line else ""
        raise SimtError(f"{where}the simulator does not know the operand `{part}` of `{opcode}`")
    parts = tuple(part.removesuffix("::cta").removesuffix("::entry") for part in opcode.split("."))
    if parts[0] in _ANY_BLOCK and "async" not in parts:  # see code/services.py
        parts = tuple("shared" if part == "shared::cluster" else part for part in parts)
    return _with_carry(Instruction(parts, operands, guard, line))


def _with_carry(instruction: Instruction) -> Instruction:
    """Add the carry flag, which PTX does not name, as a register operand."""
    first, *others = instruction.operands or (None,)
    if instruction.parts[0] in ("addc", "subc", "madc"):
        others.append(CARRY)
    if "cc" in instruction.parts and isinstance(first, Register):
        first = Vector((first, CARRY))
    return replace(instruction, operands=(first, *others)) if first is not None else instruction


def _split_operands(text: str) -> list[str]:
    """Split at commas outside braces, brackets and parentheses."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "{[(") - (character in "}])")
        if character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _operands(text: str) -> list[Operand]:
    """Read an operand; `[texture, {x, y}]` becomes two: the texture, and the vector of its coordinates."""
    inner = _split_operands(text[1:-1]) if text[0] == "[" else []
    return [_operand(part) for part in inner] if len(inner) > 1 else [_operand(text)]


def _operand(text: str) -> Operand:
    if "}|" in text:  # a texture's texel, and whether it is resident
        return Vector(tuple(_operand(part) for part in text.rsplit("|", 1)))
    if text[0] in "{(":
        return Vector(tuple(_operand(part) for part in _split_operands(text[1:-1])))
    if "|" in text:
        return Vector(tuple(_operand(part) for part in text.split("|")))
    if text[0] == "[":
        address = _ADDRESS.fullmatch(text[1:-1])
        if address is None:
            return Symbol(text)
        number = int(address["offset"] or "0", 0)
        return Address(_plain_operand(address["base"]), -number if address["sign"] == "-" else number)
    return _plain_operand(text)


def _plain_operand(text: str) -> Register | Symbol | Immediate:
    if number := immediate(text):
        return number
    if text.startswith("%") and not _SPECIAL.match(text):
        return Register(text)
    return Symbol(text)


def immediate(text: str) -> Immediate | None:
    """Return the number that the text stands for, or None if it is not a number."""
    if text == "WARP_SZ":  # PTX's name for warpSize
        return Immediate(WARP)
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return Immediate(int(match[1], 16), is_float=True, bits=32)
    if match := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", text):
        return Immediate(int(match[1], 16), is_float=True, bits=64)
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        return Immediate(
            int(text.rstrip("U"), 0) if not re.fullmatch(r"-?0\d+U?", text) else int(text.rstrip("U"), 8)
        )
    return None
