"""What is kept of a kernel that was compiled for one block shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Compiled:
    """What is kept of a kernel compiled for one block shape.

    `barriers` are the sites (indices of instructions) at which warps wait, `blocks` the sites of each basic
    block. Of a checked program: `first_uses`, the lines in which arrays are first used, and `written`, those
    that may be written to (None: any). Of a counted one: `usual`, one row per instruction (abi.Usual), and
    the `strides` between lanes.
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
