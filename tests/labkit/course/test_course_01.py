"""Checks of notebook 01: what students start from and typical mistakes fail, with words that help.

Criteria of speed are judged here as a student's machine judges them: by running.
"""

import pytest
from course_tables import (
    SOLVED,
    checks_of_mistakes,
    checks_of_other_answers,
    checks_of_starters,
    judged,
    mutant,
)
from llvmlite import binding

import labkit
import simt
from labkit import cpu, kernels
from labkit.c.compile import find_compiler
from labkit.c.function import CFunction
from labkit.course import EXERCISES, magic
from labkit.course.criteria import c_functions
from labkit.course.criteria.c_functions import faster_in_c
from labkit.course.exercise import Unmet
from labkit.course.exercises import lab_01
from labkit.kernels.matmul.family import Matmul

STARTERS = {
    "01.1": (3, "3"),
    "01.2": (2, "0", "1024", lab_01.OF_B),
    "01.3": (2, "M=32", "N=64", "K=96", "C[0, 0]", lab_01.LIMITS.usual),
    "01.4": (3, "1.5"),
}


test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)


NO_BLOCKS_OF_J = (("j0 + BLOCK, N", "N, N"), ("j0 += BLOCK", "j0 += N"))
LEFT_01_1 = "        for (; j < N; ++j) { // the columns"
ONE_BY_ONE = "for (volatile int v = 0; v < 8; ++v) for (int k = 0; k < K; ++k)"
BLOCK_OF_B = "return 4L * (BLOCK * BLOCK + 2 * BLOCK)"
J_END, K_END = "min(j0 + BLOCK, N)", "min(k0 + BLOCK, K)"
K_THEN_V = (
    "for (int k = 0; k < K; ++k)\n                for (int v = 0; v < 4; ++v)\n",
    "for (int v = 0; v < 4; ++v)\n                for (int k = 0; k < K; ++k)\n",
)
STORE_01_4 = "store(&C[i * N + j + 8 * v], sums[v]);"


# exercise, what is wrong, the criterion that fails and what it says, then what to replace in the solution
def rung_in_c(rung):
    """A rung of the ladder as an answer."""
    return CFunction(kernels.source_with_includes(cpu.RUNGS[rung]), "matmul")


WRONG = [
    ("01.1", "none is left", 2, "32", ("j + 8 <= N", "j < N")),
    ("01.1", "none is left: why", 2, lab_01.SIMD.out_of_bounds, ("j + 8 <= N", "j < N")),
    (
        "01.1",
        "left out",
        2,
        lab_01.SIMD.usual,
        (LEFT_01_1, LEFT_01_1.replace("j < N", "j < 0")),
    ),
    ("01.1", "aligned", 2, c_functions.MISALIGNED, (", aligned(4)", "")),
    ("01.1", "a row for a column", 1, lab_01.SIMD.usual, ("(const vec *)&B[k * N + j]", "(vec *)&B[j]")),
    ("01.1", "sums from what is there", 1, lab_01.SIMD.usual, ("= {0}", "= *(vec *)&C[i * N + j]")),
    ("01.1", "strides of a square", 1, "M=5", "N=24", "K=7", ("A[i * K + k] * *", "A[i * N + k] * *")),
    (
        "01.1",
        "a vector filled one by one",
        3,
        ("            for (int k = 0; k < K; ++k)\n                sums +=", f"{ONE_BY_ONE} sums[v] +="),
        ("* *(const vec *)&B[k * N + j]", "* B[k * N + j + v]"),
    ),
    (
        "01.1",
        "a row of at most 1024",
        2,
        "1024",
        (
            "int j = 0;",
            "int j = 0; float row[1024]; for (int q = 0; q < N; ++q) row[q] = 0; C[i * N] = row[0];",
        ),
    ),
    ("01.2", "floats for bytes", 2, lab_01.OF_B, (BLOCK_OF_B, "return BLOCK * BLOCK + 2 * BLOCK")),
    ("01.2", "a row of B", 2, "256", "64", (BLOCK_OF_B, "return 4L * BLOCK")),
    ("01.2", "all of B", 2, lab_01.ALL_OF_IT, (BLOCK_OF_B, "return 4L * 1024 * 1024")),
    (
        "01.2",
        "returns nothing",
        2,
        lab_01.NO_NUMBER,
        ("long working", "void working"),
        (BLOCK_OF_B, "return"),
    ),
    ("01.2", "no function", 2, "'working_set'", ("working_set", "bytes")),
    ("01.2", "no BLOCK", 2, lab_01.NO_BLOCK, ("BLOCK", "SIDE")),
    ("01.2", "no rows of A and C", 2, lab_01.OF_A_AND_C, (BLOCK_OF_B, "return 4L * (BLOCK * BLOCK)")),
    (
        "01.2",
        "blocks of all three",
        2,
        lab_01.USED_ONCE,
        (BLOCK_OF_B, "return 12L * BLOCK * BLOCK"),
    ),
    ("01.2", "blocks of rows alone", 2, lab_01.NOT_AGAIN, *NO_BLOCKS_OF_J),
    ("01.2", "bytes of pointers", 2, lab_01.USED_ONCE, ("return 4L", "return sizeof(float *)")),
    ("01.2", "first term", 1, "C[0, 0]", ("k0 == 0 ? (vec){0} : ", "")),
    ("01.3", "j past the edge", 3, lab_01.LIMITS.out_of_bounds, (J_END, "j0 + min(BLOCK, N)")),
    ("01.3", "j past the edge: where", 3, lab_01.LIMITS.out_of_bounds, (J_END, "j0 + min(BLOCK, N)")),
    ("01.3", "k ends at N", 2, lab_01.LIMITS.usual, (K_END, "min(k0 + BLOCK, N)")),
    ("01.3", "no limit of i", 3, "`A`", ("i < min(i0 + BLOCK, M)", "i < i0 + BLOCK")),
    (
        "01.3",
        "only whole blocks",
        3,
        lab_01.ALL_BLOCKS,
        ("j0 < N;", "j0 + BLOCK <= N;"),
    ),
    ("01.3", "rows of another length", 2, lab_01.INSIDE.out_of_bounds, ("A[i * K + k]", "A[i * N + k]")),
    ("01.3", "each block from zero", 1, lab_01.BLOCKS.usual, ("k == 0", "k == k0")),
    ("01.4", "one row for all", 1, lab_01.SEVERAL.usual, ("sums[v] += A[i * K + k]", "sums[v] += A[k]")),
    (
        "01.4",
        "all the same columns",
        1,
        lab_01.SEVERAL.usual,
        ("j + 8 * v]);\n            for", "j]);\n            for"),
    ),
    (
        "01.4",
        "one vector stored",
        1,
        lab_01.SEVERAL.usual,
        (STORE_01_4, "store(&C[i * N + j], sums[0]);"),
    ),
    (
        "01.4",
        "an even number of terms",
        2,
        lab_01.SEVERAL.usual,
        ("k < K; ++k)\n                for (int v", "k < K / 2 * 2; ++k)\n                for (int v"),
    ),
    ("01.4", "too far", 2, lab_01.SEVERAL.out_of_bounds, ("j + 32 <= N", "j + 8 <= N")),
    ("01.4", "one vector after the other", 3, K_THEN_V),
]


test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)


def compiled(exercise, *replacements):
    """The function of a solved cell with parts replaced."""
    return magic.compile_c_cell(mutant(exercise, *replacements).partition("\n")[2], [], wanted=exercise)


class TestBlock:
    """Exercise 01.2, where it depends on the machine."""

    def test_one_that_the_cache_does_not_hold(self, monkeypatch):
        monkeypatch.setattr(cpu, "caches", lambda: {"L1": 2**15, "L2": 2**18})
        feedback = judged("01.2", mutant("01.2", ("BLOCK 64", "BLOCK 256")))
        assert "returns 264,192 bytes; the second cache (L2) here holds 262,144" in feedback.failure

    @pytest.mark.parametrize(
        ("block", "best", "words"), [(16, 64, "Try a larger one"), (512, 64, "Try a smaller one")]
    )
    def test_another_is_much_faster(self, monkeypatch, block, best, words):
        def told(functions, problem):
            return {name: 1 if name == f"BLOCK = {best}" else 3 for name in functions}

        monkeypatch.setattr(c_functions, "milliseconds", told)
        function = compiled("01.2", ("#define BLOCK 64", f"#define BLOCK {block}"))
        with pytest.raises(Unmet) as unmet:
            EXERCISES["01.2"].criteria[-1].test(function)
        assert (
            f"3 ms with your loops and BLOCK = {block}, 1 ms with cpu_avx_blocked and BLOCK = {best}"
            in str(unmet.value)
        )
        assert words in str(unmet.value)

    def test_what_is_slow_stays_slow_whatever_it_does_with_other_blocks(self):
        waits = "for (volatile long wait = 0; wait < (BLOCK == 64 ? 10000000 : 100000000); ++wait) ;"
        function = compiled("01.2", ("for (int j0 = 0", f"{waits}\n    for (int j0 = 0"))
        with pytest.raises(Unmet, match="ms with your loops and BLOCK = 64"):
            EXERCISES["01.2"].criteria[-1].test(function)


HAS_AVX2 = "+avx2" in binding.get_host_cpu_features().flatten().split(",")
INTRINSICS = """%%c 01.1
#include <immintrin.h>

void matmul(const float *A, const float *B, float *C, int M, int N, int K)
{
    for (int j = 0; j < N; ++j)
        for (int i = 0; i < M; ++i)
            if (j % 8 == 0 && j + 8 <= N) {
                __m256 sums = _mm256_setzero_ps();
                for (int k = 0; k < K; ++k) {
                    __m256 a = _mm256_set1_ps(A[i * K + k]);
                    sums = _mm256_fmadd_ps(a, _mm256_loadu_ps(&B[k * N + j]), sums);
                }
                _mm256_storeu_ps(&C[i * N + j], sums);
            } else if (j >= N / 8 * 8) {
                float sum = 0;
                for (int k = 0; k < K; ++k)
                    sum += A[i * K + k] * B[k * N + j];
                C[i * N + j] = sum;
            }
}
"""
ALL_THREE = """%%c 01.2 -D BLOCK=32
#ifndef BLOCK
#define BLOCK 8
#endif
typedef float vec __attribute__((vector_size(32), aligned(4)));

void matmul(const float *A, const float *B, float *C, int M, int N, int K)
{
    for (int i = 0; i < M * N; ++i)
        C[i] = 0;
    for (int i0 = 0; i0 < M; i0 += BLOCK)
        for (int k0 = 0; k0 < K; k0 += BLOCK)
            for (int j0 = 0; j0 < N; j0 += BLOCK)
                for (int i = i0; i < M && i < i0 + BLOCK; ++i)
                    for (int j = j0; j < N && j < j0 + BLOCK; j += 8) {
                        int columns = j + 8 < N ? 8 : N - j;
                        vec sums = {0};
                        for (int k = k0; columns == 8 && k < K && k < k0 + BLOCK; ++k)
                            sums += A[i * K + k] * *(const vec *)&B[k * N + j];
                        for (int k = k0; columns < 8 && k < K && k < k0 + BLOCK; ++k)
                            for (int v = 0; v < columns; ++v)
                                sums[v] += A[i * K + k] * B[k * N + j + v];
                        for (int v = 0; v < columns; ++v)
                            C[i * N + j + v] += sums[v];
                    }
}

unsigned long working_set(void) { return 3 * BLOCK * BLOCK * sizeof(float); }
"""
ROW_BY_ROW = """%%c 01.3
void matmul(const float *A, const float *B, float *C, int M, int N, int K)
{
    for (int i = 0; i < M; ++i)
        for (int j0 = 0; j0 < N; j0 += 24) {
            int j1 = j0 + 24;
            if (j1 > N)
                j1 = N;
            for (int j = j0; j < j1; ++j) {
                float sum = 0;
                for (int k = 0; k < K; ++k)
                    sum += A[i * K + k] * B[k * N + j];
                C[i * N + j] = sum;
            }
        }
}
"""
FOUR_ROWS = """%%c 01.4
typedef float vec __attribute__((vector_size(32), aligned(4)));

void matmul(const float *A, const float *B, float *C, int M, int N, int K)
{
    for (int j = 0; j < N; j += j + 8 <= N ? 8 : 1)
        for (int i = 0; i < M; ) {
            if (j + 8 <= N && i + 4 <= M) {
                vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
                const float *a = &A[i * K];
                for (int k = 0; k < K; ++k) {
                    vec b = *(const vec *)&B[k * N + j];
                    s0 += a[k] * b;
                    s1 += a[K + k] * b;
                    s2 += a[2 * K + k] * b;
                    s3 += a[3 * K + k] * b;
                }
                float *c = &C[i * N + j];
                *(vec *)c = s0, *(vec *)(c + N) = s1, *(vec *)(c + 2 * N) = s2, *(vec *)(c + 3 * N) = s3;
                i += 4;
                continue;
            }
            for (int v = j; v < (j + 8 <= N ? j + 8 : j + 1); ++v) {
                float sum = 0;
                for (int k = 0; k < K; ++k)
                    sum += A[i * K + k] * B[k * N + v];
                C[i * N + v] = sum;
            }
            ++i;
        }
}
"""
FOUR_STEPS = """%%c 01.4
typedef float vec __attribute__((vector_size(32), aligned(4)));

void matmul(const float *A, const float *B, float *C, int M, int N, int K)
{
    for (int i = 0; i < M; ++i) {
        int j = 0;
        for (; j + 8 <= N; j += 8) {
            vec sums[4] = {0};
            int k = 0;
            for (; k + 4 <= K; k += 4)
                for (int v = 0; v < 4; ++v)
                    sums[v] += A[i * K + k + v] * *(const vec *)&B[(k + v) * N + j];
            for (; k < K; ++k)
                sums[0] += A[i * K + k] * *(const vec *)&B[k * N + j];
            *(vec *)&C[i * N + j] = sums[0] + sums[1] + sums[2] + sums[3];
        }
        for (; j < N; ++j) {
            C[i * N + j] = 0;
            for (int k = 0; k < K; ++k)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
        }
    }
}
"""


ROWS = "for (int k = 0; k < K; ++k) for (int j = 0; j < N; ++j) C[i * N + j] += A[i * K + k] * B[k * N + j];"
ZEROS = "for (int j = 0; j < N; ++j) C[i * N + j] = 0;"
BEGIN = "void matmul(const float *A, const float *B, float *C, int M, int N, int K) {"
IN_ORDER = f"{BEGIN} for (int i = 0; i < M; ++i) {{ {ZEROS} {ROWS} }} }}"
BY_PRAGMA = f'#pragma GCC optimize("O3,tree-vectorize")\n{IN_ORDER}'
IN_THREADS = IN_ORDER.replace("{ for (int i", "{\n#pragma omp parallel for\nfor (int i")


class TestSimd:
    """01.1 and 01.4 ask for vectors that the student writes."""

    @pytest.mark.parametrize("exercise", ["01.1", "01.4"])
    @pytest.mark.parametrize("source", [IN_ORDER, BY_PRAGMA, IN_THREADS], ids=["order", "pragma", "OpenMP"])
    def test_what_the_compiler_makes_of_a_loop_is_none(self, exercise, source):
        options = "-fopenmp" if source == IN_THREADS and "ziglang" not in find_compiler() else "-O3"
        feedback = judged(exercise, f"%%c {exercise} {options}\n{source}")
        assert "the compiler does not make SIMD instructions of a loop by itself" in feedback.failure

    def test_eight_sums_side_by_side_are_written(self):
        sums = "; ".join(f"s[{v}] += A[i * K + k] * B[k * N + j + {v}]" for v in range(8))
        source = SOLVED["01.1"].partition("\n")[2].replace("vec sums = {0};", "float s[8] = {0};")
        source = source.replace("sums += A[i * K + k] * *(const vec *)&B[k * N + j];", f"{{ {sums}; }}")
        source = source.replace(
            "*(vec *)&C[i * N + j] = sums;", "for (int v = 0; v < 8; ++v) C[i * N + j + v] = s[v];"
        )
        assert judged("01.1", f"%%c 01.1\n{source}").ok


LOAD_01_1 = "                sums += A[i * K + k] * *(const vec *)&B[k * N + j];"
COPIED = "{ vec b; __builtin_memcpy(&b, B + k * N + j, sizeof b); sums += b * A[i * K + k]; }"

# exercise, how it differs, then what to replace in the solution: right, too
OTHERS = [
    ("01.1", "a vector copied from memory", (LOAD_01_1, COPIED)),
    *([("01.1", "AVX2 by name, columns first", (SOLVED["01.1"], INTRINSICS))] if HAS_AVX2 else []),
    ("01.2", "other order of blocks, in i too, BLOCK from outside", (SOLVED["01.2"], ALL_THREE)),
    (
        "01.2",
        "numbers of blocks, a constant in the place of a macro",
        ("#define BLOCK 64", "enum { BLOCK = 40 };"),
        ("for (int j0 = 0; j0 < N; j0 += BLOCK)", "for (int jb = 0; jb * BLOCK < N; ++jb)"),
        ("for (int k0 = 0; k0 < K; k0 += BLOCK) {", "for (int kb = 0, j0, k0; kb * BLOCK < K; ++kb) {"),
        ("int j, j1", "j0 = jb * BLOCK, k0 = kb * BLOCK; int j, j1"),
    ),
    ("01.3", "blocks of columns alone", (SOLVED["01.3"], ROW_BY_ROW)),
    ("01.4", "four rows", (SOLVED["01.4"], FOUR_ROWS)),
    ("01.4", "four steps of k", (SOLVED["01.4"], FOUR_STEPS)),
]


test_another_right_answer_passes = checks_of_other_answers(OTHERS)


class TestAnswer:
    """What is no C function, or none that can be called."""

    def test_before_anything_is_compiled(self, monkeypatch):
        monkeypatch.setattr(magic, "answers", {})
        told = "There is no C function for 01.1 yet. Run the cell that begins with %%c 01.1 first."
        assert labkit.check("01.1").failure == told
        with pytest.raises(simt.SimtError, match=r"no C function for 01\.1 yet"):
            labkit.answer("01.1")

    def test_a_kernel_for_a_c_function(self):
        feedback = labkit.check("01.1", labkit.kernels.load("matmul/1_naive"))
        assert feedback.failure == (
            "This is a CUDA kernel, and 01.1 asks for a C function: begin the cell with %%c 01.1."
        )

    def test_a_c_function_for_a_kernel(self):
        feedback = labkit.check("02.1", rung_in_c("cpu_naive"))
        assert "✗ the answer is a cell of %%cuda" in repr(feedback)
        assert feedback.failure == (
            "This is a C function, and 02.1 asks for a CUDA kernel: begin the cell with %%cuda 02.1."
        )

    def test_a_function_of_another_name(self):
        feedback = judged("01.3", ROW_BY_ROW.replace("matmul", "product"))
        assert "The source has no function 'matmul'. It has: product." in feedback.failure

    def test_a_helper_behind_it_is_not_taken_for_it(self):
        assert judged("01.3", f"{ROW_BY_ROW}int twice(int x) {{ return 2 * x; }}").ok

    def test_another_signature(self):
        feedback = judged("01.3", ROW_BY_ROW.replace("float *C", "double *C").replace("int K", "long K"))
        assert "does not fit: matmul takes double *C" in feedback.failure

    def test_one_that_never_ends(self, monkeypatch):
        monkeypatch.setattr("labkit.kernels.verify.TIMEOUT", 0.5)
        feedback = judged("01.3", ROW_BY_ROW.replace("j0 += 24", "j0 += 0"))
        assert "was stopped. Does each of its loops end?" in feedback.failure
        assert "gets all K terms" not in feedback.failure

    def test_one_that_crashes(self):
        feedback = judged("01.3", ROW_BY_ROW.replace("int j1 = j0 + 24", "int j1 = j0 + 24 / (M - M)"))
        assert "line 6: division by zero" in feedback.failure


class TestSpeed:
    """The criterion, with times given."""

    criterion = faster_in_c(2, "cpu_naive", "three loops", Matmul(8, 8, 8), hint="Why?")

    def judge(self, monkeypatch, *times):
        rounds = iter(times)
        monkeypatch.setattr(
            c_functions,
            "milliseconds",
            lambda *_: dict(zip(("yours", "three loops"), next(rounds), strict=True)),
        )
        self.criterion.test(rung_in_c("cpu_avx"))
        return list(rounds)

    def test_once_is_enough(self, monkeypatch):
        assert self.judge(monkeypatch, (9, 5), (2, 9), (2.1, 4.1), "not timed") == ["not timed"]

    def test_a_busy_machine_gets_another_chance(self, monkeypatch):
        busy, calm = [(4, 4.4), (3.9, 4.3), (4, 16)], [(2, 9), (9, 4.4), (2.2, 4.3)]
        assert self.judge(monkeypatch, *busy, *calm, "not timed") == ["not timed"]

    def test_what_holds_up_the_rung_makes_no_answer_fast(self, monkeypatch):
        with pytest.raises(Unmet, match=r"1\.5 times as fast"):
            self.judge(monkeypatch, (2, 9), (2, 12), (2, 3), *9 * [(2, 9)])

    def test_what_is_told(self, monkeypatch):
        with pytest.raises(Unmet) as unmet:
            self.judge(monkeypatch, *12 * [(2, 3)])
        assert str(unmet.value) == (
            "matmul M=8 N=8 K=8 float32: yours 2 ms, three loops 3 ms\n"
            "It is 1.5 times as fast; the goal is 2 times.\nWhy?"
        )

    def test_says_no_figures_where_it_is_met(self):
        assert self.criterion.text == "at least 2 times as fast as three loops, for M = 8, N = 8, K = 8"
