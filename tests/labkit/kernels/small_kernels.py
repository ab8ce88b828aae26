"""Parameters of the course's kernels that are quick to compile in the simulator."""

import re

from labkit import kernels

# Parameters that each rung is tried with; a rung not listed has its defaults. The first are small: then the
# sizes below span several tiles, and the simulator is quick.
SQUARE = [{"TILE": tile} for tile in (8, 1, 5, 16, 32)]
BLOCKED = {"TILE_M": 16, "TILE_N": 16, "TILE_K": 4, "THREAD_M": 4}
REGISTERS = BLOCKED | {"THREAD_N": 4}
WARPS = REGISTERS | {"TILE_N": 64, "WARP_M": 16, "WARP_N": 32}
TILES = {"TILE_M": 16, "TILE_N": 64, "TILE_K": 8, "THREAD_M": 4, "THREAD_N": 4, "STAGES": 2}
PARAMETERS = {
    "matmul/1_naive": SQUARE,
    "matmul/1_naive_uncoalesced": SQUARE,
    "matmul/2_tiled": SQUARE,
    "matmul/3_tiled_unrolled": [{"TILE": 8}, {"TILE": 5, "UNROLL": 2}, {"TILE": 32, "UNROLL": 1}],
    "matmul/4_register_column": [BLOCKED, BLOCKED | {"TILE_M": 6, "TILE_N": 20, "THREAD_M": 2}, {}],
    "matmul/5_register_tile": [
        REGISTERS,
        BLOCKED | {"TILE_M": 6, "TILE_N": 20, "THREAD_M": 2, "THREAD_N": 5},
    ],
    "matmul/6_vectorised": [REGISTERS, REGISTERS | {"TILE_N": 40, "THREAD_M": 8}],
    "matmul/7_double_buffered": [REGISTERS],
    "matmul/8_warp_tile": [WARPS],
    "matmul/9_tuned": [WARPS | {"STAGES": 2}, WARPS | {"STAGES": 3}],
    "matmul/10_any_tile": [TILES, TILES | {"TILE_K": 16, "STAGES": 3, "THREAD_N": 8}],
    "matmul/11_stream_k": [TILES | {"BLOCKS": 5}, TILES | {"BLOCKS": 40}, TILES | {"BLOCKS": 1}],
    "matmul/12_few_rows": [
        {"THREAD_M": 2, "THREAD_N": 1, "TILE_K": 4, "PARTS": 2},
        {"THREAD_M": 8, "PARTS": 8, "CLUSTER": 4},
        {"THREAD_M": 4, "PARTS": 1},
    ],
    "matmul/13_few_columns": [
        {"THREAD_M": 2, "THREAD_N": 1, "TILE_K": 32, "PARTS": 2},
        {"THREAD_M": 4, "THREAD_N": 8, "PARTS": 8, "CLUSTER": 2},
        {"THREAD_M": 1, "THREAD_N": 2, "PARTS": 1},
    ],
    "matmul/tensor_cores": [{"TILE_M": 32, "TILE_N": 32, "TILE_K": 16, "WARP_M": 16, "WARP_N": 16}],
    "transpose/1_naive": SQUARE,
    "transpose/1_naive_write_coalesced": SQUARE,
    "transpose/2_shared": SQUARE,
    "transpose/3_padded": SQUARE,
    "transpose/3_swizzled": [{"TILE": tile} for tile in (8, 1, 2, 16, 32)],
    "transpose/4_unrolled": [
        {"TILE": tile, "ROWS": rows} for tile, rows in ((16, 4), (32, 1), (8, 8), (12, 4))
    ],
    "transpose/5_vectorised": [{"TILE": tile} for tile in (16, 4, 64)],
    "transpose/6_any_size": [{"TILE": tile} for tile in (16, 32, 64, 128)],
}


def small(name):
    """The first parameters of a kernel, or those of the line `// small: THREADS=64` in its source."""
    if name in PARAMETERS:
        return PARAMETERS[name][0]
    said = re.search(r"^// small: (.+)$", kernels.source(name), re.M)
    return {macro: int(value) for macro, value in re.findall(r"(\w+)=(\d+)", said[1])} if said else {}
