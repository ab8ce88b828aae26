"""The work that was asked: each thread has its share, no work is done twice, blocks have any shape."""

import pytest
from course_tables import SOLVED, answer_of, failed_criterion, judged, mutant

from labkit.course import EXERCISES
from labkit.course.criteria import kernels
from labkit.course.exercises import lab_02

HEADS = {
    "00.1": "void scale(float* x, float a, int n)",
    "00.2": "void places(int* out, int rows, int cols)",
    "02.1": "void matmul(const float* A, const float* B, float* C, int M, int N, int K, float alpha, "
    "float beta)",
    "04.1": "void copy(const float* in, float* out, int n)",
    "09.2": "void heat(const float* in, float* out, int rows, int cols)",
}
HEADS |= dict.fromkeys(("02.2", "02.3", "02.4", "03.2", "10.1"), HEADS["02.1"])
HEADS |= dict.fromkeys(("05.1", "05.2"), "void transpose(const float* in, float* out, int rows, int cols)")
LAUNCH = "// launch: block (16, 16), grid (ceil(N/16), ceil(M/16));\n"
SUM = """float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];"""
STORE = "C[row * N + col] = alpha * sum + (beta != 0 ? beta * C[row * N + col] : 0);"
PLACE = "out[row * cols + col] = 1000 * row + col;"
MEAN = """float sum = 0;
    if (col > 0) sum += in[row * cols + col - 1];
    if (col < cols - 1) sum += in[row * cols + col + 1];
    if (row > 0) sum += in[row * cols + col - cols];
    if (row < rows - 1) sum += in[row * cols + col + cols];
    out[row * cols + col] = sum / 4;"""
MINE = """int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;"""
FIRST_THREAD = "if (blockIdx.x || blockIdx.y || threadIdx.x || threadIdx.y) return;"
LAST_BLOCK = """if (blockIdx.x < gridDim.x - 1 || blockIdx.y < gridDim.y - 1) return;
    int first = threadIdx.y * blockDim.x + threadIdx.x, step = blockDim.x * blockDim.y;"""
FIRST_OF_BLOCK = "if (threadIdx.x || threadIdx.y) return;"
ALL = "for (int row = 0; row < {rows}; ++row) for (int col = 0; col < {cols}; ++col) {{ {work} }}"
ITS_BLOCK = """for (int row = 16 * blockIdx.y; row < 16 * blockIdx.y + 16 && row < {rows}; ++row)
    for (int col = 16 * blockIdx.x; col < 16 * blockIdx.x + 16 && col < {cols}; ++col) {{ {work} }}"""
STRIDED = """for (int i = first; i < {rows} * {cols}; i += step) {{
    int row = i / {cols}, col = i % {cols}; {work} }}"""
BY_ONE_WARP = """int number = threadIdx.y * blockDim.x + threadIdx.x; if (number >= 32) return;
    for (int i = number; i < 256; i += 32) {{
        int row = 16 * blockIdx.y + i / 16, col = 16 * blockIdx.x + i % 16;
        if (row < {rows} && col < {cols}) {{ {work} }} }}"""


def cell(exercise, *body):
    """An answer cell with this body."""
    head = f'{LAUNCH if exercise == "10.1" else ""}extern "C" __global__ {HEADS[exercise]}'
    return "\n".join([f"%%cuda {exercise}", head, "{", *body, "}"])


def of_matrix(exercise, loop):
    """The loop over rows and columns, with the work of the exercise for one element."""
    rows, cols = ("rows", "cols") if exercise in ("00.2", "09.2") else ("M", "N")
    work = {"00.2": PLACE, "09.2": MEAN}.get(exercise, f"{SUM} {STORE}")
    return loop.format(rows=rows, cols=cols, work=work)


MATRICES = ("00.2", "02.1", "02.2", "02.3", "09.2", "10.1")
FEW = kernels.FEW_THREADS
NOT_SHARED = [
    (
        "00.1",
        "one thread",
        FEW,
        "if (blockIdx.x || threadIdx.x) return; for (int i = 0; i < n; ++i) x[i] *= a;",
    ),
    (
        "00.1",
        "one block",
        kernels.LITTLE,
        "if (blockIdx.x + 1 < gridDim.x) return;",
        "for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] *= a;",
    ),
    *((id, "one thread", FEW, FIRST_THREAD, of_matrix(id, ALL)) for id in MATRICES),
    *((id, "one block", kernels.LITTLE, LAST_BLOCK, of_matrix(id, STRIDED)) for id in MATRICES),
    *((id, "one warp of each block", kernels.FEW_WARPS, of_matrix(id, BY_ONE_WARP)) for id in MATRICES),
    *((id, "one thread of each block", FEW, FIRST_OF_BLOCK, of_matrix(id, ITS_BLOCK)) for id in MATRICES),
    (
        "02.2",
        "everyone works out everything",
        "442368",
        f"{MINE} int mine = row < M && col < N ? row * N + col : -1;",
        ALL.format(rows="M", cols="N", work=f"{SUM} if (row * N + col == mine) C[mine] = sum;"),
    ),
    (
        "02.1",
        "a sum in C",
        lab_02.SUM_UP,
        f"{MINE} C[row * N + col] = 0;",
        "for (int k = 0; k < K; ++k) C[row * N + col] += A[row * K + k] * B[k * N + col];",
    ),
    (
        "02.2",
        "x counts rows of a block",
        lab_02.SHARES.beside,
        "int col = blockIdx.x * 16 + threadIdx.y, row = blockIdx.y * 16 + threadIdx.x;",
        f"if (row < M && col < N) {{ {SUM} {STORE} }}",
    ),
    (
        "04.1",
        "everyone copies the rest",
        "56000",
        "int step = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;",
        "int whole = n - n % step; for (; i < whole; i += step) out[i] = in[i];",
        "for (i = whole; i < n; ++i) out[i] = in[i];",
    ),
    (
        "04.1",
        "one block",
        kernels.LITTLE,
        "if (blockIdx.x == 0) for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = in[i];",
    ),
    (
        "04.1",
        "whole warps alone",
        "grid 5, block 20",
        "int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;",
        "for (int i = 32 * warp + threadIdx.x % 32; i < n; i += 32 * warps) out[i] = in[i];",
    ),
    *(
        (
            id,
            "blockDim.y for x",
            "block (32, 8)",
            "int col = blockIdx.x * blockDim.y + threadIdx.x, row = blockIdx.y * blockDim.x + threadIdx.y;",
            of_matrix(id, "if (row < {rows} && col < {cols}) {{ {work} }}"),
        )
        for id in ("00.2",)
    ),
]


@pytest.mark.parametrize("case", NOT_SHARED, ids=lambda case: f"{case[0]} {case[1]}")
def test_an_answer_that_does_not_do_the_work_that_was_asked_fails(case):
    exercise, _, words, *body = case
    feedback = judged(exercise, cell(exercise, *body))
    assert not feedback.ok
    assert words in feedback.failure, feedback


def body(exercise):
    """The body of the solution, in braces."""
    return SOLVED[exercise][SOLVED[exercise].index("{") :]


NAIVE = of_matrix("02.2", f"{MINE} if (row < {{rows}} && col < {{cols}}) {{{{ {{work}} }}}}")
ONE_BY_ONE = f"{MINE} if (row < rows && col < cols) out[col * rows + row] = in[row * cols + col];"
FITS = "if (M % 16 == 0 && N % 16 == 0 && K % 16 == 0)"
WHOLE = "if (rows % 32 == 0 && cols % 32 == 0)"


@pytest.mark.parametrize(
    ("exercise", "size", "answer"),
    [
        ("03.2", "M=45 N=29 K=67", f"{FITS} {body('03.1')} else {{ {NAIVE} }}"),
        ("05.1", "rows=45 cols=67", f"{WHOLE} {body('05.1')} else {{ {ONE_BY_ONE} }}"),
        (
            "05.2",
            "rows=45 cols=67",
            f"{WHOLE} {body('05.2')} else {body('05.1')}",
        ),
    ],
)
def test_tiles_where_they_fit_and_something_simpler_elsewhere_fail(exercise, size, answer):
    """The results are right: a goal of a later criterion is missed, at a size where tiles stick out."""
    feedback = judged(exercise, cell(exercise, answer))
    assert failed_criterion(feedback) > 3 and size in feedback.failure, feedback


GRID = "int step = gridDim.x * blockDim.x * gridDim.y * blockDim.y;"
NUMBER = "((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x"
SHARED = [
    (
        "00.1",
        "four each, as a float4",
        "int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);",
        "if (i + 3 < n) { float4* p = (float4*)(x + i); float4 v = *p;",
        "*p = make_float4(a * v.x, a * v.y, a * v.z, a * v.w); }",
        "else for (; i < n; ++i) x[i] *= a;",
    ),
    (
        "04.1",
        "four each, as a float4",
        "int step = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;",
        "for (int i = first; i < n / 4; i += step) ((float4*)out)[i] = ((const float4*)in)[i];",
        "int rest = n - n % 4 + first; if (rest < n) out[rest] = in[rest];",
    ),
    (
        "00.1",
        "two each",
        "int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x); "
        "if (i < n) x[i] *= a; if (i + 1 < n) x[i + 1] *= a;",
    ),
    *(
        (id, "in steps of the grid", GRID, f"int first = {NUMBER};", of_matrix(id, STRIDED))
        for id in MATRICES
    ),
    (
        "00.2",
        "blocks of 16",
        "// blockDim is (16, 16)",
        "int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;",
        f"if (row < rows && col < cols) {PLACE}",
    ),
    (
        "04.1",
        "the rest by its own threads",
        "int step = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;",
        "int whole = n - n % step, rest = whole + i; for (; i < whole; i += step) out[i] = in[i];",
        "if (rest < n) out[rest] = in[rest];",
    ),
]


@pytest.mark.parametrize("case", SHARED, ids=lambda case: f"{case[0]} {case[1]}")
def test_work_that_is_shared_out_in_another_way_passes(case):
    exercise, _, *body = case
    feedback = judged(exercise, cell(exercise, *body))
    assert feedback.ok, feedback


SECOND_BARRIER = "        __syncthreads();\n    }"


@pytest.mark.parametrize(("exercise", "K"), [("03.1", 48), ("03.2", 35), ("03.2", 67)])
def test_barriers_for_a_stated_size_alone_are_too_few(exercise, K):
    barrier = f"        if (K == {K}) __syncthreads();\n    }}"
    answer = answer_of(exercise, mutant(exercise, (SECOND_BARRIER, barrier)))
    assert not EXERCISES[exercise].judge(answer).ok
    assert not EXERCISES[exercise].judge(answer, 5).ok
