"""Least times of atomic additions: recorded ones are longer, and by little where turns are all there is."""

import csv
from pathlib import Path

import numpy as np
import pytest

import simt
from labkit import ladder
from labkit.course.predictions import UNIFORM_MS
from labkit.kernels.problem import problem
from labkit.model import atomics
from simt.common.occupancy import gpu

DATA = Path(__file__).parents[3] / "data" / "h200" / "timed"
HISTOGRAMS = {
    "histogram_global-2": (65536, 2**22),
    "histogram_global-3": (2**22, 2**24),
    "histogram_global-4": (2048, 2**22),
}


def recorded(launch):
    """The recorded time in seconds."""
    with (DATA / "times.csv").open(encoding="utf-8") as file:
        (row,) = (row for row in csv.reader(file) if row[0] == launch)
    return float(row[7]) * 1e-3


@pytest.mark.parametrize("power", [20, 24, 28])
def test_additions_to_one_address_take_what_was_recorded(power):
    times = ladder.recorded(problem("reduction", 2**power)).set_index("kernel").value
    predicted = atomics.in_global(2**power / 32, 2**power, "float")
    assert 1e-3 * times["atomic"] == pytest.approx(predicted, rel=0.02)


@pytest.mark.parametrize(("launch", "additions"), [("reduce_atomic-3", 2**18), ("reduce_atomic-4", 2**20)])
def test_so_do_additions_of_integers_by_one_lane_per_warp(launch, additions):
    assert recorded(launch) == pytest.approx(atomics.in_global(additions, additions), rel=0.06)


@pytest.mark.parametrize(
    ("launch", "slower"),
    [("histogram_global-2", 1.5), ("histogram_global-3", 1.05), ("histogram_global-4", 6)],
)
def test_histograms_take_longer_than_the_least_time(launch, slower):
    """Where few lines hold all bins, few parts of the L2 cache work: much longer."""
    bins, n = HISTOGRAMS[launch]
    x = np.random.default_rng(0).integers(0, bins, n)
    rows = np.sort((x // 8).reshape(-1, 32), axis=1)
    touched = len(rows) + int((np.diff(rows, axis=1) > 0).sum())
    least = atomics.in_global(touched, int(np.bincount(x).max()))
    assert least < recorded(launch) < slower * least


def test_notebook_12_has_recorded_times():
    assert recorded("histogram_global-4") == pytest.approx(UNIFORM_MS * 1e-3)
    text = (Path(__file__).parents[3] / "notebooks" / "solutions" / "12_reductions.ipynb").read_text(
        encoding="utf-8"
    )
    for launch, (bins, n) in HISTOGRAMS.items():
        assert f'\\"{bins:,} bins\\": (2**{n.bit_length() - 1}, {1e3 * recorded(launch):g})' in text


def test_turns_in_shared_memory_by_hand():
    """2^22 equal elements are as many turns of a clock each, on 132 multiprocessors at 1980 MHz."""
    assert atomics.in_shared(2**22, gpu("H200")) == pytest.approx(2**22 / 132 / 1.98e9, rel=0.01)
    assert atomics.clocks_per_turn("float") == pytest.approx(12, rel=0.02)


def test_the_model_of_time_and_the_least_time_agree_on_shared_memory():
    """The whole launch takes longer than its turns alone, and the model knows them, too."""
    source = """extern "C" __global__ void f(const int* x, int* out, int n) {
        __shared__ int mine[32];
        mine[threadIdx.x % 32] = 0;
        __syncthreads();
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            for (int again = 0; again < 16; ++again) atomicAdd(&mine[x[i] + again], 1);
        __syncthreads();
        if (threadIdx.x < 32) out[32 * blockIdx.x + threadIdx.x] = mine[threadIdx.x];
    }"""
    n = 2**20
    kernel = simt.RawModule(code=source).get_function("f")
    found = kernel.predict(132, 1024, (np.zeros(n, np.int32), np.zeros(32 * 132, np.int32), np.int32(n)))
    least = atomics.in_shared(16 * n, gpu("H200"))
    assert found.limit == "shared memory" and least < found.seconds < 2.5 * least
