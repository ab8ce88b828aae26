"""Puts the bodies of device functions in the place of their calls, so that a kernel is one piece of code.

Parameters and results become registers: `st.param`, `ld.param` and `call` become moves.
"""

from __future__ import annotations

from dataclasses import replace

from labkit.errors import SimtError
from labkit.simt.ptx import Address, Instruction, Kernel, Operand, Register, Symbol, Variable, Vector


def inline_calls(kernel: Kernel, functions: dict[str, Kernel]) -> None:
    """Change `kernel` so that it calls nothing: `printf` and a failed `assert` become instructions.

    Raises SimtError for recursion.
    """
    if any(instruction.parts[0] == "call" for instruction in kernel.code):
        copy = _Copy(kernel, functions)
        kernel.code, kernel.labels = [], {}
        copy.body(
            replace(kernel, code=copy.original_code, labels=copy.original_labels),
            prefix="",
            calls={},
            stack=(),
        )


class _Copy:
    """Copies bodies into `kernel`; the names of each copy get a prefix of their own."""

    def __init__(self, kernel: Kernel, functions: dict[str, Kernel]) -> None:
        self.kernel, self.functions, self.copies = kernel, functions, 0
        self.original_code, self.original_labels = kernel.code, kernel.labels

    def body(self, function: Kernel, prefix: str, calls: dict[str, str], stack: tuple[str, ...]) -> None:
        """Copy one body; `calls` maps the names of its parameters and results to those at the call."""
        labels: dict[int, list[str]] = {}
        for label, position in function.labels.items():
            labels.setdefault(position, []).append(label)
        end = f"{prefix}end"
        for position, instruction in enumerate(function.code):
            self._place([prefix + label for label in labels.get(position, [])])
            callee = next((o.name for o in instruction.operands if isinstance(o, Symbol)), "")
            if instruction.parts[0] == "call" and callee in self.functions:
                self._call(instruction, self.functions[callee], prefix, stack)
            elif callee == "__assertfail":
                self.kernel.code.append(replace(instruction, parts=("trap", "assert"), operands=()))
            elif callee == "vprintf":
                self.kernel.code.append(self._print(instruction, prefix))
            elif instruction.parts[0] == "ret" and stack:
                self.kernel.code.append(
                    _renamed(replace(instruction, parts=("bra",), operands=(Symbol("end"),)), prefix, set())
                )
            else:
                self.kernel.code.append(self._copied(instruction, function, prefix, calls))
        self._place([prefix + label for label in labels.get(len(function.code), [])])
        if stack:
            self._place([end])

    def _place(self, labels: list[str]) -> None:
        self.kernel.labels.update(dict.fromkeys(labels, len(self.kernel.code)))

    def _call(self, call: Instruction, callee: Kernel, prefix: str, stack: tuple[str, ...]) -> None:
        if callee.name in stack:
            raise SimtError(
                f"line {call.line}: the simulator cannot run recursion, and `{callee.name}` calls itself"
            )
        self.copies += 1
        inner = f"{self.copies}:"
        lists = [[item.name for item in o.items] for o in call.operands if isinstance(o, Vector)]  # type: ignore[union-attr]
        given = lists[-1] if callee.params else []
        results = lists[0] if callee.results else []
        names = zip(
            [*(v.name for v in callee.params), *(v.name for v in callee.results)],
            [*given, *results],
            strict=True,
        )
        for variable in callee.local:
            self.kernel.local.append(replace(variable, name=inner + variable.name))
        self.kernel.shared += [v for v in callee.shared if v not in self.kernel.shared]
        for name, type_ in callee.registers.items():
            self.kernel.registers[f"%{inner}{name.lstrip('%')}"] = type_
        self.body(callee, inner, {name: prefix + passed for name, passed in names}, (*stack, callee.name))

    def _print(self, call: Instruction, prefix: str) -> Instruction:
        """`printf` becomes an instruction with the addresses of its format and of its arguments."""
        given = call.operands[-1]
        assert isinstance(given, Vector)
        names = [f"%{prefix}{item.name}+0:b64" for item in given.items]  # type: ignore[union-attr]
        return replace(call, parts=("printf",), operands=tuple(Register(name) for name in names))

    def _copied(
        self, instruction: Instruction, function: Kernel, prefix: str, calls: dict[str, str]
    ) -> Instruction:
        """The instruction with its names prefixed, and a parameter of a call turned into a register."""
        local = {variable.name for variable in function.local}
        address = next((o for o in instruction.operands if isinstance(o, Address)), None)
        in_kernel = (
            address is not None
            and isinstance(address.base, Symbol)
            and _is_parameter(address.base.name, self.kernel.params)
        )
        if instruction.parts[0] not in ("ld", "st") or "param" not in instruction.parts or in_kernel:
            return _renamed(instruction, prefix, local)
        assert address is not None and isinstance(address.base, Symbol)
        passed = calls.get(address.base.name, prefix + address.base.name)
        type_ = f"b{instruction.parts[-1][1:]}"  # one place may hold values of several sizes, call by call
        register = Register(f"%{passed}+{address.offset}:{type_}")
        self.kernel.registers[register.name] = type_
        others = tuple(o for o in instruction.operands if o is not address)
        renamed = _renamed(replace(instruction, operands=others), prefix, local).operands
        operands = (register, *renamed) if instruction.parts[0] == "st" else (*renamed, register)
        return replace(instruction, parts=("mov", type_), operands=operands)


def _is_parameter(name: str, params: list[Variable]) -> bool:
    return any(param.name == name for param in params)


def _renamed(instruction: Instruction, prefix: str, local: set[str]) -> Instruction:
    """The instruction with registers, labels and local variables called `prefix` + name."""
    is_branch = instruction.parts[0] == "bra"

    def rename(operand: Operand) -> Operand:
        match operand:
            case Register(name):
                return Register(f"%{prefix}{name.lstrip('%')}")
            case Symbol(name) if is_branch or name in local:
                return Symbol(prefix + name)
            case Address(base, offset):
                return Address(rename(base), offset)  # type: ignore[arg-type]
            case Vector(items):
                return Vector(tuple(rename(item) for item in items))
        return operand

    guard = instruction.guard and replace(instruction.guard, register=rename(instruction.guard.register))  # type: ignore[arg-type]
    return replace(instruction, operands=tuple(rename(o) for o in instruction.operands), guard=guard)
