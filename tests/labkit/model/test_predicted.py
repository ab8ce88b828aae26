"""`labkit.predict` for kernels, and the table of predicted times."""

import json
from statistics import median

import pytest

import labkit
import simt
from labkit import kernels
from labkit.model import predicted
from labkit.widgets.prediction import Prediction as Question
from simt.common.errors import LaunchError
from simt.timing.prediction import NoPrediction

PRODUCT = labkit.problem("matmul", 512, 512, 512)
OWN = """
// launch: block (SIDE, SIDE), grid (ceil(cols/SIDE), ceil(rows/SIDE));
#ifndef SIDE
#define SIDE 16
#endif
extern "C" __global__ void transpose(float *out, const float *in, int rows, int cols) {
    int col = blockIdx.x * SIDE + threadIdx.x, row = blockIdx.y * SIDE + threadIdx.y;
    if (row < rows && col < cols)
        out[col * rows + row] = in[row * cols + col];
}
"""


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


def test_a_text_alone_is_a_question_of_the_course():
    assert isinstance(labkit.guess("02.a"), Question)


def test_a_rung_has_two_names_and_macros():
    short, long = (labkit.predict(name, PRODUCT, TILE=16) for name in ("tiled", "matmul/2_tiled"))
    assert short == long
    args = PRODUCT.args(labkit.xp)
    grid, block = PRODUCT.launch(16)
    found = kernels.load("matmul/2_tiled", TILE=16, DTYPE="float").predict(grid, block, args)
    assert found.seconds == pytest.approx(short.seconds, rel=0.02)
    assert short.low < short.seconds < short.high and short.gpu.name == "H200"


def test_a_kernel_of_ones_own_says_how_it_is_launched():
    kernel = simt.RawModule(code=OWN).get_function("transpose")
    plane = labkit.problem("transpose", 2048, 2048)
    wide, narrow = labkit.predict(kernel, plane), labkit.predict(kernel, plane, gpu="H100 SXM5", SIDE=2)
    assert narrow.gpu.name == "H100 SXM5"
    assert narrow.seconds > 2 * wide.seconds  # 4 threads of a warp are busy


def test_it_is_kept_on_disk(monkeypatch):
    first = labkit.predict("tiled", PRODUCT, TILE=16)
    monkeypatch.setattr(predicted, "predict_launch", None)
    assert labkit.predict("tiled", PRODUCT, TILE=16) == first


@pytest.mark.parametrize(
    ("kernel", "settings", "error", "message"),
    [
        ("tield", {}, ValueError, "no rung 'tield'.*Choose one of naive, "),
        ("transpose/1_naive", {}, ValueError, "matmul has no rung 'transpose/1_naive'"),
        ("tiled", {"UNROLL": 4}, ValueError, "no macro UNROLL"),
        ("tiled", {"TILE": 64}, LaunchError, "Choose TILE ≤ 32"),
        ("tiled", {"gpu": "H300"}, ValueError, "no figures of a GPU 'H300'; choose one of"),
        ("tiled", {"gpu": "GTX 1080"}, NoPrediction, "does not have .*Choose one of .*H200"),
        (3, {}, ValueError, "3 is no CUDA kernel"),
    ],
)
def test_what_cannot_be_predicted_is_told(kernel, settings, error, message):
    with pytest.raises(error, match=message):
        labkit.predict(kernel, PRODUCT, **settings)


def test_a_kernel_without_a_launch_line_is_told():
    code = 'extern "C" __global__ void f(float *x) { x[0] = 1; }'
    with pytest.raises(LaunchError, match="No line says how the kernel is launched"):
        labkit.predict(simt.RawModule(code=code).get_function("f"), PRODUCT)


@pytest.mark.parametrize("kernel", ["tiled", simt.AnyKernel])
def test_a_kernel_without_a_problem_is_told(kernel):
    with pytest.raises(ValueError, match=r"labkit\.predict\(.*labkit\.problem"):
        labkit.predict(kernel)


def test_who_asks_for_a_question_of_the_course_is_told_its_name():
    with pytest.raises(ValueError, match=r'labkit\.guess\("02\.a"\)'):
        labkit.predict("02.a")


# The table.


@pytest.mark.parametrize(
    ("rung", "problem", "macros"),
    [("naive", PRODUCT, {"TILE": 32}), ("copy", labkit.problem("transpose", 2048, 2048), {})],
)
def test_the_table_has_what_is_predicted_now(rung, problem, macros):
    """A difference means: run benchmarks/predicted_ladder.py again."""
    now = labkit.predict(rung, problem, **macros)
    sizes = {name.lower(): size for name, size in problem.sizes.items()}
    row = predicted.times("H200", kernel=rung, dtype="float32", block_x=32, **sizes)
    assert [row[name].item() for name in ("value", "low", "high")] == pytest.approx(
        [1e3 * now.seconds, 1e3 * now.low, 1e3 * now.high], rel=0.02
    )
    assert row.limit.item() == now.limit


def test_the_table_says_where_it_comes_from():
    told = json.loads(predicted.TABLE.with_suffix(".json").read_text(encoding="utf-8"))
    assert told["command"] == "python benchmarks/predicted_ladder.py" and "none was measured" in told["what"]
    assert set(told["gpus"]) == set(predicted.gpus()) >= {"H200", "A100-SXM4-80GB", "T4"}


def test_a_source_says_for_which_gpu_and_how_wide_the_interval_is():
    rows = predicted.times("H200", kernel="tiled", n=512, dtype="int32")
    off = median((row.high - row.low) / 2 / row.value for row in rows.itertuples())
    assert set(rows.source) == {f"predicted for an H200, ± {100 * off:.0f} %"}
    assert predicted.times("H200", kernel="tiled", n=7).empty
