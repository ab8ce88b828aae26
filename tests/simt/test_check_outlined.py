"""A check of a kernel so long that instructions which are alike share code."""

import numpy as np
import pytest

import simt

ROWS = """
extern "C" __global__ void f(float* out) {
    __shared__ struct { unsigned short halves[4]; float rows[256][33], sums[8]; } s;
    int t = threadIdx.x;
    for (int k = 0; k < 33; k++) s.rows[t][k] = t + k;
    s.halves[t % 4] = 0;
    __syncthreads();
    float sum = 0;
    #pragma unroll
    for (int k = 0; k < 33; k++) sum += s.rows[t][k] * k;  // LOADS
    if (t % 32 == 31) s.sums[t / 32] = sum;  // beside what the last thread has read
    WRITE
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 200; k++) sum = sum * (k + 1) + s.sums[k % 8];
    out[t] = sum;
}
"""


def found(write):
    f = simt.RawModule(code=ROWS.replace("WRITE", write)).get_function("f")
    assert len(f.parsed.code) > 400
    return f.check((1,), (256,), (np.zeros(256, np.float32),))


def test_loads_that_share_code_are_looked_at_where_they_go():
    assert found("") == []


@pytest.mark.parametrize("column", [0, 1, 17, 31, 32])
def test_a_race_with_any_of_the_loads_that_share_code_is_found(column):
    kinds = {each.kind for each in found(f"if (t == 0) s.rows[200][{column}] = 1;")}
    assert kinds & {"read after write", "write after read"}
