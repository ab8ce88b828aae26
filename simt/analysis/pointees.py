"""Find the array that a register points into.

`find_pointees` guesses, to say which range to check first; `written_ranges` leaves nothing out.
"""

from simt.ptx import Address, Kernel, Operand, Register, Symbol, Vector


def find_pointees(kernel: Kernel, ranges: dict[str, int]) -> dict[str, int]:
    """Map each register's name to the number of the range it most likely points into.

    Follows pointers from the parameters and variables they come from through 64-bit sums. Where a pointer and
    a number both come from parameters (`p + n`), the operand that was converted to a global address is the
    pointer.
    """
    found: dict[str, int] = {}
    pointers: set[str] = set()
    changed = True
    while changed:
        changed = False
        for instruction in kernel.code:
            keeps_array, is_load = instruction.family.keeps_array, instruction.parts[0] == "ld"
            if not (keeps_array or is_load) or instruction.type not in ("u64", "s64", "b64"):
                continue
            for register in instruction.results:
                if register.name in found:
                    continue
                operand = instruction.operands[1]
                named = operand.base if isinstance(operand, Address) else operand
                if isinstance(named, Symbol) and named.name in ranges:
                    found[register.name] = ranges[named.name]
                elif not is_load:
                    known = [source.name for source in instruction.sources if source.name in found]
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


def written_ranges(kernel: Kernel, ranges: dict[str, int]) -> set[int] | None:
    """Return the numbers of the ranges that the kernel may write to, or None if that can be any.

    A pointer may point wherever one of the values it is computed from did.
    """
    reach: dict[str, set[int] | None] = {}

    def of(operand: Operand) -> set[int] | None:
        match operand:
            case Register(name):
                return reach.get(name, set())
            case Symbol(name):
                return {ranges[name]} if name in ranges else set()
            case Address(base, _):
                return of(base)
            case Vector(items):
                return _united([of(item) for item in items])
        return set()

    changed = True
    while changed:
        changed = False
        for instruction in kernel.code:
            is_load = instruction.family.reads and instruction.is_access
            may_be_pointer = instruction.type in ("u64", "s64", "b64", "b128")
            is_any = instruction.parts[0] == "suaddr" or (is_load and may_be_pointer)
            found: set[int] | None = None if is_any else set()
            if instruction.results and not is_load and not is_any:
                found = _united([of(operand) for operand in instruction.operands[1:]])
            for register in instruction.results:
                new = _united([reach.get(register.name, set()), found])
                if new != reach.get(register.name, set()):
                    reach[register.name], changed = new, True
    stores = [
        next(operand for operand in i.operands if isinstance(operand, Address))
        for i in kernel.code
        if i.family.writes and i.is_access and i.space not in ("shared", "local")
    ]
    return _united([of(address) for address in stores])


def _united(sets: list[set[int] | None]) -> set[int] | None:
    return None if any(s is None for s in sets) else set().union(*(s for s in sets if s is not None))
