"""`labkit.matmul` against NumPy in float64, and the rule that chooses its kernel against CUDA's limits."""

import gc
import weakref
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import labkit
from labkit import kernels
from labkit.kernels.launch_line import launch_of
from labkit.kernels.matmul import rule
from labkit.kernels.matmul.family import Matmul
from simt.common.limits import MAX_GRID, MAX_STATIC_SHARED_BYTES, MAX_THREADS

INT_MAX = 2**31 - 1
SIZES = st.integers(0, 20).flatmap(lambda digits: st.integers(2**digits // 2 + 1, 2**digits))
H200 = 132  # multiprocessors
REGISTERS = 65536  # of an SM


@pytest.fixture
def simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


class TestRule:
    @settings(max_examples=300, deadline=None)
    @given(m=SIZES, n=SIZES, k=SIZES, multiprocessors=st.integers(1, 200), clusters=st.booleans())
    def test_any_shape_gets_a_launch_that_covers_c_or_shares_all_steps(
        self, m, n, k, multiprocessors, clusters
    ):
        assume(max(m * n, n * k, m * k) <= INT_MAX)
        for _, chosen in rule.candidates(rule.Shape(m, n, k, multiprocessors), rule.COSTS, clusters):
            macros = dict(chosen.macros)
            assert set(macros) <= set(kernels.parameters(chosen.kernel))
            assert macros.get("CLUSTER", 1) == 1 or clusters
            assert (
                all(1 <= blocks <= most for blocks, most in zip(chosen.grid, MAX_GRID, strict=True))
                and 32 <= prod(chosen.block) <= MAX_THREADS
            )
            if chosen.kernel != "matmul/11_stream_k":
                lines = kernels.source_with_includes(chosen.kernel)
                assert (chosen.grid, chosen.block) == launch_of(lines, Matmul(m, n, k), **macros)
            else:  # its workspace has BLOCKS places, and a block without a step would be idle
                tiles = -(-m // macros["TILE_M"]) * -(-n // macros["TILE_N"])
                assert chosen.grid[0] <= min(macros["BLOCKS"], tiles * -(-k // macros["TILE_K"]))

    @pytest.mark.parametrize("tile", rule.COSTS.tiles, ids=str)
    @pytest.mark.parametrize("kernel", ["10_any_tile", "11_stream_k"])
    def test_every_tile_compiles_for_an_h200_without_spills(self, simulator, tile, kernel):
        macros = dict(zip(rule.MACROS, tile, strict=True))
        needs = kernels.load(f"matmul/{kernel}", **macros).resources_for("sm_90")
        threads = tile[0] * tile[1] // (tile[3] * tile[4])
        assert needs.spill_store_bytes == 0
        assert needs.shared_bytes <= MAX_STATIC_SHARED_BYTES
        assert needs.registers * threads * macros["PER_SM"] <= REGISTERS

    @pytest.mark.parametrize(
        ("kernel", "form"),
        [
            *(("12_few_rows", form) for form in rule.FORMS_OF_ROWS),
            *(("13_few_columns", form) for form in rule.FORMS_OF_COLUMNS),
        ],
    )
    def test_every_form_compiles_for_an_h200_without_spills(self, simulator, kernel, form):
        """Two blocks of 256 threads at least on an SM, as PER_SM says."""
        macros = dict(zip(rule.OF_PARTS, (*form, 8, 1), strict=True))
        needs = kernels.load(f"matmul/{kernel}", **macros).resources_for("sm_90")
        assert needs.spill_store_bytes == 0
        assert needs.shared_bytes <= MAX_STATIC_SHARED_BYTES
        assert needs.registers * 256 * 2 <= REGISTERS

    def test_the_estimate_of_a_large_product_is_near_the_rate_of_the_best_rung(self):
        """data/benchmark.csv: 52 TFLOP/s for 8192^3 by stream_k."""
        estimate, chosen = min(rule.candidates(rule.Shape(8192, 8192, 8192, H200), rule.COSTS))
        assert chosen.kernel == "matmul/11_stream_k"
        assert 2 * 8192**3 / estimate / 1e6 == pytest.approx(52, rel=0.1)

    @pytest.mark.parametrize(
        ("shape", "kernel"),
        [
            ((1, 4096, 4096), "12_few_rows"),  # a vector times a matrix
            ((4096, 1, 4096), "13_few_columns"),  # a matrix times a vector
            ((4096, 4096, 4), "12_few_rows"),  # C is written, and there is little else to do
            ((4096, 4096, 4096), "11_stream_k"),
            ((100, 100, 100), "12_few_rows"),  # tiles would be few
        ],
    )
    def test_shapes_get_the_kernel_that_is_made_for_them(self, shape, kernel):
        assert rule.choose(*shape, H200).kernel == f"matmul/{kernel}"

    def test_small_matrices_get_small_tiles_and_large_ones_large(self):
        sides = [dict(rule.choose(n, n, n, H200).macros)["TILE_M"] for n in (512, 1024, 4096)]
        assert sides == sorted(sides)
        assert sides[0] == 32
        assert sides[-1] == 128

    def test_few_columns_and_a_long_k_are_shared_by_a_cluster_where_there_are_any(self):
        macros = dict(rule.choose(1, 256, 16384, H200).macros)
        assert macros["CLUSTER"] == 8
        assert dict(rule.choose(1, 256, 16384, H200, clusters=False).macros).get("CLUSTER", 1) == 1

    def test_a_grid_taller_than_cuda_allows_is_avoided(self):
        for _, chosen in rule.candidates(rule.Shape(2**22, 64, 64, H200), rule.COSTS):
            assert chosen.grid[1] <= MAX_GRID[1]


def matrices(m, n, k):
    rng = np.random.default_rng(m + n + k)
    return (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))


@pytest.mark.usefixtures("simulator")
class TestInTheSimulator:
    @pytest.mark.parametrize(
        ("m", "n", "k"), [(1, 1, 1), (33, 45, 70), (64, 64, 500), (3, 200, 300), (70, 3, 900), (5, 290, 2)]
    )
    @pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (3, -2)])
    def test_equals_numpy(self, m, n, k, alpha, beta):
        a, b, c = matrices(m, n, k)
        out = c.copy() if beta else np.full_like(c, np.nan)
        assert labkit.matmul(a, b, out, alpha, beta) is out
        exact = alpha * (a.astype(float) @ b.astype(float)) + beta * c.astype(float)
        gamma = (k + 2) * 2.0**-24 / (1 - (k + 2) * 2.0**-24)  # as in Matmul._tolerance
        bound = 2 * gamma * (abs(alpha) * (abs(a).astype(float) @ abs(b)) + abs(beta) * abs(c))
        assert (abs(out - exact) <= bound).all()

    def test_makes_a_result_where_there_is_none(self):
        a, b, _ = matrices(5, 6, 7)
        np.testing.assert_allclose(labkit.matmul(a, b), a @ b, rtol=1e-5, atol=1e-6)

    def test_keeps_no_matrix_alive(self):
        a, b, _ = matrices(11, 12, 13)
        seen = weakref.ref(a)
        labkit.matmul(a, b)
        del a
        gc.collect()
        assert seen() is None

    def test_gives_the_same_bits_again(self):
        """64 x 64 x 4000: blocks share each tile, and arrive in any order."""
        a, b, _ = matrices(64, 64, 4000)
        np.testing.assert_array_equal(labkit.matmul(a, b), labkit.matmul(a, b))

    def test_takes_rows_that_do_not_begin_at_16_bytes(self):
        a, b, _ = matrices(9, 8, 7)
        shifted = np.empty(57, np.float32)[1:].reshape(7, 8)
        shifted[...] = b
        np.testing.assert_array_equal(labkit.matmul(a, shifted), labkit.matmul(a, b))

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"A": [[1.0]]}, TypeError, r"A is a builtins.list; this device takes numpy arrays"),
            ({"B": np.ones(4, np.float32)}, ValueError, r"B has the shape \(4,\); a matrix has two"),
            ({"A": np.ones((3, 4))}, ValueError, r'A has the dtype float64; pass A.astype\("float32"\)'),
            ({"B": np.ones((5, 4), np.float32).T}, ValueError, r"B is not contiguous. Pass labkit.xp"),
            (
                {"B": np.ones((5, 4), np.float32)},
                ValueError,
                r"A \(3, 4\) has 4 columns and B \(5, 4\) has 5",
            ),
            (
                {"out": np.ones((5, 3), np.float32)},
                ValueError,
                r"out has the shape \(5, 3\); the product has",
            ),
            ({"beta": 2}, ValueError, r"beta=2 scales the old values of out, and there is no out"),
            ({"A": np.ones((0, 4), np.float32)}, ValueError, r"M=0"),
            ({"alpha": 1e39}, ValueError, r"alpha=1e\+39 does not fit float32"),
        ],
    )
    def test_tells_what_does_not_fit(self, change, error, message):
        given = {"A": np.ones((3, 4), np.float32), "B": np.ones((4, 5), np.float32)} | change
        with pytest.raises(error, match=message):
            labkit.matmul(**given)

    def test_refuses_an_out_that_it_reads(self):
        a = np.ones((4, 4), np.float32)
        with pytest.raises(ValueError, match="out overlaps A or B"):
            labkit.matmul(a, np.ones_like(a), out=a)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        *((1, 1, 1), (257, 129, 33), (1000, 1001, 999), (64, 64, 65536), (4100, 515, 300), (2048, 2048, 64)),
        *((1, 4099, 5000), (3001, 1, 7777), (5, 6, 16384), (2000, 7, 300), (7, 3000, 513), (3000, 5000, 3)),
    ],
)
@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (3, -2)])
def test_products_on_a_gpu(m, n, k, alpha, beta):
    import cupy

    case = Matmul(m, n, k, alpha=alpha, beta=beta)
    a, b, c = map(cupy.asarray, case.inputs())
    first, again = (labkit.matmul(a, b, c.copy(), alpha, beta).get() for _ in range(2))
    case.verify(first)
    np.testing.assert_array_equal(first, again)
