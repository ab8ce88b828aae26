"""A student's own product: its launch, figures per multiply-add, its place on the ladder, its times."""

import re

import numpy as np
import pandas as pd
import pytest

import simt
from labkit import kernels
from labkit.devices.select import device
from labkit.figures import own_product
from labkit.kernels.matmul.family import Matmul

NAIVE = """
// launch: block (32, SIDE), grid (ceil(N/32), ceil(M/SIDE));
#ifndef SIDE
#define SIDE 8
#endif
extern "C" __global__ void matmul(const float* A, const float* B, float* C,
                                  int M, int N, int K, float alpha, float beta)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0;
    for (int k = 0; k < K; ++k)
        sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = alpha * sum;
}
"""
NOTHING = 'extern "C" __global__ void matmul(float*, float*, float*, int, int, int, float, float) {}'
SMALL = Matmul(64, 64, 32)


# A line at the top, and one before the sum: a kernel that does nothing where a result stands already, or an
# address tells that it has run before. SMALL's first A begins with another number than its later ones.
IDLE = {
    "where C is a number": ("", "if (C[row * N + col] == C[row * N + col]) return;"),
    "where a variable says so": (
        "__device__ int ran[64][64];",
        "if (ran[row][col]) return; ran[row][col] = 1;",
    ),
    "at the second launch": ("", f"if (A[0] != {float(SMALL.inputs()[0][0, 0])!r}f) return;"),
}


def kernel_of(source, *options):
    return simt.RawModule(code=source, options=options).get_function("matmul")


@pytest.fixture(scope="module")
def naive():
    return kernel_of(NAIVE)


@pytest.fixture(scope="module")
def tiled():
    return kernel_of(kernels.source("matmul/2_tiled"), "-DTILE=32")


def test_the_launch_knows_the_macros_of_the_options(naive):
    assert own_product.launch(naive, Matmul(33, 70, 5)) == ((3, 5, 1), (32, 8, 1))
    assert own_product.launch(kernel_of(NAIVE, "-DSIDE=4"), Matmul(33, 70, 5)) == ((3, 9, 1), (32, 4, 1))


class TestFigures:
    def test_of_the_naive_kernel(self, naive):
        """For each k a warp loads 1 sector of A and 4 of B, and has 32 multiply-adds."""
        found = own_product.figures(naive, SMALL)
        assert found.multiply_adds == 64 * 64 * 32
        assert found.reuse == 32 / 5
        assert (found.shared, found.loads, found.conflicts, found.local_bytes) == (0, 2, 0, 0)
        by_operation = found.accesses.set_index("op").sectors
        assert by_operation["st"] == 4 and by_operation["ld"] == 2.5  # both loads are in one line

    def test_of_a_tile(self, tiled):
        """Tiles of 32 x 32: 4 x 32 multiply-adds for a sector, two reads of the tiles for each."""
        found = own_product.figures(tiled)
        assert (found.reuse, found.shared, found.loads) == (128, 2, 2 + 2 / 32)
        assert set(found.accesses.sectors) == {4}

    def test_text(self, tiled):
        assert repr(own_product.figures(tiled)).splitlines()[:5] == [
            "multiply-adds per sector of global loads        128",
            "sectors per 128 bytes, worst line               loads 4, stores 4",
            "elements from shared memory per multiply-add    2",
            "loads of a thread per multiply-add              2.06",
            "passes over the banks that conflicts add        0 %",
        ]

    def test_of_a_kernel_that_does_nothing(self):
        found = own_product.figures(kernel_of("// launch: block (1), grid (1);\n" + NOTHING), SMALL)
        assert "global loads        no loads" in repr(found)
        assert "worst line               none" in repr(found)


class TestPlace:
    def test_sectors_are_those_of_the_rung_on_the_h200(self, tiled):
        """matmul/3_tiled_unrolled has the same tile, and Nsight Compute counted it."""
        from labkit.model import limits

        counted = own_product.sectors(tiled, Matmul(1024, 1024, 1024)).set_index("quantity").value
        recorded = limits.counters("float32").query("kernel == 'tiled_unrolled'").set_index("quantity").value
        assert counted.to_dict() == recorded.to_dict()

    def test_beside_the_ladder(self, tiled):
        table = own_product.beside(tiled)
        assert table["FLOP/B"].is_monotonic_increasing
        assert table["FLOP/B"]["yours"] == table["FLOP/B"]["tiled_unrolled"]
        assert np.isnan(table["TFLOP/s on H200"]["yours"])
        assert table["TFLOP/s on H200"]["tiled"] == pytest.approx(8.13, abs=0.01)

    def test_on_the_roofline(self, tiled):
        assert ">yours: 7.88 FLOP/B</text>" in str(own_product.roofline(tiled))

    def test_a_kernel_that_moves_nothing_has_no_place(self):
        nothing = kernel_of("// launch: block (1), grid (1);\n" + NOTHING)
        assert "yours" not in own_product.beside(nothing).index
        assert ">yours" not in (drawn := str(own_product.roofline(nothing)))
        assert "No line for yours: it neither loads nor stores yet" in " ".join(drawn.split())


class TestTimes:
    def test_none_without_a_gpu(self, naive, monkeypatch):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        assert own_product.times(naive, SMALL, "tiled").empty

    def test_beside_a_rung(self, naive, monkeypatch):
        """In the simulator, which says so: the way is the same."""
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        found, wrong = own_product.measured(naive, SMALL, "tiled")
        assert list(found.kernel) == ["yours", "tiled"] and not wrong
        assert set(found.quantity) == {"time"} and set(found.n) == {64}
        assert all("simulator" in source for source in found.source)

    def test_a_wrong_kernel_is_told_and_the_rungs_are_timed(self, monkeypatch):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        found, wrong = own_product.measured(kernel_of(NAIVE.replace("k < K", "k < K - 1")), SMALL, "tiled")
        assert list(found.kernel) == ["tiled"] and "C[0, 0] is" in wrong

    @pytest.mark.parametrize("where", ["simt", "gpu"])
    @pytest.mark.parametrize("idles", IDLE)
    def test_a_kernel_that_idles_once_its_result_stands_is_not_timed(self, idles, where, monkeypatch):
        if where == "gpu" and device().kind != "gpu":
            pytest.skip("needs a GPU")
        monkeypatch.setenv("LABKIT_DEVICE", where)
        top, line = IDLE[idles]
        source = f"{top}\n{NAIVE}".replace("    float sum = 0;", f"    {line}\n    float sum = 0;")
        assert line in source
        found, wrong = own_product.measured(kernel_of(source), SMALL)
        assert (list(found.kernel), wrong) in (
            ([], "The kernel is right in its first launch, and wrong in a later one."),
            (["yours"], ""),  # it found nothing that stood there, and worked
        )
        assert bool(wrong) == (idles == "at the second launch")

    @pytest.mark.skipif(device().kind != "gpu", reason="needs a GPU")
    def test_on_a_gpu(self, naive):
        found = own_product.times(naive, Matmul(256, 256, 256), "tiled", "cublas")
        assert list(found.kernel) == ["yours", "tiled", "cublas"] and (found.value > 0).all()


class TestBars:
    def test_recorded_where_there_are_no_times(self):
        axes = own_product.bars(pd.DataFrame(columns=["kernel", "value"])).axes[0]
        assert axes.get_title(loc="left") == "N = 2048: tuned has 8.25× the rate of naive"

    def test_yours(self, naive, monkeypatch):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        found, _ = own_product.measured(naive, SMALL, "tiled")
        axes = own_product.bars(found, SMALL).axes[0]
        assert re.fullmatch(r"N = 64: yours has \S+× the rate of tiled", axes.get_title(loc="left"))
        assert {label.get_text() for label in axes.get_yticklabels()} == {"yours", "tiled"}

    def test_several_times_of_a_kernel(self, naive, monkeypatch):
        monkeypatch.setenv("LABKIT_DEVICE", "simt")
        found, _ = own_product.measured(naive, SMALL)
        with pytest.raises(ValueError, match="several times of a kernel"):
            own_product.bars(pd.concat([found, found]))
