"""Loops with several ways back to their start: lanes that come by different ways go on together."""

import numpy as np
import pytest

import simt

HEAD = 'extern "C" __global__ void f(int *next, const int *in, int *out, int n) {\n'
QUEUE = """    __shared__ int mine;
    int t = threadIdx.x;
    for (;;) {
        if (t == 0) mine = atomicAdd(next, 1);
        __syncthreads();
        int first = mine * blockDim.x, at = first + t;
        __syncthreads();
        if (first >= n) break;
        if (at < n) out[at] += in[at] + 1;
    }
}"""
CONTINUED = """    int t = threadIdx.x;
    for (int k = 0; k < n; k++) {
        int mine = __shfl_sync(~0u, in[k * 32 + t], 31 - t);
        if (mine % 3 == 0) continue;
        out[k * 32 + t] = mine;
        if (mine % 3 == 1) continue;
        out[k * 32 + t] = -mine;
    }
}"""


def function(body):
    return simt.RawModule(code=HEAD + body).get_function("f")


@pytest.mark.parametrize("run", ["__call__", "profile", "check"])
@pytest.mark.parametrize("n", [1, 64, 100, 257])
def test_a_queue_of_blocks_of_work(run, n):
    given = np.arange(n, dtype=np.int32)
    next_, out = np.zeros(1, np.int32), np.zeros(n, np.int32)
    told = getattr(function(QUEUE), run)((3,), (64,), (next_, given, out, np.int32(n)))
    np.testing.assert_array_equal(out, given + 1)
    assert next_[0] == -(-n // 64) + 3
    assert run != "check" or told == []


@pytest.mark.parametrize("run", ["__call__", "profile", "check"])
def test_lanes_that_continue_early_shuffle_with_the_others(run):
    n = 20
    given = np.random.default_rng(3).integers(0, 1000, (n, 32), dtype=np.int32)
    out = np.zeros((n, 32), np.int32)
    told = getattr(function(CONTINUED), run)((1,), (32,), (np.zeros(1, np.int32), given, out, np.int32(n)))
    mine = given[:, ::-1]
    np.testing.assert_array_equal(out, np.select([mine % 3 == 0, mine % 3 == 1], [0, mine], -mine))
    assert run != "check" or told == []
