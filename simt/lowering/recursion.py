"""Device functions that call themselves become subroutines with a stack in local memory.

A call saves the registers it will need again, with the number of the point to return to, and branches to the
function's one body. The return loads that number and branches to its point. Each thread has STACK_BYTES of
stack, as many as CUDA gives it by default.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from simt import ptx
from simt.analysis.blocks import find_live_registers, split

STACK_BYTES = 1024
STACK = "recursion~stack"
_TOP, _LIMIT, _ROOM = (
    ptx.Register("%recursion~top"),
    ptx.Register("%recursion~limit"),
    ptx.Register("%recursion~room"),
)
_NUMBER, _HERE = ptx.Register("%recursion~return"), ptx.Register("%recursion~here")
_FLAG, _NEW_TOP = ptx.Register("%recursion~flag"), ptx.Register("%recursion~new")
_ALIGN = 16


def keeps_registers(instruction: ptx.Instruction) -> bool:
    """Say whether an access saves or restores registers around a call, and is none of the program's own."""
    return any(isinstance(operand, ptx.Address) and operand.base == _TOP for operand in instruction.operands)


def on_cycles(callees: dict[str, set[str]]) -> dict[str, int]:
    """Map functions that can reach themselves to a number, the same for those that reach each other."""
    reached = {name: _reached(name, callees) for name in callees}
    cycles: dict[str, int] = {}
    for name in callees:
        if name in reached[name]:
            others = [other for other in cycles if other in reached[name] and name in reached[other]]
            cycles[name] = cycles[others[0]] if others else len(cycles)
    return cycles


def _reached(start: str, callees: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    work = [start]
    while work:
        new = callees[work.pop()] - found
        found |= new
        work += new
    return found


@dataclass(eq=False)
class Subroutine:
    """One function of a cycle; `prefixes` are those of all copies that make up its body."""

    name: str
    prefix: str
    cycle: int
    prefixes: set[str] = field(default_factory=set)
    offsets: dict[str, int] = field(default_factory=dict)  # of local variables in its frame
    frame_bytes: int = 0
    calls: list[_Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.prefixes.add(self.prefix)
        self.entry, self.frame = f"{self.prefix}entry", ptx.Register(f"%{self.prefix}frame")

    def add_locals(self, prefix: str, variables: Iterable[ptx.Variable]) -> None:
        """Place local variables in the frame."""
        for variable in variables:
            start = _rounded_up(self.frame_bytes, variable.align)
            self.offsets[prefix + variable.name] = start
            self.frame_bytes = _rounded_up(start + variable.size, _ALIGN)

    def enter(self) -> ptx.Instruction:
        """Return what comes before a call: its frame begins at the top."""
        return ptx.Instruction(("mov", "u64"), (self.frame, _TOP), None, 0)

    def leave(self) -> ptx.Instruction:
        """Return what comes at the end: a return to the caller."""
        return ptx.Instruction(("leave", self.name), (), None, 0)

    def called_from(
        self, line: int, caller: Subroutine | None
    ) -> tuple[ptx.Instruction, ptx.Instruction, str]:
        """Mark a call: return what stands around it until `finish`, and the label to return to.

        `caller` is the subroutine whose registers this call may overwrite, None if it cannot.
        """
        call = _Call(len(self.calls), line, caller, self)
        self.calls.append(call)
        return call.push, call.pop, call.back


@dataclass(eq=False)
class _Call:
    """A call of a subroutine, and the registers that it must keep, with their offsets in its frame."""

    number: int
    line: int
    caller: Subroutine | None
    callee: Subroutine

    def __post_init__(self) -> None:
        name = f"{self.callee.prefix}{self.number}"
        self.back = f"{name}~back"
        self.push = ptx.Instruction(("push", name), (), None, self.line)
        self.pop = ptx.Instruction(("pop", name), (), None, self.line)
        self.saved: dict[ptx.Register, int] = {}
        self.frame_bytes = _ALIGN

    def keep(self, registers: list[ptx.Register], kernel: ptx.Kernel) -> None:
        """Lay out the registers, widest first; the return number is in the last 8 bytes."""
        end = 0
        for register in sorted(registers, key=lambda r: (-_size(kernel, r), r.name)):
            self.saved[register] = end
            end += _size(kernel, register)
        self.frame_bytes = _rounded_up(end + 8, _ALIGN)


def finish(kernel: ptx.Kernel, subroutines: list[Subroutine]) -> None:
    """Replace the marks by code, after all bodies have been copied."""
    if not subroutines:
        return
    cycles: dict[int, set[str]] = {}
    for subroutine in subroutines:
        kernel.registers[subroutine.frame.name] = "u64"
        cycles.setdefault(subroutine.cycle, set()).update(f"%{prefix[:-1]}" for prefix in subroutine.prefixes)
    _find_saved(kernel, subroutines, cycles)
    _Expansion(kernel, subroutines).write()


def _find_saved(kernel: ptx.Kernel, subroutines: list[Subroutine], cycles: dict[int, set[str]]) -> None:
    """Find what is live after each call and belongs to the subroutines that it may enter again."""
    calls = {call.pop: call for subroutine in subroutines for call in subroutine.calls}
    leaves = {s.name: [call.back for call in s.calls] for s in subroutines}
    code, labels = kernel.code, kernel.labels
    kernel.code, kernel.labels = _with_returns(kernel, leaves)
    blocks = split(kernel)
    find_live_registers(blocks)
    for block in blocks:
        live = set().union(*(blocks[s].live_in for s in block.successors)) if block.successors else set()
        for position in range(len(block.code) - 1, -1, -1):
            instruction = block.code[position]
            call = calls.get(instruction)
            if call is not None and call.caller is not None:
                moved = {r.name for before in block.code[:position] for r in before.results}
                mine = cycles[call.callee.cycle]
                kept = [n for n in live - moved if n.partition(":")[0] in mine]
                call.keep([ptx.Register(name) for name in sorted(kept)], kernel)
            if not instruction.guard:
                live -= {register.name for register in instruction.results}
            live |= {register.name for register in instruction.sources}
    kernel.code, kernel.labels = code, labels


def _with_returns(
    kernel: ptx.Kernel, leaves: dict[str, list[str]]
) -> tuple[list[ptx.Instruction], dict[str, int]]:
    """Return the code with each return replaced by branches to all points it may return to."""
    code: list[ptx.Instruction] = []
    places: list[int] = []
    guard = ptx.Guard(_FLAG, False)
    kernel.registers[_FLAG.name] = "pred"
    for instruction in kernel.code:
        places.append(len(code))
        if instruction.parts[0] == "leave":
            *others, last = leaves[instruction.parts[1]]
            code += [ptx.Instruction(("bra",), (ptx.Symbol(name),), guard, 0) for name in others]
            code.append(ptx.Instruction(("bra",), (ptx.Symbol(last),), None, 0))
        else:
            code.append(instruction)
    places.append(len(code))
    return code, {name: places[place] for name, place in kernel.labels.items()}


class _Expansion:
    """Writes code in place of the marks: push, pop and leave."""

    def __init__(self, kernel: ptx.Kernel, subroutines: list[Subroutine]) -> None:
        self.kernel, self.subroutines, self.code, self.line = kernel, subroutines, list[ptx.Instruction](), 0
        self.labels: dict[str, int] = {}
        kernel.local.append(ptx.Variable(STACK, "b8", STACK_BYTES, _ALIGN))
        kernel.registers |= {r.name: "u64" for r in (_TOP, _LIMIT, _NEW_TOP)}
        kernel.registers |= {_NUMBER.name: "u32", _HERE.name: "u32", _FLAG.name: "pred", _ROOM.name: "pred"}

    def write(self) -> None:
        calls = {m: call for s in self.subroutines for call in s.calls for m in (call.push, call.pop)}
        by_name = {s.name: s for s in self.subroutines}
        by_frame = {s.frame: s for s in self.subroutines}
        self._emit("mov.u64", _TOP, ptx.Symbol(STACK))
        self._emit("add.u64", _LIMIT, _TOP, ptx.Immediate(STACK_BYTES))
        places = []
        for instruction in self.kernel.code:
            places.append(len(self.code))
            self.line = instruction.line
            first = instruction.operands[0] if instruction.operands else None
            if instruction.parts[0] == "push":
                self._push(calls[instruction])
            elif instruction.parts[0] == "pop":
                self._pop(calls[instruction])
            elif instruction.parts[0] == "leave":
                self._leave(by_name[instruction.parts[1]])
            else:
                self.code.append(instruction)
                if instruction.parts == ("mov", "u64") and first in by_frame:
                    size = by_frame[first].frame_bytes
                    self._emit("add.u64", _TOP, _TOP, ptx.Immediate(size))
        places.append(len(self.code))
        self.kernel.labels = {n: places[p] for n, p in self.kernel.labels.items()} | self.labels
        self.kernel.code = self.code

    def _emit(self, opcode: str, *operands: ptx.Operand, guard: ptx.Guard | None = None) -> None:
        self.code.append(ptx.Instruction(tuple(opcode.split(".")), operands, guard, self.line))

    def _push(self, call: _Call) -> None:
        """Save registers and the return number, if the stack has room for them and for the callee's frame."""
        fits = ptx.Symbol(f"{call.back}~fits")
        self._emit("add.u64", _NEW_TOP, _TOP, ptx.Immediate(call.frame_bytes + call.callee.frame_bytes))
        self._emit("setp.le.u64", _ROOM, _NEW_TOP, _LIMIT)
        self._emit("bra", fits, guard=ptx.Guard(_ROOM, False))
        self._emit("trap.recursion")
        self.labels[fits.name] = len(self.code)
        for register, offset in call.saved.items():
            value: ptx.Operand = register
            if self.kernel.register_type(register.name) == "pred":
                self._emit("selp.u32", _HERE, ptx.Immediate(1), ptx.Immediate(0), register)
                value = _HERE
            self._emit(f"st.local.b{8 * _size(self.kernel, register)}", ptx.Address(_TOP, offset), value)
        self._emit("mov.u32", _HERE, ptx.Immediate(call.number))
        self._emit("st.local.b32", ptx.Address(_TOP, call.frame_bytes - 8), _HERE)
        self._emit("add.u64", _TOP, _TOP, ptx.Immediate(call.frame_bytes))

    def _pop(self, call: _Call) -> None:
        self._emit("sub.u64", _TOP, _TOP, ptx.Immediate(call.frame_bytes))
        for register, offset in call.saved.items():
            place = ptx.Address(_TOP, offset)
            if self.kernel.register_type(register.name) == "pred":
                self._emit("ld.local.b32", _HERE, place)
                self._emit("setp.ne.u32", register, _HERE, ptx.Immediate(0))
            else:
                self._emit(f"ld.local.b{8 * _size(self.kernel, register)}", register, place)

    def _leave(self, subroutine: Subroutine) -> None:
        if subroutine.frame_bytes:
            self._emit("sub.u64", _TOP, _TOP, ptx.Immediate(subroutine.frame_bytes))
        self._emit("ld.local.b32", _NUMBER, ptx.Address(_TOP, -8))
        *others, last = subroutine.calls
        for call in others:
            self._emit("setp.eq.u32", _FLAG, _NUMBER, ptx.Immediate(call.number))
            self._emit("bra", ptx.Symbol(call.back), guard=ptx.Guard(_FLAG, False))
        self._emit("bra", ptx.Symbol(last.back))


def _size(kernel: ptx.Kernel, register: ptx.Register) -> int:
    type_ = kernel.register_type(register.name)
    return 4 if type_ == "pred" else ptx.TYPE_BYTES[type_]


def _rounded_up(size: int, align: int) -> int:
    return -(-size // align) * align
