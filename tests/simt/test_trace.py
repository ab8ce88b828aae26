"""What a warp runs, step by step: lanes that part and meet again, against a profile's counts and by hand."""

from itertools import groupby

import numpy as np
import pytest

import simt
from simt.trace import trace

BRANCH = """
extern "C" __global__ void f(float* out, int n)
{
    int x = threadIdx.x;
    float v = out[x];
    if (x < n)
        v = sqrtf(v) / 3;
    else
        v = 1 / (v * v + 2);
    out[x] = v;
}"""
ROUNDS = """
extern "C" __global__ void f(float* out, int n)
{
    float v = out[threadIdx.x];
    #pragma unroll 1
    for (int k = 0; k < threadIdx.x % n; ++k)
        v = v * v / 2;
    out[threadIdx.x] = v;
}"""
BARRIER = """
extern "C" __global__ void f(float* out, int n)
{
    __shared__ float s[64];
    s[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < n)
        out[threadIdx.x] = sqrtf(s[63 - threadIdx.x]);
}"""


def kernel(source):
    return simt.RawModule(code=source).get_function("f")


def steps_at(steps, warp, line):
    """Lanes of a warp's steps that have an instruction of a source line, one text each."""
    return [
        "".join("#" if active else "." for active in step.lanes)
        for step in steps
        if step.warp == warp and any(instruction.line == line for instruction in step.instructions)
    ]


def run(source, n, threads=64):
    return trace(kernel(source), 1, threads, (np.ones(64, np.float32), np.int32(n)))


def test_both_sides_of_a_branch_run_one_after_the_other_and_the_lanes_meet_again():
    steps = run(BRANCH, 5)
    assert steps_at(steps, 0, 7) == ["#####" + 27 * "."]
    assert steps_at(steps, 0, 9) == ["....." + 27 * "#"]
    assert steps_at(steps, 0, 10) == [32 * "#"]
    assert steps_at(steps, 1, 7) == [] and steps_at(steps, 1, 9) == [32 * "#"]


def test_a_loop_goes_on_until_the_last_lane_is_done():
    rounds = steps_at(run(ROUNDS, 4), 0, 7)
    assert rounds == [8 * ".###", 8 * "..##", 8 * "...#"]


def test_a_warp_that_is_not_full():
    assert steps_at(run(BRANCH, 5, threads=40), 1, 9) == [8 * "#" + 24 * "."]


def test_warps_take_turns_at_a_barrier():
    steps = run(BARRIER, 33)
    assert [warp for warp, _ in groupby(step.warp for step in steps)] == [0, 1, 0, 1]
    assert steps_at(steps, 1, 8) == ["#" + 31 * "."]


@pytest.mark.parametrize("source", [BRANCH, ROUNDS, BARRIER])
@pytest.mark.parametrize("n", [3, 40])
def test_sums_are_those_of_a_profile(source, n):
    args = np.ones(64, np.float32), np.int32(n)
    counted = kernel(source).profile(1, 64, args).ptx
    steps = trace(kernel(source), 1, 64, args)
    assert sum(len(step.instructions) for step in steps) == counted["instructions"]
    assert sum(len(step.instructions) * step.lanes.sum() for step in steps) == counted["thread_instructions"]


def test_another_block_of_the_grid():
    source = BRANCH.replace("threadIdx.x;", "blockIdx.x * 32 + threadIdx.x;")
    args = np.ones(64, np.float32), np.int32(40)
    assert steps_at(trace(kernel(source), 2, 32, args, number=1), 0, 7) == [8 * "#" + 24 * "."]


def test_a_run_of_too_many_steps_is_refused():
    source = ROUNDS.replace("threadIdx.x % n", "n")
    with pytest.raises(ValueError, match=r"takes 200\d\d steps; choose at most 10000"):
        trace(kernel(source), 1, 32, (np.ones(32, np.float32), np.int32(20_000)))


def test_runs_after_one_another_begin_anew():
    again = kernel(ROUNDS)
    args = np.ones(64, np.float32), np.int32(4)
    first, second = (trace(again, 1, 64, args) for _ in range(2))
    assert [step.instructions for step in first] == [step.instructions for step in second]
