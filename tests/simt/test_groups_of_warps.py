"""Tiles of several warps in cooperative groups, and warps that wait for what others of the block write."""

import numpy as np
import pytest

import simt

BLOCKS, THREADS, TILE = 2, 256, 64
VALUES = np.random.default_rng(3).integers(-100, 100, (BLOCKS, THREADS), dtype=np.int32)


def kernel(body):
    """Return a kernel: `t` is the thread, `v` its value, `s` shared memory, `tile` has 64 threads."""
    source = f"""#include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    #include <cooperative_groups/scan.h>
    namespace cg = cooperative_groups;
    __device__ int acquire(int* p)
    {{ int v; asm volatile("ld.acquire.cta.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }}
    __device__ void release(int* p)
    {{ int v; asm volatile("atom.add.release.cta.s32 %0, [%1], 1;" : "=r"(v) : "l"(p) : "memory"); }}
    extern "C" __global__ void f(const int* in, int* out) {{
        __shared__ int s[{THREADS}], ready;
        __shared__ cg::block_tile_memory<{THREADS}> memory;
        cg::thread_block block = cg::this_thread_block(memory);
        auto tile = cg::tiled_partition<{TILE}>(block);
        int t = threadIdx.x, i = blockIdx.x * {THREADS} + t, v = in[i];
        s[t] = 0; out[i] = 0; ready = 0;
        block.sync();
        {body}
    }}"""
    return simt.RawModule(code=source).get_function("f")


def results(body):
    """Return the values of a plain run; a counted and a checked one give the same, without a finding."""
    f, outs = kernel(body), [np.zeros_like(VALUES) for _ in range(3)]
    f((BLOCKS,), (THREADS,), (VALUES, outs[0]), timeout=10)
    f.profile((BLOCKS,), (THREADS,), (VALUES, outs[1]))
    assert f.check((BLOCKS,), (THREADS,), (VALUES, outs[2]), timeout=10) == []
    np.testing.assert_array_equal(outs[1], outs[0])
    np.testing.assert_array_equal(outs[2], outs[0])
    return outs[0]


def tiles(values, size=TILE):
    return values.reshape(BLOCKS, -1, size)


def each(of_tiles):
    """Repeat a value per tile for each of its threads."""
    return np.repeat(of_tiles, TILE, axis=-1).reshape(BLOCKS, THREADS)


GROUPS = {
    "reduce": ("out[i] = cg::reduce(tile, v, cg::plus<int>());", each(tiles(VALUES).sum(-1, keepdims=True))),
    "scan": ("out[i] = cg::inclusive_scan(tile, v);", tiles(VALUES).cumsum(-1).reshape(BLOCKS, THREADS)),
    "shuffle": ("out[i] = tile.shfl(v, 40) + tile.any(v > 98);", each(
        (tiles(VALUES)[..., 40] + (tiles(VALUES) > 98).any(-1))[..., None])),
    "whole block": (
        "auto all = cg::tiled_partition<256>(block); out[i] = cg::reduce(all, v, cg::less<int>());",
        np.repeat(VALUES.min(-1, keepdims=True), THREADS, axis=-1)),
    "exchange": (
        "for (int r = 0; r < 3; r++) { s[t] = v + r; tile.sync(); out[i] += s[t ^ 63]; tile.sync(); }",
        (3 * tiles(VALUES)[..., ::-1] + 3).reshape(BLOCKS, THREADS)),
    "one tile alone": (
        "if (tile.meta_group_rank() == 1) { s[t] = v; tile.sync(); out[i] = s[t ^ 63]; } block.sync();",
        np.where(np.arange(THREADS) // TILE == 1, tiles(VALUES)[..., ::-1].reshape(BLOCKS, THREADS), 0)),
    "tiles in tiles": (
        """auto big = cg::tiled_partition<128>(block);
        if (t < 64) { s[t] = v; tile.sync(); out[i] = s[t ^ 63]; }
        big.sync(); out[i] += s[t ^ 127];""",
        np.where(np.arange(THREADS) < 64, VALUES[:, np.arange(THREADS) ^ 63], 0)
        + np.where((np.arange(THREADS) ^ 127) < 64, VALUES[:, np.arange(THREADS) ^ 127], 0)),
    "a flag": (
        """if (t / 32 == 5) { s[t] = v; __syncwarp(); if (t % 32 == 0) release(&ready); }
        if (t < 32) { while (!acquire(&ready)) {} out[i] = s[t + 160]; }""",
        np.where(np.arange(THREADS) < 32, np.roll(VALUES, -160, -1), 0)),
    "a volatile flag": (
        """if (t / 32 == 5) { s[t] = v; __threadfence_block(); __syncwarp(); *(volatile int*)&ready = 1; }
        if (t < 32) { while (*(volatile int*)&ready == 0) {} out[i] = s[t + 160]; }""",
        np.where(np.arange(THREADS) < 32, np.roll(VALUES, -160, -1), 0)),
    "a flag that one thread watches": (
        """if (t / 32 == 5) { s[t] = v; __syncwarp(); if (t % 32 == 3) release(&ready); }
        if (t < 32) { if (t == 7) while (!acquire(&ready)) {} __syncwarp(); out[i] = s[t + 160] + t; }""",
        np.where(np.arange(THREADS) < 32, np.roll(VALUES, -160, -1) + np.arange(THREADS), 0)),
}  # fmt: skip


@pytest.mark.parametrize("group", GROUPS)
def test_groups_of_warps_give_what_numpy_gives(group):
    body, expected = GROUPS[group]
    np.testing.assert_array_equal(results(body), expected)


def test_a_tile_without_a_barrier_is_a_race():
    findings = kernel("s[t] = v; out[i] = s[t ^ 63]; tile.sync();").check(
        (BLOCKS,), (THREADS,), (VALUES, np.zeros_like(VALUES))
    )
    assert {finding.tool for finding in findings} == {"racecheck"}


def test_a_warp_that_waits_for_ever_is_stopped():
    with pytest.raises(simt.Timeout, match="was stopped in the loop here"):
        kernel("if (t < 32) tile.sync();")((1,), (THREADS,), (VALUES, VALUES.copy()), timeout=0.3)
