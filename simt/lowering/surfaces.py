"""Lower accesses of surfaces to loads and stores at the address that `suaddr` finds.

`suaddr.GEOMETRY.MODE.BYTES {address, inside}, surface, {x, y}` gives each thread the address of its texel,
and whether it lies within the surface. So the checks of loads and stores hold for surfaces, too. Reference:
PTX ISA, 9.7.11 (suld, sust).
"""

from simt import ptx
from simt.lowering.writer import Writer, also

MODES = ("trap", "clamp", "zero")


def load_surface(w: Writer, instruction: ptx.Instruction) -> None:
    """Lower `suld.b.2d.v2.b32.zero {a, b}, [surface, {x, y}]`; outside, it reads zeros."""
    if not _is_plain(instruction):
        w.code.append(instruction)  # refused if a kernel uses it
        return
    values, surface, coordinates = instruction.operands
    assert isinstance(values, ptx.Vector)
    address, inside = _address(w, instruction, len(values.items), surface, coordinates)
    loaded = [w.register(w.kernel.register_type(value.name)) for value in values.items]  # type: ignore[union-attr]
    for register in loaded:
        w.emit(f"mov.{_bits(w, register)}", register, ptx.Immediate(0))
    w.emit(_opcode("ld", instruction), _operand(loaded), address, guard=also(w, inside))
    for value, register in zip(values.items, loaded, strict=True):
        w.emit(f"mov.{_bits(w, register)}", value, register)


def store_surface(w: Writer, instruction: ptx.Instruction) -> None:
    """Lower `sust.b.2d.v2.b32.zero [surface, {x, y}], {a, b}`; outside, it writes nothing."""
    if not _is_plain(instruction):
        w.code.append(instruction)
        return
    surface, coordinates, values = instruction.operands
    assert isinstance(values, ptx.Vector)
    address, inside = _address(w, instruction, len(values.items), surface, coordinates)
    w.emit(_opcode("st", instruction), address, _operand(values.items), guard=also(w, inside))


def _is_plain(instruction: ptx.Instruction) -> bool:
    return instruction.parts[1] == "b" and len(instruction.operands) == 3 and instruction.parts[-1] in MODES


def _address(
    w: Writer, instruction: ptx.Instruction, items: int, surface: ptx.Operand, coordinates: ptx.Operand
) -> tuple[ptx.Address, ptx.Register]:
    place, inside = w.register("b64"), w.register("pred")
    size = items * ptx.TYPE_BYTES[instruction.type]
    opcode = f"suaddr.{instruction.parts[2]}.{instruction.parts[-1]}.{size}"
    w.emit(opcode, ptx.Vector((place, inside)), surface, coordinates)
    return ptx.Address(place), inside


def _opcode(name: str, instruction: ptx.Instruction) -> str:
    vector = [part for part in instruction.parts if part in ("v2", "v4")]
    return ".".join([name, "global", "surface", *vector, instruction.type])


def _operand(values: list[ptx.Register] | tuple[ptx.Operand, ...]) -> ptx.Operand:
    return values[0] if len(values) == 1 else ptx.Vector(tuple(values))


def _bits(w: Writer, register: ptx.Register) -> str:
    return f"b{8 * ptx.TYPE_BYTES[w.kernel.register_type(register.name)]}"
