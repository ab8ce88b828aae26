"""The result of compiling a kernel for one block shape."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Compiled:
    """A kernel compiled for one block shape.

    `barriers` are the sites (indices of instructions) at which warps wait, `blocks` the sites of each basic
    block. `local_start` is where local memory begins in a frame. `warps` are those of one block; the
    `blocks_together` of a cluster run together. `turns` are the states of a warp that has given way to
    others. `facts` is what the observer's runs need to know of its code (Emitter.facts).
    """

    code: bytes
    warps: int
    frame_bytes: int
    barriers: list[int]
    blocks: list[list[int]]
    local_start: int
    blocks_together: int
    turns: frozenset[int]
    facts: object
