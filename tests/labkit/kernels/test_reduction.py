"""The sum of an array: exact for any length and dtype, and as costly as each rung says."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_kernels import small

import labkit
import simt
from labkit import cpu, kernels, ladder, records
from labkit.kernels.reduction.family import Reduction
from labkit.model.roofline import count_sectors, intensities
from simt.common.compare import Mismatch
from simt.common.errors import LaunchError

ON_GPU, ON_CPU = kernels.names("reduction"), kernels.names("reduction", "cpu")
DTYPES = {"float32": "float", "float64": "double", "int32": "int"}
LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def run(name, case, **parameters):
    """Output of one launch, and what was in x."""
    x, out, n = case.args(np)
    kernel = kernels.load(name, DTYPE=case.ctype, **parameters)
    kernel(*kernels.launch(name, case, **parameters), (x, out, n))
    return out, x


def test_the_ladder():
    assert list(ladder.rungs("reduction")) == [
        *("atomic", "tree_divergent", "tree", "first_add", "warp_shuffle", "grid_stride", "last_block")
    ]
    assert len(ON_CPU) == 3


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(ON_GPU),
    dtype=st.sampled_from(sorted(DTYPES)),
    n=st.integers(1, 6000),
    seed=st.integers(0, 99),
)
def test_any_length_equals_numpys_sum(name, dtype, n, seed):
    out, x = run(name, Reduction(n, dtype, seed), **small(name))
    assert out[0] == x.sum(dtype=np.int64 if dtype == "int32" else np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ON_CPU)
def test_c_kernels_equal_numpys_sum(name, dtype):
    for n in (1, 2, 15, 16, 17, 127, 128, 129, 1000, 4097):
        x, out = Reduction(n, dtype, seed=n).inputs()
        kernels.load(name, DTYPE=DTYPES[dtype])(x, out)
        assert out[0] == x.sum(dtype=np.int64 if dtype == "int32" else np.float64), n


@pytest.mark.parametrize("name", ON_GPU)
def test_a_launch_adds_to_what_out_holds(name):
    """And a second launch does the same: 7_last_block counts its blocks from 0 again."""
    x, out, n = Reduction(777).args(np)
    kernel = kernels.load(name, **small(name))
    for _ in range(3):
        kernel(*kernels.launch(name, Reduction(777), **small(name)), (x, out, n))
    assert out[0] == 3 * x.sum(dtype=np.float64)


@pytest.mark.parametrize("change", [0.25, -0.25])
def test_one_wrong_element_shows(change):
    case = Reduction(100_000)
    right = case.reference()
    case.verify(right.copy())
    with pytest.raises(Mismatch, match=r"out\[0\] is"):
        case.verify(right + np.float32(change))


def test_refusals():
    with pytest.raises(ValueError, match="n=0 is not a size"):
        Reduction(0)
    with pytest.raises(ValueError, match="int32 ends at"):
        Reduction(2**29, "int32")
    with pytest.raises(LaunchError, match="no ROWS"):
        Reduction(100).launch(16, rows=4)


def profile(name, case, **parameters):
    kernel = kernels.load(name, DTYPE=case.ctype, **parameters)
    return kernel.profile(*kernels.launch(name, case, **parameters), case.args(np))


def test_vectors_take_a_quarter_of_the_requests_and_the_same_sectors():
    """4096 floats: 512 sectors of 32 bytes, in 128 requests of one float per lane, or 32 of four."""
    case = Reduction(4096)
    scalar = profile("reduction/4_first_add", case, THREADS=64).metrics
    vectors = profile("reduction/6_grid_stride", case, THREADS=64, PER_THREAD=64).metrics
    assert scalar[LOADS] == vectors[LOADS] == 4096 * 4 // 32
    assert (scalar[REQUESTS], vectors[REQUESTS]) == (4096 // 32, 4096 // 32 // 4)


def test_the_divergent_tree_parts_its_warps_in_each_round():
    """16 blocks of 8 warps: with neighbours 1 to 16 apart all warps part; above, some do in each round."""
    case = Reduction(4096)
    divergent = profile("reduction/2_tree_divergent", case, THREADS=256).ptx_lines
    straight = profile("reduction/3_tree", case, THREADS=256).ptx_lines
    assert divergent.divergent.sum() >= 16 * 8 * 5
    assert (
        straight.divergent.sum() <= 16 * 6
    )  # one warp per block, in the rounds below 32 threads and the last
    assert straight.instructions.sum() < divergent.instructions.sum()


def test_checks_name_a_missing_barrier():
    source = kernels.source("reduction/3_tree").replace(
        "        __syncthreads();  // this round's sums are there before the next round adds them\n", ""
    )
    module = simt.RawModule(code=source, options=("--std=c++17", "-DTHREADS=128"))
    findings = module.get_function("reduction").check((2,), (128,), Reduction(256).args(np))
    assert any(finding.tool == "racecheck" for finding in findings)


def test_the_check_of_labkit_takes_the_family():
    verdict = labkit.kernels.verify.check(kernels.load("reduction/1_atomic", THREADS=16), "reduction")
    assert verdict.ok, verdict


def test_bench_times_the_ladder_in_the_simulator():
    rows = ladder.time_rung("tree", Reduction(1000), THREADS=64)
    assert set(rows.problem) == {"reduction"} and set(rows.n) == {1000}
    assert rows[rows.quantity == "time"].value.gt(0).all()
    places = {str(case) for case in ladder.cases(Reduction(1000))}
    assert len(places) == len(ON_GPU) + 1


def test_roofline_and_curves_draw_it():
    counts = count_sectors(["tree", "grid_stride"], Reduction(2**16))
    found = intensities(counts)
    assert found["grid_stride"] == pytest.approx(0.25, rel=0.01)  # one addition per four bytes
    runs = records.recorded("h200")
    times = records.frame_of(
        ladder.case(rung, Reduction(2**16)).place()
        | {"quantity": "time", "unit": "ms", "value": value, "machine": "NVIDIA H200", "source": "test"}
        for rung, value in (("tree", 0.02), ("grid_stride", 0.01))
    )
    assert "grid_stride" in labkit.roofline(times, counts, runs).alt
    drawn = labkit.plots.bandwidth_by_size(times)
    (axes,) = drawn.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["tree", "grid_stride"]


def test_cpu_measures_it():
    timing = cpu.measure(kernels.load("reduction/cpu_3_simd"), Reduction(10_000), seconds=0.01)
    assert timing.median > 0


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 1000, 2**20 + 3])
def test_every_rung_and_cub_on_a_gpu(gpu, n, dtype):
    case = Reduction(n, dtype)
    found = dict(ladder.measure(ladder.cases(case)))
    assert not [wrong for wrong in found.values() if isinstance(wrong, Exception)]
