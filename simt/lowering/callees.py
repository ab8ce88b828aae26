"""Find the functions that a call may reach: one for a call by name, perhaps several by pointer."""

from collections.abc import Collection, Mapping

from simt.ptx import Instruction, Kernel, Module, Operand, Symbol, Vector


def names_a_function(instruction: Instruction, module: Module) -> bool:
    """Say whether one of the module's functions is among the operands."""
    return any(isinstance(o, Symbol) and o.name in module.functions for o in instruction.operands)


def pointed_to(module: Module) -> set[str]:
    """Return the functions whose address is taken, by code or a variable's initial value (virtual tables)."""
    found = {name for _, variable in module.variables.values() for _, name, _ in variable.addresses}
    for function in [*module.kernels.values(), *module.functions.values()]:
        for instruction in function.code:
            if instruction.parts[0] == "mov":
                found.update(o.name for o in instruction.operands if isinstance(o, Symbol))
    return found & module.functions.keys()


def target_of(call: Instruction) -> Operand:
    """Return what a call calls: a name, or a register with an address."""
    return next(o for o in call.operands if not isinstance(o, Vector))


def call_graph(functions: Mapping[str, Kernel], pointed_to: Collection[str]) -> dict[str, set[str]]:
    """Map each function to those that it may call."""
    return {name: _callees(function, functions, pointed_to) for name, function in functions.items()}


def _callees(function: Kernel, functions: Mapping[str, Kernel], pointed_to: Collection[str]) -> set[str]:
    found: set[str] = set()
    for instruction in function.code:
        if instruction.parts[0] == "call":
            target = target_of(instruction)
            if isinstance(target, Symbol):
                found.add(target.name)
            else:
                found.update(candidates(instruction, functions, pointed_to))
    return found & functions.keys()


def candidates(call: Instruction, functions: Mapping[str, Kernel], pointed_to: Collection[str]) -> list[str]:
    """Return the functions that a call by pointer may mean: those with as many parameters and results."""
    lists = [len(o.items) for o in call.operands if isinstance(o, Vector)]
    return [
        name
        for name in pointed_to
        if lists == [len(v) for v in (functions[name].results, functions[name].params) if v]
    ]
