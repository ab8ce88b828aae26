"""Read the operands of machine code: `-|R4.reuse|`, `c[0x0][0x210]`, `desc[UR4][R2.64+0x10]`.

Reference: NVIDIA, CUDA Binary Utilities, "Instruction Set Reference".
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import lru_cache

_REGISTER = re.compile(r"(U?)(R|P|B)(\d+|Z|T|R)((?:\.\w+)*)")
_NUMBER = re.compile(r"-?0x[0-9a-f]+|-?\d+(?!\.|\d|e)$")
_BANK = re.compile(r"c\[(0x[0-9a-f]+|U?R\w+)\]\s*\[([^\]]*)\]((?:\.\w+)*)")
_ADDRESS = re.compile(r"(?:desc\[(?P<desc>[^\]]*)\])?\[(?P<inside>[^\]]*)\]")
_FLOATS = {"+INF": "inf", "-INF": "-inf", "+QNAN": "nan", "-QNAN": "-nan", "INF": "inf", "QNAN": "nan"}


@dataclass(frozen=True)
class Operand:
    """An operand: a `register` ("R4", "UP0", "RZ"), an integer, a float's `text`, or a place in a bank.

    `sign` is "", "-", "~" or "!"; `absolute` says that it stands between bars; `parts` are like ("H0_H0",).
    `place` is what stands in the brackets of a constant: a number, or a register and a number.
    """

    register: str = ""
    number: int | None = None
    text: str = ""
    bank: int = -1
    place: str = ""
    sign: str = ""
    absolute: bool = False
    parts: tuple[str, ...] = ()

    @property
    def is_predicate(self) -> bool:
        """Say whether it is a predicate register."""
        return bool(re.fullmatch(r"U?P[\dT]", self.register))

    @property
    def is_zero(self) -> bool:
        """Say whether it is the zero register, or the number 0."""
        return self.register in ("RZ", "URZ", "SRZ") or (self.number == 0 and not self.register)

    @property
    def float_value(self) -> float:
        """Return the number that a float's text stands for."""
        return float(_FLOATS.get(self.text.strip(), self.text.strip()))


@dataclass(frozen=True)
class Where:
    """The address of an access: registers with a factor each, and a constant.

    `registers` has (name, parts) pairs: parts say `64`, `U32` or `X4` (times 4).
    """

    registers: tuple[tuple[str, tuple[str, ...]], ...]
    offset: int


@lru_cache(maxsize=1 << 14)
def operand(text: str) -> Operand:
    """Read one operand that is no address."""
    text = text.strip()
    sign = ""
    if text and text[0] in "-~!" and not _NUMBER.fullmatch(text):
        rest = text[1:]
        if rest[:1] in "RUPc|B":
            sign, text = text[0], rest
    absolute = text.startswith("|")
    if absolute:
        inside, _, after = text[1:].partition("|")
        text = inside + after
    if found := _REGISTER.fullmatch(text):
        parts = tuple(part for part in found[4].split(".") if part and part != "reuse")
        return Operand(register=f"{found[1]}{found[2]}{found[3]}", sign=sign, absolute=absolute, parts=parts)
    if found := _BANK.fullmatch(text):
        bank = int(found[1], 16) if found[1].startswith("0x") else -2
        parts = tuple(part for part in found[3].split(".") if part)
        return Operand(bank=bank, place=found[2], sign=sign, absolute=absolute, parts=parts)
    if _NUMBER.fullmatch(text):
        return Operand(number=int(text, 0), text=text, sign=sign)
    return Operand(text=text, sign=sign, absolute=absolute)


@lru_cache(maxsize=1 << 14)
def address(text: str) -> Where:
    """Read an address: `[R4+UR5+0x10]`, `desc[UR6][R2.64+-0x4]`."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return terms(found["inside"])


def terms(text: str) -> Where:
    """Read a sum of registers and a number."""
    registers, offset = [], 0
    for term in re.findall(r"[+-]?-?[^+-]+", text.replace("+-", "-")):
        term = term.strip().lstrip("+")
        if not term:
            continue
        if re.fullmatch(r"-?0x[0-9a-f]+", term):
            offset += int(term, 16)
        else:
            name, *parts = term.split(".")
            if name not in ("RZ", "URZ"):
                registers.append((name, tuple(part for part in parts if part != "reuse")))
    return Where(tuple(registers), offset)


def float_bits(value: float, code: str) -> int:
    """Return the bits of a float ("f"), a double ("d") or a half ("e")."""
    try:
        data = struct.pack(f"<{code}", value)
    except OverflowError:
        data = struct.pack(f"<{code}", float("inf") if value > 0 else float("-inf"))
    return int.from_bytes(data, "little")
