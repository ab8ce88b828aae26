"""Limits of the rungs on an H200: by hand, and never below what was measured."""

import math

import pandas as pd
import pytest

from labkit.kernels.matmul.family import Matmul
from labkit.ladder import running
from labkit.model import limits
from labkit.model.roofline import DRAM, L1_BYTES, L1_REQUESTS, SHARED
from labkit.widgets.roofline_view import DTYPES, SIZES

PROBLEMS = [Matmul(n, n, n, dtype=dtype) for dtype in DTYPES for n in SIZES]
CLOCK = 1.98e9
UNPREDICTED = {"stream_k"}  # a block goes on adding if it arrives last, which no count foresees
MODEL_ERROR = 1.02  # by which a rung may exceed its lowest limit


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_nothing_measured_is_above_a_limit(problem):
    table = limits.bounds(problem)
    if problem.dtype == "float32":
        assert set(table.index) == set(running.rungs("matmul")) - {"tensor_cores"} - UNPREDICTED
    assert not table.isna().any(axis=None)
    for name in limits.NAMES:
        assert (table.measured < MODEL_ERROR * table[name]).all(), name
    assert (table.low < table.predicted).all() and (table.predicted < table.high).all()


@pytest.mark.parametrize("n", [1024, 2048, 4096, 8192])
def test_predictions_are_near_what_was_recorded(n):
    table = limits.bounds(Matmul(n, n, n))
    off = (table.predicted / table.measured).map(lambda ratio: abs(math.log(ratio)))
    assert off.median() < math.log(1.25)
    assert ((table.low < table.measured) & (table.measured < table.high)).mean() >= 0.5


def test_naive_by_hand():
    """A warp takes 2 requests per step of k, of one line each: a clock of its SM's L1 cache."""
    n = 4096
    table = limits.bounds(Matmul(n, n, n), "naive", "naive_uncoalesced")
    clocks = n**3 / 32 / 132
    assert table["L1 requests"]["naive"] == pytest.approx(2e-12 * n**3 / (2 * clocks / CLOCK), rel=0.15)
    # a load of A is one line; one of B is 32 lines
    assert table["L1 requests"]["naive_uncoalesced"] == pytest.approx(
        2e-12 * n**3 / (33 * clocks / CLOCK), rel=0.03
    )
    assert list(limits.lowest(table)) == ["L1 requests", "L1 requests"]
    assert all(math.isinf(rate) for rate in table["FP64"])


def test_doubles_keep_their_own_units_busy():
    table = limits.bounds(Matmul(1024, 1024, 1024, dtype="float64"))
    assert list(table.index) == ["naive", "tiled"] and (table["FP64"] < 60).all()


@pytest.mark.parametrize("level", [L1_BYTES, L1_REQUESTS, SHARED, DRAM])
def test_intensities_of_each_level(level):
    found = limits.intensity_at(level, Matmul(1024, 1024, 1024))
    assert all(0 < each < math.inf for each in found.values())
    assert ("naive" in found) == (level != SHARED) and "tuned" in found


def test_dram_bytes_are_at_least_those_that_must_come():
    """The inputs come once; C may stay in the L2."""
    for problem in PROBLEMS:
        most = 1.01 * problem.flops / (problem.bytes * 2 / 3)
        assert max(limits.intensity_at(DRAM, problem).values()) < most


@pytest.mark.parametrize("blocks, share", [(1, 1 / 132), (132, 1), (133, 133 / 264), (512, 512 / 528)])
def test_share_that_blocks_leave(blocks, share):
    assert limits.fill_share(blocks, 132) == pytest.approx(share)


def test_without_times_it_says_so():
    with pytest.raises(ValueError, match="no time of a rung on matmul M=7 N=7 K=7 float32 is recorded"):
        limits.bounds(Matmul(7, 7, 7))
    with pytest.raises(ValueError, match="no time of mine on"):
        limits.bounds(PROBLEMS[0], "mine")


def test_the_table_has_what_the_explorer_offers():
    table = pd.read_csv(limits.MODEL)
    assert not table.duplicated(["kernel", "dtype", "n"]).any()
    for problem in PROBLEMS:
        rows = table[(table.dtype == problem.dtype) & (table.n == problem.N)]
        timed = set(limits.times_of(problem).kernel) & set(running.rungs("matmul"))
        assert set(rows.kernel) == timed - UNPREDICTED
