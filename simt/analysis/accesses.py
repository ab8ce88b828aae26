"""The loads and stores of a basic block: what each reads or writes, and which share one range check."""

from dataclasses import dataclass

from simt.analysis.blocks import Block
from simt.analysis.flow import Flow
from simt.analysis.lanes import VARYING, Shape
from simt.analysis.layout import Layout
from simt.ptx import TYPE_BYTES, Address, Immediate, Instruction, Operand, Register, Symbol, Vector


@dataclass
class Access:
    """A load, store or atomic operation of `items`, each `size` bytes, at `offsets` from `base`.

    `range` is the number of the array it most likely points into, or None if unknown. The accesses of one
    group share a base that does not change between them, so the first of them checks `group_range`, in bytes
    relative to the bases, for all.
    """

    base: Register | Symbol | Immediate
    space: str
    items: tuple[Operand, ...]
    size: int
    offsets: list[int]
    is_store: bool
    is_atomic: bool
    shape: Shape
    range: int | None
    is_alike: bool  # does the shape say how lanes lie in their own local memory?
    is_first: bool = True
    group_range: tuple[int, int] = (0, 0)

    @property
    def alignment(self) -> int:
        """Return the bytes to which its address is aligned: all that it moves per lane."""
        return self.size * len(self.offsets)

    @property
    def extent(self) -> tuple[int, int]:
        """Return where its bytes start and end, relative to the bases; in local memory, those of lane 0."""
        lanes = self.shape.lane_offsets()[: 1 if self.space == "local" else None]
        return min(lanes) + self.offsets[0], max(lanes) + self.offsets[-1] + self.size

    @property
    def has_fast_form(self) -> bool:
        """Say whether a whole warp can make it without checking each lane."""
        known = not self.is_atomic and (self.space in ("shared", "local") or self.range is not None)
        if self.space == "local" and not self.is_alike:
            return False
        first = self.extent[0]
        return known and all(
            (lane + self.offsets[0] - first) % self.alignment == 0 for lane in self.shape.lane_offsets()
        )


class Accesses:
    """The accesses of one block; `at` maps a position in its code to its access."""

    def __init__(self, block: Block, flow: Flow, layout: Layout) -> None:
        self.at: dict[int, Access] = {}
        written: dict[str, int] = {}
        groups: dict[object, list[Access]] = {}
        for position, instruction in enumerate(block.code):
            access = _access(instruction, flow, layout)
            if access is not None:
                self.at[position] = access
                base = access.base
                version = written.get(base.name, 0) if isinstance(base, Register) else 0
                remainder = access.extent[0] % access.alignment
                key = (base, version, access.space, access.alignment, remainder)
                groups.setdefault(key, []).append(access)
            for register in instruction.results:
                written[register.name] = position + 1
        for group in groups.values():
            extents = [access.extent for access in group]
            together = min(first for first, _ in extents), max(end for _, end in extents)
            for i, access in enumerate(group):
                access.is_first, access.group_range = i == 0, together


def _access(instruction: Instruction, flow: Flow, layout: Layout) -> Access | None:
    if not instruction.is_access:
        return None
    is_atomic, is_store = instruction.family.is_atomic, not instruction.family.reads
    place = next(i for i, operand in enumerate(instruction.operands) if isinstance(operand, Address))
    address, others = instruction.operands[place], instruction.operands[place + 1 :]
    assert isinstance(address, Address)
    value = others[0] if instruction.family.writes else instruction.operands[0]
    items = value.items if isinstance(value, Vector) else others if is_atomic else (value,)
    size = TYPE_BYTES[instruction.type]
    base = address.base
    if isinstance(base, Symbol):
        in_range = layout.variables.get(base.name)
    else:
        in_range = layout.pointees.get(base.name) if isinstance(base, Register) else None
    is_constant = in_range in layout.storage.constants
    if is_constant if instruction.family.writes else (instruction.space == "const" and not is_constant):
        in_range = None  # a mistake, unless the guess is wrong
    offsets = [address.offset + i * size for i in range(1 if is_atomic else len(items))]
    shape = flow.rules.operand(base, flow.shapes)
    is_alike = shape in (flow.rules.local, VARYING)
    return Access(
        base, instruction.space, items, size, offsets, is_store, is_atomic, shape, in_range, is_alike
    )
