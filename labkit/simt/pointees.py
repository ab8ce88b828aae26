"""Which array does a register point into? Only a guess that says which range to look in first."""

from __future__ import annotations

from labkit.simt.blocks import results, sources
from labkit.simt.ptx import Address, Kernel, Symbol

_KEEP_THE_ARRAY = {"mov", "cvta", "add", "sub", "selp", "mad"}


def find_pointees(kernel: Kernel, ranges: dict[str, int]) -> dict[str, int]:
    """Register name -> number of the range it most likely points into.

    Follows pointers from the parameters and variables they come from through 64-bit sums. Where a pointer
    and a number both come from parameters (`p + n`), the operand that was converted to a global address is
    the pointer.
    """
    found: dict[str, int] = {}
    pointers: set[str] = set()
    changed = True
    while changed:
        changed = False
        for instruction in kernel.code:
            if instruction.parts[0] not in (*_KEEP_THE_ARRAY, "ld") or instruction.type not in (
                "u64",
                "s64",
                "b64",
            ):
                continue
            for register in results(instruction):
                if register.name in found:
                    continue
                operand = instruction.operands[1]
                named = operand.base if isinstance(operand, Address) else operand
                if isinstance(named, Symbol) and named.name in ranges:
                    found[register.name] = ranges[named.name]
                elif instruction.parts[0] != "ld":
                    known = [source.name for source in sources(instruction) if source.name in found]
                    known.sort(key=lambda name: name not in pointers)
                    if not known:
                        continue
                    found[register.name] = found[known[0]]
                    if instruction.parts[0] == "cvta" or known[0] in pointers:
                        pointers.add(register.name)
                else:
                    continue
                changed = True
    return found
