"""The result of compiling a kernel for one block shape."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Compiled:
    """A kernel compiled for one block shape.

    `barriers` are the sites (indices of instructions) at which warps wait, `blocks` the sites of each basic
    block. A checked program also has `first_uses`, the lines in which arrays are first used, `written`, the
    arrays that may be written to (None: any), and `looks`, the kinds of looks that it calls (warp_look.py).
    A counted one has `usual`, one row per instruction (abi.Usual), and the `strides` between lanes.
    `local_start` is where local memory begins in a frame. `warps` are those of one block; the
    `blocks_together` of a cluster run together. `turns` are the states of a warp that has given way to
    others.
    """

    code: bytes
    warps: int
    frame_bytes: int
    barriers: list[int]
    blocks: list[list[int]]
    first_uses: dict[int, int]
    written: set[int] | None
    usual: np.ndarray
    strides: list[int | None]
    local_start: int
    blocks_together: int = 1
    turns: frozenset[int] = frozenset()
    looks: tuple[object, ...] = ()
