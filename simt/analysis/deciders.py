"""Find what decides where a kernel goes: which arguments, and whether the contents of its arrays do.

A value decides if an address, a branch or a barrier depends on it. Other values (the elements of a matrix
product, its alpha) change only the results: where threads read, write and wait does not depend on them.
"""

from dataclasses import dataclass

from simt.ptx import Address, Instruction, Kernel, Operand, Register, Symbol, Vector

CONTENTS = "the contents of memory"  # besides the names of parameters


@dataclass(frozen=True)
class Deciders:
    """The positions of the arguments that decide; `contents` says whether the values in arrays do."""

    arguments: frozenset[int]
    contents: bool


def find_deciders(kernel: Kernel) -> Deciders:
    """Follow each value through registers and memory, from its origin to where it decides.

    All memory counts as one: a load may read any array's contents, or whatever the kernel stored.
    """
    origins: dict[str, set[str]] = {}
    stored = {CONTENTS}
    parameters = {parameter.name for parameter in kernel.params}
    changed = True
    while changed:
        changed = False
        for instruction in kernel.code:
            found = _origins(instruction, origins, stored, parameters)
            targets = [origins.setdefault(register.name, set()) for register in instruction.results]
            if instruction.family.writes:
                targets.append(stored)
            for target in targets:
                changed |= not found <= target
                target |= found
    deciding = {
        origin
        for instruction in kernel.code
        for register in _deciding(instruction)
        for origin in origins.get(register.name, ())
    }
    positions = (position for position, each in enumerate(kernel.params) if each.name in deciding)
    return Deciders(frozenset(positions), CONTENTS in deciding)


def _origins(
    instruction: Instruction, origins: dict[str, set[str]], stored: set[str], parameters: set[str]
) -> set[str]:
    """Return where the values that an instruction reads come from."""
    names = {base.name for base in _bases(instruction) if isinstance(base, Symbol)} & parameters
    memory = stored if _addresses(instruction) and "param" not in instruction.parts else set()
    return names.union(memory, *(origins.get(register.name, ()) for register in instruction.sources))


def _deciding(instruction: Instruction) -> list[Register]:
    """Return those registers of an instruction that decide where the kernel goes."""
    found = [instruction.guard.register] if instruction.guard else []
    found += [address.base for address in _addresses(instruction) if isinstance(address.base, Register)]
    if instruction.family.decides:
        found += instruction.sources
    elif instruction.family.names_lanes and isinstance(instruction.operands[-1], Register):
        found.append(instruction.operands[-1])
    return found


def _addresses(instruction: Instruction) -> list[Address]:
    return [operand for operand in instruction.operands if isinstance(operand, Address)]


def _bases(instruction: Instruction) -> list[Operand]:
    """Return the operands, with vectors unpacked and the base in place of each address."""
    items: list[Operand] = []
    for operand in instruction.operands:
        items += operand.items if isinstance(operand, Vector) else (operand,)
    return [item.base if isinstance(item, Address) else item for item in items]
