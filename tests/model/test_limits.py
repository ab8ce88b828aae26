"""Bounds of the rungs on the recorded H200: by hand, and never below what was measured."""

import math

import pandas as pd
import pytest

from labkit.kernels.matmul.family import Matmul
from labkit.ladder import running
from labkit.model import limits

CUBES = [Matmul(n, n, n) for n in (256, 512, 1024, 2048, 4096, 8192)]
LIMITS = ["peak", "L1 bytes", "instructions", "blocks"]


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


@pytest.mark.parametrize("problem", CUBES, ids=str)
def test_nothing_measured_is_above_a_bound(problem):
    table = limits.bounds(problem)
    assert set(table.index) == set(running.rungs("matmul")) - {"tensor_cores"}
    assert not table.isna().any(axis=None)
    for limit in LIMITS:
        assert (table.measured < table[limit]).all()


def test_naive_by_hand():
    """A warp's step of k asks for five sectors; N = 1024: 32 x 32 blocks of 32 x 32 threads on 132 SMs."""
    naive = limits.bounds(Matmul(1024, 1024, 1024), "naive").loc["naive"]
    peak = 2 * 132 * 128 * 1.98 / 1000
    intensity = 2 * 32 * 1024 / (32 * (5 * 1024 + 4))  # and four sectors to store
    assert naive.peak == pytest.approx(peak, rel=1e-4)
    assert naive["L1 bytes"] == pytest.approx(intensity * 128 * 132 * 1.98 / 1000, rel=1e-4)
    assert naive.instructions == pytest.approx(2**25 / 154_828_800 * peak, rel=1e-4)
    assert naive.blocks == pytest.approx(peak * 1024 / (132 * 8), rel=1e-4)


@pytest.mark.parametrize("blocks, share", [(1, 1 / 132), (132, 1), (133, 133 / 264), (512, 512 / 528)])
def test_share_that_blocks_leave(blocks, share):
    assert limits.fill_share(blocks, 132) == pytest.approx(share)


def test_other_dtypes_have_their_own_peak_and_bytes():
    problem = Matmul(1024, 1024, 1024, dtype="float64")
    table = limits.bounds(problem, "naive", "tiled")
    assert list(table.index) == ["naive", "tiled"] and table.instructions.isna().all()
    assert table.peak.tolist() == [pytest.approx(30.7183)] * 2
    doubles = 2 * 32 * 1024 / (32 * (9 * 1024 + 8))  # eight sectors of B, one of A; eight to store
    assert table["L1 bytes"]["naive"] == pytest.approx(doubles * 33.4541, rel=1e-4)
    integers = limits.bounds(Matmul(1024, 1024, 1024, dtype="int32"), "naive").loc["naive"]
    floats = limits.bounds(Matmul(1024, 1024, 1024), "naive").loc["naive"]
    assert integers.peak == pytest.approx(33.3541) and integers["L1 bytes"] == floats["L1 bytes"]


def test_without_times_it_says_so():
    with pytest.raises(ValueError, match="no time of a rung on matmul M=7 N=7 K=7 float32 is recorded"):
        limits.bounds(Matmul(7, 7, 7))
    with pytest.raises(ValueError, match="no time of mine on"):
        limits.bounds(CUBES[0], "mine")


def test_shares_are_those_of_few_instructions():
    shares = limits.multiply_add_shares()
    assert isinstance(shares, pd.Series)
    assert 0.2 < shares["naive"] < shares["tiled"] < shares["register_tile"] < shares["tuned"] < 1
    assert math.isnan(limits.multiply_add_shares("int32").get("naive", math.nan))
