"""Wavefronts of shared memory: the rule, and the code that counts them, against an H200's figures."""

import csv
from pathlib import Path

import numpy as np
import pytest

import simt
from simt.counters.wavefronts import wavefronts

RECORDS = Path(__file__).parents[2] / "data" / "h200" / "machine_code" / "shared_wavefronts.csv"
ROWS = [row for row in csv.DictReader(RECORDS.open()) if row["op"] in ("ld", "st")]
TYPES = {4: "float", 8: "float2", 16: "float4"}
COUNTED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"

# Each lane takes the place of its access from a table, as the recorded kernels do.
SOURCE = """
__device__ void put(float* to, float v) { *to = v; }
__device__ void put(float2* to, float v) { *to = make_float2(v, v); }
__device__ void put(float4* to, float v) { *to = make_float4(v, v, v, v); }
__device__ float of(float v) { return v; }
__device__ float of(float2 v) { return v.x + v.y; }
__device__ float of(float4 v) { return v.x + v.y + v.z + v.w; }
extern "C" __global__ void load(float* out, const int* places, unsigned mask) {
    __shared__ TYPE s[16384 / sizeof(TYPE)];
    if (mask >> threadIdx.x & 1) out[threadIdx.x] = of(s[places[threadIdx.x]]);
}
extern "C" __global__ void store(float* out, const int* places, unsigned mask) {
    __shared__ TYPE s[16384 / sizeof(TYPE)];
    if (mask >> threadIdx.x & 1) put(&s[places[threadIdx.x]], out[threadIdx.x]);
    __syncwarp();
    if (places[0] < 0) out[threadIdx.x] = of(s[threadIdx.x]);
}
"""


def offsets(row):
    return [int(place) for place in row["offsets"].split()]


def test_the_rule_fits_every_recorded_access():
    assert len(ROWS) > 1000
    for row in ROWS:
        mask = int(row["mask"], 16)
        taking_part = [at if mask >> lane & 1 else None for lane, at in enumerate(offsets(row))]
        counted = wavefronts(taking_part, int(row["width"]), row["op"] == "ld")
        assert counted == int(row["wavefronts"]), (row["op"], row["width"], row["pattern"], row["mask"])


@pytest.mark.parametrize("op", ["ld", "st"])
@pytest.mark.parametrize("width", TYPES)
def test_the_emitted_code_counts_the_same(op, width):
    name = {"ld": "load", "st": "store"}[op]
    kernel = simt.RawModule(code=SOURCE, options=[f"-DTYPE={TYPES[width]}"]).get_function(name)
    rows = [row for row in ROWS if row["op"] == op and int(row["width"]) == width][::17]
    assert any(row["mask"] != "ffffffff" for row in rows)
    for row in rows:
        places = np.array(offsets(row), np.int32) // width
        args = np.zeros(32, np.float32), places, np.uint32(int(row["mask"], 16))
        found = kernel.profile(1, 32, args).metrics[COUNTED.format(op)]
        assert found == int(row["wavefronts"]), (row["pattern"], row["mask"])
