"""Pictures of what a kernel does: who computes what, what a warp asks for, where it lies, when lanes wait.

They are drawn as SVG from the kernels' own rules. The explorers of `labkit.widgets` show them too.

pictures.memory_spaces()      which memory belongs to a thread, to a block and to all
pictures.naive_reads(…)       the row of A and the column of B that an element of C needs
pictures.tile_walk(…)         the tiles that a block brings to shared memory in one round
pictures.transposed_warp(…)   what a warp of the naive transpose reads, and where that goes
pictures.through_a_tile(…)    how a tile of the transpose goes through shared memory
"""

from labkit.figures.pictures.product import naive_reads, tile_walk
from labkit.figures.pictures.sectors import transposed_warp
from labkit.figures.pictures.spaces import memory_spaces
from labkit.figures.pictures.transpose import through_a_tile

__all__ = ["memory_spaces", "naive_reads", "through_a_tile", "tile_walk", "transposed_warp"]
