"""Pictures of what a kernel does: who computes what, what a warp asks for, where it lies, when lanes wait.

They are drawn as SVG from the kernels' own rules. The explorers of `labkit.widgets` show them too.

pictures.memory_spaces()      which memory belongs to a thread, to a block and to all
pictures.naive_reads(…)       the row of A and the column of B that an element of C needs
pictures.tile_walk(…)         the tiles that a block brings to shared memory in one round
pictures.tile_levels()        the tile of a block, of a warp and of a thread in a product, and what each reads
pictures.double_buffer()      how a tile is loaded while the one before is computed
pictures.full_empty()         the phases of the mbarriers full and empty of a pipeline of two stages
pictures.barrier_wait()       a warp that waits at a barrier for what another one writes
pictures.struct_layouts()     the sectors of one field in an array of structs, and in a struct of arrays
pictures.transposed_warp(…)   what a warp of the naive transpose reads, and where that goes
pictures.through_a_tile(…)    how a tile of the transpose goes through shared memory
pictures.waves()              the blocks in the block slots of the SMs, and what the tail leaves empty
pictures.last_block()         how the last block to finish adds the sums of all blocks
pictures.merged_softmax()     how the maxima and the sums of two parts of a softmax merge
"""

from labkit.figures.pictures.block_waves import waves
from labkit.figures.pictures.layouts import struct_layouts
from labkit.figures.pictures.levels import tile_levels
from labkit.figures.pictures.partial_results import last_block, merged_softmax
from labkit.figures.pictures.product import naive_reads, tile_walk
from labkit.figures.pictures.sectors import transposed_warp
from labkit.figures.pictures.spaces import memory_spaces
from labkit.figures.pictures.timelines import barrier_wait, double_buffer, full_empty
from labkit.figures.pictures.transpose import through_a_tile

__all__ = [
    "barrier_wait",
    "double_buffer",
    "full_empty",
    "last_block",
    "memory_spaces",
    "merged_softmax",
    "naive_reads",
    "struct_layouts",
    "through_a_tile",
    "tile_levels",
    "tile_walk",
    "transposed_warp",
    "waves",
]
