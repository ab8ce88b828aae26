"""The C kernels: right for every shape, type and kind of SIMD, within their arrays, clear about misuse."""

import ctypes
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labkit import cpu, kernels
from labkit.c.compile import FLAGS, build, compile_c
from labkit.c.function import CFunction
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.transpose.family import Transpose
from simt.common.errors import CompileError, LaunchError

MATMUL = [name for name in kernels.names("matmul", "cpu") if not name.endswith("peak")]
TRANSPOSE = [name for name in kernels.names("transpose", "cpu") if not name.endswith("copy")]
DTYPES = {"float32": "float", "float64": "double", "int32": "int"}
# At the edges of vectors (4 to 16), of tiles (6 rows, up to 64 columns) and of blocks; long and thin.
MATMUL_SIZES = [
    *[(1, 1, 1), (7, 7, 7), (31, 31, 31), (33, 33, 33), (6, 64, 1), (5, 63, 2), (13, 129, 9), (1, 300, 40)],
    *[(300, 1, 40), (1000, 17, 333), (67, 45, 600), (130, 70, 1030)],
]
TRANSPOSE_SIZES = [
    (1, 1),
    (7, 9),
    (31, 33),
    (32, 64),
    (64, 32),
    (100, 200),
    (333, 17),
    (1000, 17),
    (96, 4096),
]


def load(name, dtype="float32", **parameters):
    if name.endswith("simd") and name.startswith("matmul"):
        return kernels.load(name, **parameters)
    return kernels.load(name, DTYPE=DTYPES[dtype], **parameters)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*MATMUL, *TRANSPOSE])
def test_equals_numpy(name, dtype):
    if name == "matmul/cpu_3_simd" and dtype != "float32":
        with pytest.raises(ValueError, match="written for float32 only"):
            kernels.load(name, DTYPE=DTYPES[dtype])
        return
    sizes = MATMUL_SIZES if name in MATMUL else TRANSPOSE_SIZES
    verdict = cpu.check(load(name, dtype), sizes)
    assert verdict.ok, verdict


@pytest.mark.parametrize("name", [name for name in MATMUL if not name.endswith("strassen")])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=st.tuples(*[st.integers(1, 150)] * 3), seed=st.integers(0, 99))
def test_any_shape(name, size, seed):
    case = Matmul(*size, seed=seed)
    a, b, c = case.inputs()
    load(name)(a, b, c)
    case.verify(c)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("name", ["matmul/cpu_8_threads", "matmul/cpu_9_strassen"])
def test_any_number_of_threads(name, threads):
    verdict = cpu.check(
        kernels.load(name, THREADS=threads), [(1, 1, 1), (5, 300, 40), (300, 5, 40), (130, 131, 600)]
    )
    assert verdict.ok, verdict


@pytest.mark.parametrize("block", [8, 16, 24, 64, 1024])
@pytest.mark.parametrize("name", ["matmul/cpu_4_blocked", "matmul/cpu_5_blocked_bt"])
def test_any_block(name, block):
    verdict = cpu.check(kernels.load(name, BLOCK=block))
    assert verdict.ok, verdict


@pytest.mark.parametrize("bytes_", [16, 32, 64])
def test_any_width_of_vectors(bytes_):
    """VECTOR_BYTES chooses AVX2 on a CPU with AVX-512; wider than the CPU's, a vector is several
    registers.
    """
    verdict = cpu.check(kernels.load("matmul/cpu_7_packed", VECTOR_BYTES=bytes_))
    assert verdict.ok, verdict


@pytest.mark.parametrize("levels", [0, 1, 2, 4])
def test_strassen_levels(levels):
    """Exact for integers, whatever is left over at odd sizes."""
    kernel = kernels.load("matmul/cpu_9_strassen", LEVELS=levels, THREADS=1, DTYPE="int")
    verdict = cpu.check(kernel, [(1, 1, 1), (2, 3, 4), (33, 33, 33), (64, 64, 64), (127, 90, 61)])
    assert verdict.ok, verdict


def test_strassen_loses_digits_with_each_level():
    case = Matmul(512, 512, 512)
    errors = []
    for levels in range(5):
        a, b, c = case.inputs()
        kernels.load("matmul/cpu_9_strassen", LEVELS=levels, THREADS=1)(a, b, c)
        errors.append(abs(c - case.reference()).max())
    assert errors == sorted(errors) and errors[4] > 4 * errors[0], errors


SETS = {"AVX2": ["-mno-avx512f"], "no AVX": ["-march=x86-64"]}


@pytest.mark.parametrize("options", SETS.values(), ids=SETS)
@pytest.mark.parametrize("name", [*MATMUL[2:], *TRANSPOSE[2:]])
def test_without_wide_vectors(name, options):
    """On an older CPU, and on one that is not x86, where no macro of AVX is defined."""
    try:
        library = compile_c(
            kernels.source_with_includes(name),
            [*options, "-pthread", "-Werror", "-Wall", "-Wno-psabi", "-Wno-unused-function"],
        )
    except CompileError as error:
        if any(words in error.log for words in ("unrecognized", "bad value", "unknown CPU", "not supported")):
            pytest.skip(f"this compiler does not know {options[0]}")
        raise
    for size in [(1, 1, 1), (7, 31, 33), (100, 70, 600)]:
        case = Matmul(*size) if name in MATMUL else Transpose(*size[:2])
        given = case.inputs()
        sizes = size if name in MATMUL else size[:2]
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in given]
        getattr(ctypes.CDLL(str(library)), name.partition("/")[0])(*pointers, *sizes)
        assert (abs(given[-1] - case.reference()) <= load(name).tolerance(case)).all()


@pytest.mark.parametrize("name", [*MATMUL, *TRANSPOSE, "transpose/cpu_0_copy"])
def test_stays_within_its_arrays(name):
    """Under AddressSanitizer and UndefinedBehaviorSanitizer."""
    function = CFunction(kernels.source_with_includes(name), name.partition("/")[0], ["-DTHREADS=2"])
    for size in [(1, 1, 1), (7, 31, 33), (70, 133, 40), (33, 65, 400)]:
        case = Matmul(*size) if name in MATMUL else Transpose(*size[:2])
        given = case.inputs()
        function(*given, *(size if name in MATMUL else size[:2]))
        if name != "transpose/cpu_0_copy":
            assert (abs(given[-1] - case.reference()) <= load(name).tolerance(case)).all()


def test_copy_copies():
    for shape in [(1, 1), (31, 50), (64, 64), (1000, 17)]:
        x, out = np.random.default_rng(0).random(shape, np.float32), np.empty(shape[::-1], np.float32)
        kernels.load("transpose/cpu_0_copy")(x, out)
        np.testing.assert_array_equal(out.reshape(shape), x)


def test_peak_leaves_no_multiply_add_out():
    """The loop has an instruction for each of its 24 or 12 vectors; what is alike would be computed once."""
    files = {"kernel.c": kernels.source_with_includes("matmul/cpu_0_peak")}
    code = build(files, [*FLAGS, "-S", "kernel.c"], ".s").read_text()
    found = len(re.findall(r"\t(?:vfmadd|fmla|fmadd)\w*", code))
    assert found and found % 12 == 0


class TestArrays:
    @pytest.fixture
    def product(self):
        return kernels.load("matmul/cpu_1_loops")

    @staticmethod
    def zeros(*shapes, dtype=np.float32):
        return [np.zeros(shape, dtype) for shape in shapes]

    def test_nothing_is_copied(self, product):
        c = np.full((3, 5), np.nan, np.float32)
        product(*self.zeros((3, 4), (4, 5)), c)
        assert (c == 0).all()

    @pytest.mark.parametrize(
        ("shapes", "words"),
        [
            (((3, 4), (5, 6), (3, 6)), r"B has shape \(5, 6\), but K = 4 in those before it"),
            (((3, 4), (4, 6), (3, 7)), r"C has shape \(3, 7\), but N = 6"),
            (((3, 4), (4, 6)), r"matmul takes 3 arrays: A \(M, K\), B \(K, N\), C \(M, N\); 2 were given"),
            (
                ((3, 4), (4,), (3, 4)),
                r"B must be a NumPy array with rows and columns, not one of shape \(4,\)",
            ),
            (((3, 0), (0, 4), (3, 4)), r"A has shape \(3, 0\)"),
        ],
    )
    def test_shapes_must_fit(self, product, shapes, words):
        with pytest.raises(LaunchError, match=words):
            product(*self.zeros(*shapes))

    def test_types_must_fit(self, product):
        with pytest.raises(LaunchError, match=r"A is float64; the kernel is compiled for float32"):
            product(*self.zeros((3, 3), (3, 3), (3, 3), dtype=np.float64))
        with pytest.raises(LaunchError, match="not a list"):
            product([[1.0]], *self.zeros((1, 1), (1, 1)))

    def test_rows_must_lie_one_after_the_other(self, product):
        a, b, c = self.zeros((4, 4), (4, 4), (4, 4))
        with pytest.raises(LaunchError, match=r"B is not contiguous.*np\.ascontiguousarray\(B\)"):
            product(a, b.T[:, ::2].T.repeat(2, 0).T, c)
        with pytest.raises(LaunchError, match="A is not contiguous"):
            product(np.asfortranarray(np.ones((4, 4), np.float32)), b, c)

    def test_the_output_must_be_writable_and_apart(self, product):
        a, b, c = self.zeros((4, 4), (4, 4), (4, 4))
        with pytest.raises(LaunchError, match="C overlaps an input"):
            product(a, b, a)
        c.flags.writeable = False
        with pytest.raises(LaunchError, match="C is read-only"):
            product(a, b, c)

    def test_blas_checks_as_much(self):
        with pytest.raises(LaunchError, match="B has shape"):
            cpu.Blas(1)(*self.zeros((3, 4), (5, 6), (3, 6)))


class TestParameters:
    def test_what_a_rung_cannot_use_is_ignored_what_none_has_is_refused(self):
        kernels.load("matmul/cpu_1_loops", BLOCK=64, THREADS=2)
        with pytest.raises(ValueError, match="matmul kernels have no parameter TILE; they have BLOCK, DTYPE"):
            kernels.load("matmul/cpu_4_blocked", TILE=16)

    @pytest.mark.parametrize(
        ("name", "parameters", "words"),
        [
            ("matmul/cpu_4_blocked", {"BLOCK": 12}, "choose BLOCK from 8, 16, 24"),
            ("matmul/cpu_8_threads", {"THREADS": 0}, "choose THREADS from 1 to 256"),
            ("transpose/cpu_4_streamed", {"BLOCK": 7}, "choose BLOCK from 8, 16, 24"),
        ],
    )
    def test_impossible_values_do_not_compile(self, name, parameters, words):
        with pytest.raises(CompileError, match=words):
            kernels.load(name, **parameters)

    def test_unknown_types_names_and_rungs(self):
        with pytest.raises(ValueError, match=r"DTYPE=half is not supported\. Choose one of float, d"):
            kernels.load("matmul/cpu_1_loops", DTYPE="half")
        with pytest.raises(ValueError, match=r"no rung 'cpu_mkl'\. Choose one of cpu_naive, "):
            cpu.rung("cpu_mkl")
        with pytest.raises(ValueError, match="no kernels for 'tpu'"):
            kernels.names("matmul", "tpu")
        with pytest.raises(ValueError, match="threads=0"):
            cpu.Blas(0)

    def test_threads_are_all_cores_unless_said(self):
        assert kernels.load("matmul/cpu_8_threads").threads == cpu.cores()
        assert kernels.load("matmul/cpu_8_threads", THREADS=3).threads == 3
        assert kernels.load("matmul/cpu_7_packed").threads == 1


class TestMeasure:
    def test_time_and_its_label(self):
        timing = cpu.measure(kernels.load("matmul/cpu_7_packed"), Matmul(64, 64, 64), seconds=0.5)
        assert len(timing.samples) >= 3 and timing.p20 <= timing.median <= timing.p80
        assert timing.source == f"measured here: {cpu.cpu_name()}, 1 thread"

    def test_a_long_call_is_made_once(self):
        timing = cpu.measure(kernels.load("matmul/cpu_1_loops"), Matmul(256, 256, 256), seconds=0.001)
        assert len(timing.samples) == 1

    def test_blas_keeps_to_its_threads(self):
        from threadpoolctl import threadpool_info

        def pools():
            return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

        before = pools()
        with cpu.Blas(1).ready():
            assert pools() == [1] * len(before)
        assert pools() == before

    def test_rows_of_a_slow_rung_are_scaled_and_say_so(self):
        row = cpu.time_rung("cpu_naive", 1024, seconds=0.01)
        assert row["note"] == "42 of 1024 rows of C, scaled" and row["n"] == row["m"] == 1024
        assert cpu.time_rung("cpu_packed", 128, seconds=0.01)["note"] == ""

    def test_the_ladder_is_ready_for_a_plot(self):
        from labkit.figures import curves

        frame = cpu.ladder([64, 96], ["cpu_naive", "cpu_packed", cpu.BLAS])
        assert list(frame.n) == [64] * 3 + [96] * 3 and (frame.value > 0).all()
        assert curves.time_by_size(frame).axes[0].get_legend_handles_labels()[1] == [
            "cpu_naive",
            "cpu_packed",
            "cpu_blas",
        ]


@pytest.mark.parametrize("name", [*kernels.names("matmul", "cpu"), *kernels.names("transpose", "cpu")])
def test_sources_follow_the_house_style(name):
    lines = kernels.source(name).splitlines()
    assert lines[0].startswith(f"// {name.replace('/', '_')}.c: ")
    assert lines[1].startswith("// idea: ")
    assert max(map(len, lines)) <= 115 and len(lines) <= 150
    assert not re.search(r"\t|[ \t]$", kernels.source(name), re.MULTILINE)


@pytest.mark.parametrize("name", [*kernels.names("matmul", "cpu"), *kernels.names("transpose", "cpu")])
def test_compiles_without_a_warning(name):
    compile_c(
        kernels.source_with_includes(name),
        ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-pthread"],
    )
