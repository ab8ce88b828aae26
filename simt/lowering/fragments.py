"""How the 32 lanes hold the matrices of `wmma` and `mma`: one layout for all shapes and types.

In each register, lane 4 g + t holds neighbours of row g of an 8-row block (for B, of column g). So a register
of A or B is a block of 8 rows and 4 * (numbers per register) columns, row after row. Reference: PTX ISA,
9.7.14.5, "Matrix Fragments for mma.m16n8k16". It calls `wmma` fragments opaque; on an H200 they have this
layout.
"""

import re
from dataclasses import dataclass

# Bits per number; a register has 32, or 64 for f64.
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "f64": 64}
BITS |= {"e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}


@dataclass(frozen=True)
class Matrices:
    """The product D = A (m x k) B (k x n) + C (m x n), and the types of D, A, B and C."""

    m: int
    n: int
    k: int
    types: tuple[str, str, str, str]

    def per_register(self, role: str) -> int:
        """Return how many elements of a matrix a register holds."""
        bits = BITS[self.type(role)]
        return 1 if bits == 64 else 32 // bits

    def type(self, role: str) -> str:
        """Return the type of the elements of d, a, b or c."""
        return self.types["dabc".index(role)]

    @property
    def is_swapped(self) -> bool:
        """Say whether A and B change roles: tensor cores compute m8n32k16 as the transposed product."""
        return self.m == 8 and self.n == 32

    def is_turned(self, role: str) -> bool:
        """Say whether groups of lanes hold columns rather than rows."""
        return role == "b" or (role in "cd" and self.is_swapped)

    def blocks(self, role: str) -> list[tuple[int, int]]:
        """Return the first row and column of each register's block (C and D: of each 8 x 8 block)."""
        step = 4 * self.per_register(role)
        if role == "b" and self.is_swapped:
            return [
                (row, first + half)
                for first in range(0, self.n, 16)
                for row in range(0, self.k, step)
                for half in (0, 8)
            ]
        if role == "b":
            return [(row, column) for column in range(0, self.n, 8) for row in range(0, self.k, step)]
        width, step = (self.k, step) if role == "a" else (self.n, 8)
        return [
            (first + half, column)
            for first in range(0, self.m, 16)
            for column in range(0, width, step)
            for half in (0, 8)
            if half < self.m
        ]


def matrices(parts: tuple[str, ...]) -> Matrices | None:
    """Return the matrices of a `wmma`, `mma` or `wgmma` instruction; None for unknown shapes and types."""
    shape = next((match for part in parts if (match := re.fullmatch(r"m(\d+)n(\d+)k(\d+)", part))), None)
    types = [part for part in parts if part in BITS]
    if shape is None:
        return None
    if len(types) == 1:  # a load or store names only the type of its own matrix
        types = types * 4
    elif len(types) == 2 and parts[0] == "wmma":  # wmma.mma of half precision names D and C
        types = [types[0], "f16", "f16", types[1]]
    elif len(types) == 3:  # wgmma: C is D
        types.append(types[0])
    m, n, k = (int(number) for number in shape.groups())
    if len(types) != 4 or n % 8 or m % 8:
        return None
    found = Matrices(m, n, k, (types[0], types[1], types[2], types[3]))
    if k % (4 * found.per_register("a")):
        return None  # so is Volta's m8n8k4 of half precision, which has a layout of its own
    if parts[0] == "wmma" and BITS[types[1]] < 8:
        return None  # experimental, with loads of their own
    return found
