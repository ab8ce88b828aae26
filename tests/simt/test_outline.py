"""Code of large kernels, whose instructions are rows of a table, against code in place; and how it grows."""

import numpy as np
import pandas as pd
import pytest
from gallery import Case, cases, references

import simt
from simt.counters.counting import Counting
from simt.run.compile import compile_kernel
from simt.run.observer import Observer
from simt.sanitizer.sanitizer import Sanitizer

CLEAN = cases("clean")
BUGS = [case for case in cases("bugs") if not case.refused]


@pytest.fixture
def in_rows(monkeypatch, tmp_path):
    """Make each kernel a large one, whatever its length."""

    def switch():
        monkeypatch.setattr("simt.analysis.layout.LARGE", 0)
        monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))

    return switch


def run(case: Case, how: str):
    args = case.args(empty=simt.empty) if how == "check" else case.args()
    module = simt.RawModule(code=case.source, options=case.options, name_expressions=case.name_expressions)
    launch = getattr(module.get_function(case.entry), how)
    told = launch(
        case.grid, case.block, tuple(args.values()), shared_mem=case.shared_mem, timeout=case.timeout
    )
    return told, args


@pytest.mark.slow  # the gallery once more, in another form of code
@pytest.mark.parametrize("case", CLEAN, ids=lambda case: case.name)
def test_results_and_counters_are_those_of_code_in_place(case, in_rows):
    profile, _ = run(case, "profile")
    in_rows()
    _, args = run(case, "__call__")
    again, counted = run(case, "profile")
    for arrays in (args, counted):
        assert references.wrong(case, arrays) == ""
    pd.testing.assert_frame_equal(again.ptx_lines, profile.ptx_lines)
    assert again.ptx == profile.ptx
    assert [str(finding) for finding in run(case, "check")[0]] == []


@pytest.mark.slow  # likewise
@pytest.mark.parametrize("case", BUGS, ids=lambda case: case.name)
def test_findings_are_those_of_code_in_place(case, in_rows):
    def told():  # without the text, which may name places in memory
        found, _ = run(case, "check")
        return [(each.tool, each.kind, each.line, each.block, each.thread) for each in found]

    in_place = told()
    in_rows()
    assert told() == in_place


CHAIN = """extern "C" __global__ void chain(const float* a, const int* at, float* out) {
    __shared__ float s[32];
    int i = threadIdx.x, where = i;
    float x = a[i];
    #pragma unroll
    for (int k = 0; k < STEPS; k++) {
        s[i] = x;
        __syncwarp();
        x = fmaf(x, 0.25f, s[(i + k) % 32]) * 0.5f + a[where];
        __syncwarp();
        where = at[where];
        if (x > 1) x -= 0.5f;
    }
    out[i] = x;
}"""


def chain(steps: int) -> simt.Kernel:
    return simt.RawModule(code=CHAIN, options=(f"-DSTEPS={steps}",)).get_function("chain")


def test_a_kernel_of_thousands_of_instructions_gives_numpys_results():
    rng = np.random.default_rng(0)
    a, at = rng.random(32, np.float32), rng.integers(0, 32, 32).astype(np.int32)
    out = np.zeros(32, np.float32)
    kernel = chain(100)
    kernel(1, 32, (a, at, out))
    lanes = np.arange(32)
    x, where = a.copy(), lanes
    for k in range(100):
        x = (x.astype(np.float64) * 0.25 + x[(lanes + k) % 32]).astype(np.float32)
        x = (x.astype(np.float64) * 0.5 + a[where]).astype(np.float32)  # NVRTC contracts it
        where = at[where]
        x = np.where(x > 1, x - np.float32(0.5), x)
    np.testing.assert_array_equal(out, x)
    assert not kernel.check(1, 32, (a, at, out))


@pytest.mark.parametrize("observer", [Observer, Counting, Sanitizer])
def test_code_grows_no_faster_than_the_kernel(observer):
    sizes = []
    for steps in (60, 120):
        kernel = chain(steps)
        compiled = compile_kernel(
            kernel.parsed, kernel.storage, (32, 1, 1), observer, is_huge=False, is_brief=True
        )
        sizes.append((len(kernel.parsed.code), len(compiled.code)))
    (few, small), (many, large) = sizes
    assert large / small < 1.1 * many / few
    assert large / many < 100, "bytes per instruction"


NUMBERS = """extern "C" __global__ void numbers(const float* x, double* out) {
    float a = x[threadIdx.x];
    double b = a;
    a = -0.0f * a;
    b = b * 1e300 - 1e-300;
    out[0] = fmin(a, 2.5f) + 0.5f;
    out[1] = a * __int_as_float(0x7fc00000);
    out[2] = b / 3.0 + 1e300;
    out[3] = a < -1e-40f ? 3.0 : 4.0;
    out[4] = __longlong_as_double(0x3ff0000000000001) + b * 0.0;
    out[5] = fma(b, -1e-300, 1.0 / 3.0);
    out[6] = 1.0f / a;
}"""


def test_floats_of_a_row_keep_their_bits(in_rows):
    in_rows()
    x, out = np.full(1, 1.5, np.float32), np.zeros(7)
    simt.RawModule(code=NUMBERS).get_function("numbers")(1, 1, (x, out))
    b = np.float64(1.5) * 1e300 - 1e-300
    expected = [0.5, np.nan, b / 3 + 1e300, 4, 1 + 2.0**-52, 1 / 3 - 1.5, -np.inf]
    np.testing.assert_array_equal(out, expected)
