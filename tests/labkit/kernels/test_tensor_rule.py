"""The rule that chooses a tile, beside times that an H200 took for each tile."""

import numpy as np
import pytest

from labkit import kernels
from labkit.kernels.tensor_matmul import rule
from labkit.kernels.tensor_matmul.family import TensorMatmul

# Microseconds of 8_tma_store in half, 2026-11-24, CUDA 13.0: the code of 9_stream_k where nothing is split.
# By shape: tiles of 128 x 256, 128 x 128, 64 x 128 and 64 x 64.
RECORDED = {
    (512, 512, 512): (8.8, 6.0, 4.6, 4.3),
    (1024, 1024, 1024): (13.3, 8.5, 6.5, 9.3),
    (2048, 2048, 2048): (27.1, 26.9, 34.4, 62.2),
    (8192, 1024, 8192): (216.2, 213.7, 259.5, 533.8),
    (16384, 4096, 1024): (237.7, 229.6, 266.1, 546.7),
    (64, 8192, 8192): (57.9, 64.2, 42.0, 39.9),  # in clusters of one block; 64 x 256 instead of 128 x 256
}
MEASURED = [(128, 256), (128, 128), (64, 128), (64, 64)]


@pytest.mark.parametrize("sizes", RECORDED)
def test_the_choice_is_the_fastest_tile_or_nearly(sizes):
    found = rule.tile_for(TensorMatmul(*sizes))
    times = dict(zip(MEASURED, RECORDED[sizes], strict=True))
    assert times[found["TILE_M"], found["TILE_N"]] < 1.1 * min(times.values())


@pytest.mark.parametrize("dtype", TensorMatmul.dtypes)
def test_estimates_grow_with_each_size_and_not_with_bits(dtype):
    for tile in rule.TILES:
        for side in range(3):
            sizes = [[1000, 1000, 1000], [1000, 1000, 1000]]
            sizes[1][side] = 9000
            small, large = (rule.estimate(tile, TensorMatmul(*each, dtype), 132) for each in sizes)
            assert small < large
    bits = TensorMatmul(
        2048, 2048, 2048 // np.dtype(TensorMatmul(1, 1, 1, dtype).array_dtypes()["A"]).itemsize, dtype
    )
    assert rule.tile_for(bits) == rule.tile_for(TensorMatmul(2048, 2048, 1024))


@pytest.mark.parametrize("tile", rule.TILES, ids=lambda tile: f"{tile.rows}x{tile.columns}")
def test_each_tile_fits_a_multiprocessor_and_is_right(tile, monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    monkeypatch.setattr(rule, "TILES", (tile,))
    case = TensorMatmul(150, 144, 112)
    macros = rule.tile_for(case, 4)
    arguments = case.args(np)
    grid, block, args, shared_bytes = kernels.whole_launch(rule.RUNG, case, arguments, **macros)
    kernels.load(rule.RUNG, DTYPE=case.ctype, **macros)(grid, block, args, shared_mem=shared_bytes)
    case.verify(case.output(arguments))
