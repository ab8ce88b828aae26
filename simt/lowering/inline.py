"""Replace calls of device functions by their bodies, so that a kernel is one piece of code.

Parameters and results become registers: `st.param`, `ld.param` and `call` become moves. Functions that call
themselves are copied once, as subroutines (recursion.py). A call by pointer compares the pointer with the
functions whose address is taken.
"""

from dataclasses import replace

from simt import ptx
from simt.lowering import callees
from simt.lowering.recursion import Subroutine, finish, on_cycles
from simt.ptx.variables import function_addresses


def inline_calls(kernel: ptx.Kernel, module: ptx.Module) -> None:
    """Change `kernel` so that it calls nothing: `printf` and a failed `assert` become instructions."""
    if not any(i.parts[0] == "call" or callees.names_a_function(i, module) for i in kernel.code):
        return
    copy = _Copy(kernel, module)
    kernel.code, kernel.labels = [], {}
    copy.body(replace(kernel, code=copy.original_code, labels=copy.original_labels), "", {}, None)
    copy.subroutine_bodies()
    finish(kernel, list(copy.subroutines.values()))


class _Copy:
    """Copies bodies into `kernel`; the names in each copy get their own prefix."""

    def __init__(self, kernel: ptx.Kernel, module: ptx.Module) -> None:
        self.kernel, self.functions, self.copies = kernel, module.functions, 0
        self.original_code, self.original_labels = kernel.code, kernel.labels
        self.addresses, self.pointed_to = function_addresses(module), callees.pointed_to(module)
        self.cycles = on_cycles(callees.call_graph(module.functions, self.pointed_to))
        self.subroutines: dict[str, Subroutine] = {}
        self.to_copy: list[Subroutine] = []

    def body(
        self, function: ptx.Kernel, prefix: str, calls: dict[str, str], within: Subroutine | None
    ) -> None:
        """Copy one body; `calls` maps the names of its parameters and results to those at the call.

        `within` is the subroutine that the copy is part of.
        """
        labels: dict[int, list[str]] = {}
        for label, position in function.labels.items():
            labels.setdefault(position, []).append(label)
        end = ptx.Symbol(f"{prefix}end")
        for position, instruction in enumerate(function.code):
            self._place([prefix + label for label in labels.get(position, [])])
            if instruction.parts[0] == "call":
                self._guarded_call(instruction, prefix, within)
            elif instruction.parts[0] == "ret" and prefix:
                guard = _renamed(instruction, prefix, set()).guard
                self.kernel.code.append(replace(instruction, parts=("bra",), operands=(end,), guard=guard))
            else:
                self._copy(instruction, function, prefix, calls, within)
        self._place([prefix + label for label in labels.get(len(function.code), [])])
        if prefix:
            self._place([end.name])

    def subroutine_bodies(self) -> None:
        """Copy the functions that call themselves, once each, after the kernel's own code."""
        while self.to_copy:
            subroutine = self.to_copy.pop()
            function = self.functions[subroutine.name]
            names = [v.name for v in (*function.params, *function.results)]
            self._declare(function, subroutine.prefix)
            self._place([subroutine.entry])
            self.kernel.code.append(subroutine.enter())
            self.body(function, subroutine.prefix, {n: subroutine.prefix + n for n in names}, subroutine)
            self.kernel.code.append(subroutine.leave())

    def _place(self, labels: list[str]) -> None:
        self.kernel.labels.update(dict.fromkeys(labels, len(self.kernel.code)))

    def _emit(
        self, parts: str, operands: tuple[ptx.Operand, ...], line: int, guard: ptx.Guard | None = None
    ) -> None:
        self.kernel.code.append(ptx.Instruction(tuple(parts.split(".")), operands, guard, line))

    def _guarded_call(self, call: ptx.Instruction, prefix: str, within: Subroutine | None) -> None:
        if call.guard is None:
            self._any_call(call, prefix, within)
            return
        self.copies += 1
        over, guard = f"over{self.copies}", _renamed(call, prefix, set()).guard
        assert guard is not None
        self._emit("bra", (ptx.Symbol(over),), call.line, replace(guard, negated=not guard.negated))
        self._any_call(replace(call, guard=None), prefix, within)
        self._place([over])

    def _any_call(self, call: ptx.Instruction, prefix: str, within: Subroutine | None) -> None:
        target = callees.target_of(call)
        if not isinstance(target, ptx.Symbol):
            self._call_by_pointer(call, target, prefix, within)
        elif target.name in self.functions:
            self._call(call, self.functions[target.name], prefix, within)
        elif target.name == "__assertfail":
            self._emit("trap.assert", (), call.line)
        elif target.name == "vprintf":
            self.kernel.code.append(self._print(call, prefix))
        else:
            self.kernel.code.append(call)  # refused by name, if a call reaches it

    def _call_by_pointer(
        self, call: ptx.Instruction, target: ptx.Operand, prefix: str, within: Subroutine | None
    ) -> None:
        self.copies += 1
        number = self.copies
        pointer = _renamed(ptx.Instruction((), (target,), None, 0), prefix, set()).operands[0]
        other = ptx.Register(f"%{prefix}pointer{number}")
        self.kernel.registers[other.name] = "pred"
        for name in callees.candidates(call, self.functions, self.pointed_to):
            following = f"{prefix}pointer{number}~{name}"
            self._emit("setp.ne.u64", (other, pointer, ptx.Immediate(self.addresses[name])), call.line)
            self._emit("bra", (ptx.Symbol(following),), call.line, ptx.Guard(other, False))
            self._call(call, self.functions[name], prefix, within)
            self._emit("bra", (ptx.Symbol(f"{prefix}pointer{number}"),), call.line)
            self._place([following])
        self._emit("trap.pointer", (), call.line)
        self._place([f"{prefix}pointer{number}"])

    def _call(
        self, call: ptx.Instruction, callee: ptx.Kernel, prefix: str, within: Subroutine | None
    ) -> None:
        lists = [[item.name for item in o.items] for o in call.operands if isinstance(o, ptx.Vector)]  # type: ignore[union-attr]
        given = lists[-1] if callee.params else []
        results = lists[0] if callee.results else []
        if callee.name in self.cycles:
            self._call_subroutine(call, callee, prefix, within, given, results)
            return
        self.copies += 1
        inner = f"{self.copies}:"
        names = zip([v.name for v in (*callee.params, *callee.results)], [*given, *results], strict=True)
        if within is None:
            for variable in callee.local:
                self.kernel.local.append(replace(variable, name=inner + variable.name))
        else:
            within.prefixes.add(inner)
            within.add_locals(inner, callee.local)
        self._declare(callee, inner)
        start, code = len(self.kernel.code), self.kernel.code
        self.body(callee, inner, {name: prefix + passed for name, passed in names}, within)
        # What lies in a header, such as atomicAdd for doubles, belongs to the line that calls it.
        code[start:] = [each if each.line else replace(each, line=call.line) for each in code[start:]]

    def _declare(self, function: ptx.Kernel, prefix: str) -> None:
        self.kernel.shared += [v for v in function.shared if v not in self.kernel.shared]
        for name, type_ in function.registers.items():
            self.kernel.registers[f"%{prefix}{name.lstrip('%')}"] = type_

    def _call_subroutine(
        self,
        call: ptx.Instruction,
        callee: ptx.Kernel,
        prefix: str,
        within: Subroutine | None,
        given: list[str],
        results: list[str],
    ) -> None:
        if callee.name not in self.subroutines:
            number = len(self.subroutines) + 1
            subroutine = Subroutine(callee.name, f"r{number}:", self.cycles[callee.name])
            subroutine.add_locals(subroutine.prefix, callee.local)
            self.subroutines[callee.name] = subroutine
            self.to_copy.append(subroutine)
        subroutine = self.subroutines[callee.name]
        saves = within is not None and within.cycle == subroutine.cycle
        push, pop, back = subroutine.called_from(call.line, within if saves else None)
        self.kernel.code.append(push)
        for formal, passed in zip(callee.params, given, strict=True):
            self._moves(callee, "ld", formal, subroutine.prefix + formal.name, prefix + passed, call.line)
        self._emit("bra", (ptx.Symbol(subroutine.entry),), call.line)
        self._place([back])
        for formal, passed in zip(callee.results, results, strict=True):
            self._moves(callee, "st", formal, prefix + passed, subroutine.prefix + formal.name, call.line)
        self.kernel.code.append(pop)

    def _moves(
        self, callee: ptx.Kernel, name: str, formal: ptx.Variable, to: str, from_: str, line: int
    ) -> None:
        """Move what the callee loads from a parameter, or stores in its result."""
        for offset, type_ in sorted(_places(callee, name, formal.name)):
            registers = [ptx.Register(f"%{side}+{offset}:{type_}") for side in (to, from_)]
            self.kernel.registers |= dict.fromkeys((r.name for r in registers), type_)
            self._emit(f"mov.{type_}", tuple(registers), line)

    def _print(self, call: ptx.Instruction, prefix: str) -> ptx.Instruction:
        """Turn a call of `printf` into an instruction with the addresses of its format and arguments."""
        given = call.operands[-1]
        assert isinstance(given, ptx.Vector)
        names = [f"%{prefix}{item.name}+0:b64" for item in given.items]  # type: ignore[union-attr]
        return replace(call, parts=("printf",), operands=tuple(ptx.Register(name) for name in names))

    def _copy(
        self,
        instruction: ptx.Instruction,
        function: ptx.Kernel,
        prefix: str,
        calls: dict[str, str],
        within: Subroutine | None,
    ) -> None:
        """Copy an instruction with its names prefixed, and a call's parameters turned into registers."""
        local = {variable.name for variable in function.local}
        address = next((o for o in instruction.operands if isinstance(o, ptx.Address)), None)
        base = address.base if address else None
        in_kernel = isinstance(base, ptx.Symbol) and any(base.name == p.name for p in self.kernel.params)
        if instruction.parts[0] not in ("ld", "st") or "param" not in instruction.parts or in_kernel:
            renamed = _renamed(instruction, prefix, local)
            if instruction.parts[0] == "mov":
                renamed = replace(renamed, operands=tuple(self._number(o) for o in renamed.operands))
            if within is not None:
                renamed = self._in_frame(renamed, within)
            self.kernel.code.append(renamed)
            return
        assert address is not None and isinstance(base, ptx.Symbol)
        passed = calls.get(base.name, prefix + base.name)
        type_ = f"b{8 * ptx.TYPE_BYTES[instruction.type]}"  # its size may differ from call to call
        others = tuple(o for o in instruction.operands if o is not address)
        renamed = _renamed(replace(instruction, operands=others), prefix, local)
        (value,) = renamed.operands
        for i, item in enumerate(value.items if isinstance(value, ptx.Vector) else (value,)):
            place = ptx.Register(f"%{passed}+{address.offset + i * ptx.TYPE_BYTES[type_]}:{type_}")
            self.kernel.registers[place.name] = type_
            operands = (place, item) if instruction.parts[0] == "st" else (item, place)
            if instruction.parts[0] == "ld" and isinstance(item, ptx.Register):
                have = ptx.TYPE_BYTES[self.kernel.register_type(item.name)]
                if have > ptx.TYPE_BYTES[type_]:  # a narrow value widens, with the sign of its type
                    to, from_ = f"{instruction.type[0]}{8 * have}", instruction.type
                    self.kernel.code.append(replace(renamed, parts=("cvt", to, from_), operands=operands))
                    continue
            self.kernel.code.append(replace(renamed, parts=("mov", type_), operands=operands))

    def _number(self, operand: ptx.Operand) -> ptx.Operand:
        """Turn a function's address into a number."""
        if isinstance(operand, ptx.Symbol) and operand.name in self.addresses:
            return ptx.Immediate(self.addresses[operand.name])
        return operand

    def _in_frame(self, instruction: ptx.Instruction, within: Subroutine) -> ptx.Instruction:
        """Address a subroutine's local variables in the frame of the current call."""

        def placed(operand: ptx.Operand) -> ptx.Operand:
            if isinstance(operand, ptx.Symbol) and operand.name in within.offsets:
                register = ptx.Register(f"%{within.prefix}{operand.name}")
                self.kernel.registers[register.name] = "u64"
                offset = ptx.Immediate(within.offsets[operand.name])
                self._emit("add.u64", (register, within.frame, offset), instruction.line)
                return register
            if isinstance(operand, ptx.Address):
                return replace(operand, base=placed(operand.base))  # type: ignore[arg-type]
            return operand

        return replace(instruction, operands=tuple(placed(o) for o in instruction.operands))


def _places(function: ptx.Kernel, name: str, variable: str) -> set[tuple[int, str]]:
    """Return the offsets and types at which a function loads (`ld`) or stores (`st`) a parameter."""
    found = set()
    for instruction in function.code:
        address = next((o for o in instruction.operands if isinstance(o, ptx.Address)), None)
        if instruction.parts[0] == name and "param" in instruction.parts and address is not None:
            if address.base != ptx.Symbol(variable):
                continue
            count = max(len(o.items) if isinstance(o, ptx.Vector) else 1 for o in instruction.operands)
            size = ptx.TYPE_BYTES[instruction.type]
            found |= {(address.offset + i * size, f"b{8 * size}") for i in range(count)}
    return found


def _renamed(instruction: ptx.Instruction, prefix: str, local: set[str]) -> ptx.Instruction:
    """Prefix the names of an instruction's registers, labels and local variables."""
    is_branch = instruction.parts[:1] == ("bra",)

    def rename(operand: ptx.Operand) -> ptx.Operand:
        if isinstance(operand, ptx.Register):
            return ptx.Register(f"%{prefix}{operand.name.lstrip('%')}")
        if isinstance(operand, ptx.Symbol) and (is_branch or operand.name in local):
            return ptx.Symbol(prefix + operand.name)
        return operand

    return ptx.mapped(instruction, rename)
