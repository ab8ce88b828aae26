"""`labkit.matmul` against NumPy in float64, and the rule that chooses rung and tile against CUDA's limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
from labkit import kernels
from labkit.kernels.matmul import product
from labkit.kernels.matmul.family import Matmul
from simt.common.limits import MAX_GRID, MAX_STATIC_SHARED_BYTES, MAX_THREADS

SIZES = st.integers(1, 2**20)
H200 = 132


@pytest.fixture
def simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


class TestRule:
    @settings(max_examples=300, deadline=None)
    @given(m=SIZES, n=SIZES, k=SIZES, multiprocessors=st.integers(1, 200))
    def test_any_shape_gets_a_launch_that_covers_c_or_shares_all_steps(self, m, n, k, multiprocessors):
        chosen = product.choose(m, n, k, multiprocessors)
        macros = dict(chosen.macros)
        assert set(macros) <= set(kernels.parameters(chosen.kernel))
        assert (
            all(1 <= blocks <= most for blocks, most in zip(chosen.grid, MAX_GRID, strict=True))
            and 32 <= chosen.block[0] <= MAX_THREADS
        )
        tiles = -(-m // macros["TILE_M"]), -(-n // macros["TILE_N"])
        if chosen.kernel == "matmul/10_any_tile":
            assert chosen.grid == (tiles[1], tiles[0], 1)
        else:  # the workspace of stream_k has BLOCKS places, and a block without a step would be idle
            steps = tiles[0] * tiles[1] * -(-k // macros["TILE_K"])
            assert chosen.grid[0] <= min(macros["BLOCKS"], steps)

    @pytest.mark.parametrize("tile", product.TILES, ids=str)
    @pytest.mark.parametrize("rung", ["any_tile", "stream_k"])
    def test_every_tile_compiles_for_an_h200_without_spills(self, simulator, tile, rung):
        number = {"any_tile": 10, "stream_k": 11}[rung]
        macros = dict(zip(product.MACROS, tile.macros, strict=True))
        kernel = kernels.load(f"matmul/{number}_{rung}", **macros)
        needs = kernel.resources_for("sm_90")
        threads = tile.macros[0] * tile.macros[1] // (tile.macros[3] * tile.macros[4])
        assert needs.spill_store_bytes == 0
        assert needs.shared_bytes <= MAX_STATIC_SHARED_BYTES
        assert needs.registers * threads * macros["PER_SM"] <= 65536  # registers of an SM

    def test_small_matrices_get_small_tiles_and_large_ones_large(self):
        sides = [dict(product.choose(n, n, n, H200).macros)["TILE_M"] for n in (256, 1024, 4096)]
        assert sides == [32, 64, 128]

    def test_one_tile_is_shared_by_all_multiprocessors(self):
        chosen = product.choose(32, 64, 2**16, H200)
        assert (chosen.kernel, chosen.grid) == ("matmul/11_stream_k", (H200, 1, 1))

    def test_tiles_that_fill_the_gpu_are_not_shared(self):
        """128 tiles of 32 x 64 on 132 SMs: 97 % of the places."""
        chosen = product.choose(512, 512, 512, H200)
        assert (chosen.kernel, chosen.grid) == ("matmul/10_any_tile", (8, 16, 1))

    def test_the_largest_tiles_are_shared_unless_k_is_short(self):
        """As recorded on an H200: 11_stream_k is quicker at 4096 and 8192, though 10_any_tile fills it."""
        chosen = [product.choose(2048, 2048, k, H200).kernel for k in (128, 2048)]
        assert chosen == ["matmul/10_any_tile", "matmul/11_stream_k"]

    def test_a_grid_taller_than_cuda_allows_is_avoided(self):
        assert product.choose(2**22, 1, 1, H200).kernel == "matmul/11_stream_k"


def matrices(m, n, k):
    rng = np.random.default_rng(m + n + k)
    return (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))


@pytest.mark.usefixtures("simulator")
class TestInTheSimulator:
    @pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (33, 45, 70), (64, 64, 500)])
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
    [(1, 1, 1), (257, 129, 33), (1000, 1001, 999), (64, 64, 65536), (4100, 515, 300), (2048, 2048, 64)],
)
@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (3, -2)])
def test_products_on_a_gpu(m, n, k, alpha, beta):
    import cupy

    case = Matmul(m, n, k, alpha=alpha, beta=beta)
    a, b, c = map(cupy.asarray, case.inputs())
    first, again = (labkit.matmul(a, b, c.copy(), alpha, beta).get() for _ in range(2))
    case.verify(first)
    np.testing.assert_array_equal(first, again)
