"""A picture of fragments: which lane of a warp holds which elements of an instruction of the tensor cores."""

import numpy as np

from labkit.figures.svg import ORANGE, SKY, Svg
from simt.common.limits import WARP
from simt.common.text import counted
from simt.lowering.fragments import Matrices, matrices

# The instruction that multiplies 32 bytes of each row, by the type of A and B.
INSTRUCTIONS = {
    "half": "mma.m16n8k16.f32.f16.f16.f32",
    "bfloat16": "mma.m16n8k16.f32.bf16.bf16.f32",
    "tf32": "mma.m16n8k8.f32.tf32.tf32.f32",
    "fp8": "mma.m16n8k32.f32.e4m3.e4m3.f32",
}
_CELL, _LEFT, _TOP, _GAP = 18, 34, 60, 52  # pixels
_LOOKS: list[dict[str, object]] = [{"class_": "empty"}, {"fill": SKY}, {"fill": ORANGE}]


def of(kind: str) -> Matrices:
    """Return the matrices of the instruction for elements of `kind`, a key of INSTRUCTIONS."""
    found = matrices(tuple(INSTRUCTIONS[kind].split(".")))
    assert found is not None  # all of them are known
    return found


def lanes(product: Matrices, role: str) -> np.ndarray:
    """Return the lane that holds each element of matrix a, b or c: (rows, columns)."""
    rows, cols = {"a": (product.m, product.k), "b": (product.k, product.n), "c": (product.m, product.n)}[role]
    found = np.full((rows, cols), -1)
    width = 8 if role == "c" else 4 * product.per_register(role)  # of a block, which has 8 rows
    block = 4 * np.arange(8)[:, None] + np.arange(width) // (width // 4)
    for row, col in product.blocks(role):
        part = block.T if product.is_turned(role) else block
        found[row : row + part.shape[0], col : col + part.shape[1]] = part
    return found


def fragments(kind: str = "half", lane: int = 6) -> Svg:
    """Draw A, B and C of one instruction with the lane of each element; those of `lane` stand out.

    The lanes of its group of four are marked, too. Raises ValueError for a lane that a warp does not have.
    """
    if not 0 <= lane < WARP:
        raise ValueError(f"a warp has no lane {lane}. Choose 0 to {WARP - 1}.")
    product = of(kind)
    across, down = _LEFT + product.k * _CELL + _GAP, _TOP + product.k * _CELL + _GAP
    places = {"a": (_LEFT, down), "b": (across, _TOP), "c": (across, down)}
    picture = Svg(
        across + product.n * _CELL + 30,
        down + product.m * _CELL + 12,
        f"{INSTRUCTIONS[kind]}: lane {lane} holds {holdings(kind, lane)}.",
    )
    picture.title(f"{INSTRUCTIONS[kind]}: the lane of each element")
    picture.legend(8, 34, [(f"lane {lane}", _LOOKS[2]), (f"group of lane {lane}", _LOOKS[1])])
    for role, (x, y) in places.items():
        held = lanes(product, role)
        kinds = (held // 4 == lane // 4).astype(int) + (held == lane)
        shape = f"{role.upper()} ({held.shape[0]}, {held.shape[1]}), {product.type(role)}"
        picture.text(x, y - 26, shape, class_="halo")
        picture.cells(x, y, (_CELL, _CELL), kinds, _LOOKS)
        for (row, col), number in np.ndenumerate(held):
            on = {"class_": "on"} if kinds[row, col] else {}
            picture.text(
                x + (col + 0.5) * _CELL, y + (row + 0.5) * _CELL, str(number), "middle", font_size=10, **on
            )
        for number in range(0, held.shape[0], 4):
            picture.text(x - 6, y + (number + 0.5) * _CELL, str(number), "end", class_="soft", font_size=10)
        for number in range(0, held.shape[1], 4):
            picture.text(
                x + (number + 0.5) * _CELL, y - 8, str(number), "middle", class_="soft", font_size=10
            )
    return picture


def holdings(kind: str, lane: int) -> str:
    """Say how many elements of each matrix a lane holds."""
    product = of(kind)
    counts = [f"{int((lanes(product, role) == lane).sum())} of {role.upper()}" for role in "abc"]
    return f"{', '.join(counts[:2])} and {counted(int((lanes(product, 'c') == lane).sum()), 'sum')}"
