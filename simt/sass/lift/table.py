"""The writer of PTX that rules use, and the table of rules.

A register of machine code is a PTX register of its name, 32 bits wide (`%R4`, `%UR4`); predicates are `%P0`.
Wider values are pairs. An instruction's guard stands before each instruction that writes one of its results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from simt import ptx
from simt.compiler.machine_code import Instruction, KernelCode
from simt.ptx.operands import read_instruction
from simt.sass.opcodes import known
from simt.sass.operands import Operand, Where, address, float_bits, operand

UNKNOWN = "unknown"  # a part of our own: an instruction whose results nothing can be said of
REGISTER_TYPES = {
    "%R": "b32",
    "%UR": "b32",
    "%P": "pred",
    "%UP": "pred",
    "%t": "b32",
    "%d": "b64",
    "%q": "pred",
}
REGISTER_TYPES |= {"%PT": "pred", "%PF": "pred", "%BR": "b32", "%BP": "pred", "%f": "f32", "%g": "f64"}
WIDE = ("F64", "S64", "U64")
STACK_TOP = 0x100000  # R1 begins here: local memory lies below
BANKS = "labkit_bank{}"


_REMARK = re.compile(r'\s*\(\*"Spill\w*"\*\)')  # nvdisasm's, behind an operand


class Refused(Exception):
    """No rule says what an instruction does; the message names it."""


Rule = Callable[["Lift"], None]
RULES: dict[str, Rule] = {}


def rule(names: str) -> Callable[[Rule], Rule]:
    """Add a function to the table under one or more opcodes."""

    def enter(function: Rule) -> Rule:
        for name in names.split():
            RULES[name] = function
        return function

    return enter


@lru_cache(maxsize=1 << 16)
def _read(text: str) -> ptx.Instruction:
    return read_instruction(text, 0)


class Lift:
    """Writes the PTX of one instruction after the other into `out`.

    `op`, `parts` and `operands` are those of the current instruction; `number` is its number, which is kept
    as the line of each PTX instruction (from 1). `pointers` has the numbers that stand for functions in the
    memory of the simulator.
    """

    def __init__(self, code: KernelCode, first_parameter: str, pointers: Mapping[str, int]) -> None:
        self.code, self.first_parameter, self.pointers = code, first_parameter, pointers
        self.arch = int(code.arch.removeprefix("sm_").rstrip("af"))
        self.out: list[ptx.Instruction] = []
        self.temporaries = 0
        self.number = 0

    def write(self, number: int) -> None:
        """Write one instruction. One that no rule knows has unknown results."""
        self.number = number
        self.instruction: Instruction = self.code.instructions[number]
        self.op, *parts = self.instruction.opcode.split(".")
        self.parts = tuple(parts)
        self.operands = [_REMARK.sub("", o) for o in self.instruction.operands if o]
        self.guard = self._guard(self.instruction.predicate)
        start = len(self.out)
        try:
            if not known(self.op).is_free:
                (RULES.get(self.op) or RULES[self.op.removeprefix("U")])(self)
        except (Refused, ValueError, IndexError, KeyError, StopIteration):
            del self.out[start:]
            self.unknown()

    def unknown(self, *also: str) -> None:
        """Say that nothing is known of the results: the first register and those after it, and predicates."""
        results = list(also)
        for text in self.operands[:3]:
            if "[" in text:
                break
            found = operand(text)
            if found.is_predicate and found.register[-1] != "T":
                results.append(f"%{found.register}")
            elif found.register and found.register[0] in "RU" and found.register[-1] not in "ZRT":
                prefix = found.register.rstrip("0123456789")
                first = int(found.register[len(prefix) :])
                results += [f"%{prefix}{first + i}" for i in range(self._width() if prefix == "R" else 2)]
                break
        vector = "{" + ", ".join(dict.fromkeys(results)) + "}" if results else "_"
        self.out.append(
            _line(_read(f"{UNKNOWN} {vector}"), self.number, ptx.Guard(ptx.Register("%PT"), False))
        )

    def _width(self) -> int:
        """Return how many registers a result takes at most, of an instruction without a rule."""
        row = known(self.op)
        if row.is_warpgroup:  # HGMMA.64x256x16.F32: an accumulator of 64 x 256 in 128 threads
            return int(self.parts[0].split("x")[1]) // (4 if "F16" in self.parts else 2)
        if row.pipe == "tensor":
            return 2 if self.parts[-1:] == ("F16",) else 4
        if self.op == "LDSM":
            return int(self.parts[-1])
        if row.registers == 2:
            return 2 if set(WIDE) & set(self.parts) else 1
        return 4 if "64" in self.parts else row.registers

    # ------------------------------------------------------------------------------------------- writing

    def emit(self, text: str) -> None:
        """Write an instruction that runs whatever the guard says: it writes a temporary."""
        self.out.append(_line(_read(text), self.number, None))

    def guarded(self, text: str) -> None:
        """Write an instruction that the guard holds for."""
        self.out.append(_line(_read(text), self.number, self.guard))

    def jump(self, condition: str, label: str) -> None:
        """Write a branch of the lanes for which the predicate `condition` holds."""
        self.under(condition, f"bra {label}")

    def under(self, condition: str, text: str) -> None:
        """Write an instruction for the lanes for which the predicate `condition` holds."""
        self.out.append(_line(_read(text), self.number, ptx.Guard(ptx.Register(condition), False)))

    def temporary(self, kind: str = "t") -> str:
        """Return a new register: t of 32 bits, d of 64 bits, q a predicate, f a float, g a double."""
        self.temporaries += 1
        return f"%{kind}{self.temporaries}"

    def let(self, text: str, kind: str = "t") -> str:
        """Write the result of `opcode operands` to a new register, and return that."""
        opcode, _, rest = text.partition(" ")
        name = self.temporary(kind)
        self.emit(f"{opcode} {name}, {rest}")
        return name

    def to(self, index: int, text: str) -> None:
        """Write the result of `opcode operands` to that at `index`, unless it is the zero register."""
        name = self.result(index)
        if name != "_":
            opcode, _, rest = text.partition(" ")
            self.guarded(f"{opcode} {name}, {rest}")

    def result(self, index: int, offset: int = 0) -> str:
        """Return the name of the result at `index`, or of a register after it; `_` for none."""
        return register(operand(self.operands[index]).register, offset)

    def pair_to(self, index: int, value: str) -> None:
        """Write a 64-bit value to the pair of registers at `index`."""
        low, high = self.result(index), self.result(index, 1)
        if low != "_":
            self.guarded(f"mov.b64 {{{low}, {high}}}, {value}")

    def predicate_to(self, index: int, value: str) -> None:
        """Write a predicate to the result at `index`."""
        name = self.result(index)
        if name != "_":
            self.guarded(f"mov.pred {name}, {value}")

    # ------------------------------------------------------------------------------------------- reading

    def at(self, index: int) -> Operand:
        """Return the operand at `index`."""
        return operand(self.operands[index])

    def plain(self, what: Operand, offset: int = 0) -> str:
        """Return 32 bits of an operand, or of the register or constant after it, without its sign."""
        if what.register:
            return "0" if what.is_zero else register(what.register, offset)
        if what.bank >= 0:
            return self.constant(what, offset)
        if what.number is not None:
            word = what.number & 0xFFFFFFFF if not offset else -(what.number < 0)
            return str(
                word - (1 << 32) if word >> 31 == 1 else word
            )  # signed, as the analysis of lanes wants it
        raise Refused(what.text)

    def value(self, index: int) -> str:
        """Return the 32 bits of an operand, with its sign for integers."""
        what = self.at(index)
        text = self.plain(what)
        if what.absolute:
            text = self.let(f"abs.s32 {text}")
        if what.sign == "-":
            return "0" if text == "0" else self.let(f"neg.s32 {text}")
        if what.sign == "~":
            return "0xffffffff" if text == "0" else self.let(f"not.b32 {text}")
        return text

    def wide(self, index: int) -> str:
        """Return the 64 bits of an operand: of a pair of registers, or of a number."""
        what = self.at(index)
        if what.is_zero:
            return "0"
        if what.number is not None:
            return str(what.number)
        text = self.let(f"mov.b64 {{{self.plain(what)}, {self.plain(what, 1)}}}", "d")
        return self.let(f"neg.s64 {text}", "d") if what.sign == "-" else text

    def real(self, index: int) -> str:
        """Return an operand as a float, with its sign."""
        what = self.at(index)
        if what.text and not what.register:
            value = what.float_value
            text = f"0f{float_bits(value, 'f'):08X}"
        else:
            text = self.plain(what)
            text = "0f00000000" if text == "0" else text
        if what.absolute:
            text = self.let(f"abs.f32 {text}", "f")
        return self.let(f"neg.f32 {text}", "f") if what.sign == "-" else text

    def double(self, index: int) -> str:
        """Return an operand as a double, with its sign."""
        what = self.at(index)
        if what.text and not what.register:
            text = f"0d{float_bits(what.float_value, 'd'):016X}"
        elif what.is_zero:
            text = "0d0000000000000000"
        else:
            text = self.let(f"mov.b64 {{{self.plain(what)}, {self.plain(what, 1)}}}", "d")
        if what.absolute:
            text = self.let(f"abs.f64 {text}", "g")
        return self.let(f"neg.f64 {text}", "g") if what.sign == "-" else text

    def predicate(self, index: int) -> str:
        """Return an operand as a predicate, with its sign."""
        what = self.at(index)
        if not what.is_predicate:
            raise Refused(self.operands[index])
        if what.register[-1] == "T":
            return "%PF" if what.sign == "!" else "%PT"
        name = f"%{what.register}"
        return self.let(f"not.pred {name}", "q") if what.sign == "!" else name

    def predicates(self) -> list[int]:
        """Return the indices of the operands that are predicates."""
        return [i for i, text in enumerate(self.operands) if "[" not in text and operand(text).is_predicate]

    def constant(self, what: Operand, offset: int = 0) -> str:
        """Return 32 bits of a constant bank: a parameter, a size of the launch, or what a bank holds."""
        if (
            what.place.strip()
            and not what.place.strip().startswith(("0x", "-0x"))
            and what.place not in ("RZ", "URZ")
        ):
            raise Refused(what.place)
        place = (0 if what.place in ("RZ", "URZ") else int(what.place, 16)) + 4 * offset
        if what.bank == 0:
            return self._of_launch(place)
        if what.bank == 4:
            name, beyond = self.code.addresses[place & ~7]
            address = self.let(f"mov.u64 {name}", "d")
            address = self.let(f"add.s64 {address}, {beyond}", "d") if beyond else address
            shifted = self.let(f"shr.u64 {address}, 32", "d") if place & 4 else address
            return self.let(f"cvt.u32.u64 {shifted}")
        if what.bank in self.code.constants:
            bank = self.let(f"mov.u64 {BANKS.format(what.bank)}", "d")
            return self.let(f"ld.const.b32 [{bank}+{place}]")
        raise Refused(what.place)

    def _of_launch(self, place: int) -> str:
        """Return 32 bits of bank 0, which the driver fills for a launch."""
        if place >= self.code.param_start:
            return self.let(f"ld.param.b32 [{self.first_parameter}+{place - self.code.param_start}]")
        sizes, stack, descriptors = (
            (0x360, 0x37C, (0x358,)) if self.arch >= 100 else (0, 0x28, (0x208, 0x118))
        )
        axes = {sizes + 4 * i: f"%{name}.{axis}" for i, (name, axis) in enumerate(_SIZES)}
        if place in axes:
            return self.let(f"mov.u32 {axes[place]}")
        if place == stack:
            return hex(STACK_TOP)
        if place & ~7 in descriptors:
            return "0"
        raise Refused(hex(place))

    def where(self, text: str) -> Where:
        """Return the address that an operand stands for."""
        return address(text)

    def _guard(self, text: str) -> ptx.Guard | None:
        if not text:
            return None
        name = text.lstrip("@!")
        negated = "!" in text
        if name[-1] == "T":
            return ptx.Guard(ptx.Register("%PF"), False) if negated else None
        return ptx.Guard(ptx.Register(f"%{name}"), negated)


_SIZES = [(name, axis) for name in ("ntid", "nctaid") for axis in "xyz"]


def register(name: str, offset: int = 0) -> str:
    """Return the PTX name of a register of machine code, or of one after it; `_` for those that hold zero."""
    if name[-1] in "ZT":
        return "_"
    prefix = name.rstrip("0123456789")
    return f"%{prefix}{int(name[len(prefix) :]) + offset}"


def _line(instruction: ptx.Instruction, number: int, guard: ptx.Guard | None) -> ptx.Instruction:
    return ptx.Instruction(instruction.parts, instruction.operands, guard, number + 1)
