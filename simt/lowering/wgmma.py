"""The operands of `wgmma.mma_async`, and where a descriptor says that a matrix lies in shared memory.

A warpgroup is four warps; each computes 16 rows of D = A B + D, in the layout of `mma` (fragments.py). B, and
often A, is read from shared memory in pieces of 16 bytes: 16 pieces hold eight rows of A (of B, columns) and
their 32 bytes along K. K-major, a piece is half of one such row; MN-major, it is eight rows at one k.
Reference: PTX ISA, 9.7.15.5 (layouts, descriptors, swizzling modes).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from simt.lowering.fragments import Matrices, matrices
from simt.lowering.writer import Writer
from simt.ptx import Immediate, Instruction, Operand, Vector, unknown

PIECE = 16  # bytes
GROUP = 8  # rows of A, or columns of B
WARPGROUP_ROWS = 64
_USED_BITS = 0xC00E_3FFF_3FFF_3FFF  # mode, base offset, stride, leading and start
Role = Literal["a", "b"]


def lower_wgmma(w: Writer, instruction: Instruction) -> None:
    """Add D as the last operand, since the product reads it, too."""
    if instruction.parts[1] == "mma_async":
        instruction = replace(instruction, operands=(*instruction.operands, instruction.operands[0]))
    w.code.append(instruction)


@dataclass(frozen=True)
class Product:
    """A `wgmma.mma_async` as `lower_wgmma` leaves it.

    `matrices` are those of one warp. `scale_d` says whether D is added; `is_negated`, whether A B is
    subtracted.
    """

    instruction: Instruction
    matrices: Matrices

    @property
    def d(self) -> tuple[Operand, ...]:
        """Return the registers of D."""
        return _items(self.instruction.operands[0])

    @property
    def scale_d(self) -> Operand:
        """Return the predicate that says whether D is added to the product."""
        return self.instruction.operands[3]

    def operand(self, role: Role) -> Operand:
        """Return A, a vector of registers or a descriptor; or B, a descriptor."""
        return self.instruction.operands[1 if role == "a" else 2]

    @property
    def described(self) -> tuple[Role, ...]:
        """Return the matrices that are given by descriptors."""
        return ("b",) if isinstance(self.operand("a"), Vector) else ("a", "b")

    @cached_property
    def _numbers(self) -> list[int]:
        """Return the signs of A and B, and for 16-bit types whether they are MN-major."""
        return [each.value for each in self.instruction.operands[4:-1] if isinstance(each, Immediate)]

    @property
    def is_negated(self) -> bool:
        """Say whether exactly one of A and B is multiplied by -1."""
        signs = self._numbers[:2]
        return len(signs) == 2 and signs[0] * signs[1] < 0

    def is_k_major(self, role: Role) -> bool:
        """Say whether a described matrix has its numbers along K side by side."""
        majors = self._numbers[2:]
        return not majors or not majors[self.described.index(role)]

    def groups(self, role: Role) -> int:
        """Return how many groups of 8 rows of A, or columns of B, a warpgroup reads."""
        return (WARPGROUP_ROWS if role == "a" else self.matrices.n) // GROUP


def product_of(instruction: Instruction) -> Product:
    """Read a `wgmma.mma_async`. Raises SimtError for one that the PTX ISA does not have."""
    found = matrices(instruction.parts)
    if found is None or found.m != WARPGROUP_ROWS or len(instruction.operands) < 5:
        raise unknown(instruction)
    return Product(instruction, replace(found, m=WARPGROUP_ROWS // 4))


@dataclass(frozen=True)
class Descriptor:
    """A matrix descriptor, in bytes: `base` is how far past a boundary its swizzle pattern begins.

    `width` is that of a row of the swizzle pattern, which has eight; 16, a piece, without swizzling.
    """

    start: int
    leading: int
    stride: int
    base: int
    width: int

    @classmethod
    def decode(cls, bits: int) -> "Descriptor":
        """Read the 64 bits of a descriptor."""
        start, leading, stride = ((bits >> at & 0x3FFF) << 4 for at in (0, 16, 32))
        mode = bits >> 62 & 3
        return cls(start, leading, stride, (bits >> 49 & 7) << 7, 256 >> mode if mode else PIECE)

    @property
    def is_swizzled(self) -> bool:
        """Say whether pieces are permuted within a pattern."""
        return self.width > PIECE

    def pieces(self, groups: int, is_k_major: bool) -> np.ndarray:
        """Return where in shared memory the pieces of each group begin: an array (groups, 16).

        K-major, piece 2 r + h is half h of row r; MN-major, piece k is that of k.
        """
        group, piece = np.ogrid[:groups, :16]
        if is_k_major:
            half = PIECE if self.is_swizzled else self.leading
            offsets = group * self.stride + piece // 2 * self.width + piece % 2 * half
        else:
            across, half = (self.leading, self.stride) if self.is_swizzled else (self.stride, self.leading)
            side = self.width // PIECE  # groups side by side in a row of the pattern
            offsets = (
                group // side * across + group % side * PIECE + piece // 8 * half + piece % 8 * self.width
            )
        addresses = self.start + offsets
        return addresses ^ (addresses - self.base >> 3) & (self.width - PIECE)

    def unset_step(self, groups: int, is_k_major: bool) -> str:
        """Return "leading" or "stride" if that distance is 0 and a matrix of so many groups needs it."""
        has_steps = groups > (1 if is_k_major else self.width // PIECE)
        needs_leading, needs_stride = has_steps, True
        if is_k_major or not self.is_swizzled:
            needs_leading, needs_stride = not self.is_swizzled, has_steps
        unset = {"leading": needs_leading and not self.leading, "stride": needs_stride and not self.stride}
        return next((name for name, is_unset in unset.items() if is_unset), "")


def shared_bytes(instruction: Instruction, role: Role, descriptor: int) -> np.ndarray:
    """Return where in shared memory the 16-byte pieces that a warpgroup reads begin: an array (groups, 16).

    Warp w of the four reads groups 2 w and 2 w + 1 of A, and all groups of B.
    """
    product = product_of(instruction)
    return Descriptor.decode(descriptor).pieces(product.groups(role), product.is_k_major(role))


def misfit(instruction: Instruction, role: Role, descriptor: int, size: int) -> str:
    """Say why a descriptor cannot be right in a block with `size` bytes of shared memory; "" if it can."""
    product, read = product_of(instruction), Descriptor.decode(descriptor)
    is_k_major, groups = product.is_k_major(role), product.groups(role)
    who = _who(role, descriptor)
    if unused := descriptor & ~_USED_BITS:
        return f"{who} sets the bits {unused:#x}, which mean nothing: each address in it is divided by 16"
    if name := read.unset_step(groups, is_k_major):
        return f"{who} has the {name} byte offset 0, so parts of the matrix would lie at one place"
    pieces = read.pieces(groups, is_k_major)
    if np.unique(pieces).size < pieces.size:
        return (
            f"{who} has the leading byte offset {read.leading} and the stride byte offset {read.stride}: "
            "parts of the matrix would lie at one place"
        )
    first, end = int(pieces.min()), int(pieces.max()) + PIECE
    if end > size:
        return f"{who} covers bytes {first} to {end - 1} of shared memory, of which the block has {size}"
    return ""


def misaligned(role: Role, descriptor: int) -> str:
    """Say that a matrix starts within a swizzle pattern; "" if it does not.

    A copy by a tensor map swizzles by addresses, as wgmma does, so there such a start is right. Code that
    stores a swizzled matrix itself mostly counts rows from the matrix's start.
    """
    read = Descriptor.decode(descriptor)
    row = (read.start - read.base) % (8 * read.width) // read.width
    if not read.is_swizzled or not row:
        return ""
    return (
        f"{_who(role, descriptor)} starts at byte {read.start}, in row {row} of its swizzle pattern of "
        f"{read.width} bytes a row. Align the matrix to {8 * read.width} bytes"
    )


def reads_other_swizzle(role: Role, descriptor: int, written: int) -> str:
    """Say that a copy swizzled a matrix with other bytes per row, `written`; "" if they are the same."""
    read = Descriptor.decode(descriptor)
    width = read.width if read.is_swizzled else 0
    return (
        "" if width == written else f"{_who(role, descriptor)} has a swizzle of {width} bytes, not {written}"
    )


def _who(role: Role, descriptor: int) -> str:
    return f"the descriptor {descriptor:#018x} of matrix {role.upper()}"


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)
