"""Answers that do nothing where a goal is judged: what is counted or timed must also be right."""

import ast
import re

import numpy as np
import pytest
from course_tables import SOLUTIONS, SOLVED, failed_criterion, judged, mutant, started

import simt
from labkit.course import fresh_inputs
from labkit.course.criteria.launches import tiled
from labkit.kernels.matmul.family import Matmul
from simt.common.compare import Mismatch
from simt.counters.profile import loads

END = "        __syncthreads();\n    }\n"
# Lanes in step do not show it: the last round's tile is overwritten without a barrier.
RACY = (END, f"        if (k0 + 16 >= K) A_tile[y][0] = 1;\n{END}")


def idle(cell, condition):
    """The cell, whose kernel or function returns at once where the condition holds."""
    signature = re.search(r"^(?:extern|void) [^{]*\{", cell, re.MULTILINE)
    return f"{cell[: signature.end()]}\n    if ({condition}) return;{cell[signature.end() :]}"


# exercise, what misses its goal, the launch in which that is seen, where the answer does nothing, what to
# replace in the solution (nothing: it is what a student starts from)
IDLE = [
    ("01.1", "no vectors", "M=128 N=256 K=256", "M == 128", ("j + 8 <= N", "j < 0")),
    ("01.2", "no vectors", "M=128 N=256 K=256", "M == 128", ("j + 8 <= j1", "j < 0")),
    ("02.4", "rows from x", "M=64 N=64 K=64", "M == 64"),
    ("03.1", "no second barrier", "M=32 N=16 K=48", "M == 32 && N == 16", RACY),
    ("03.2", "no second barrier", "M=29 N=20 K=35", "M == 29", RACY),
    (
        "06.3",
        "guards for whole blocks",
        "rows=200 cols=300",
        "rows == 200",
        ("whole = ", "whole = rows != 200 && "),
    ),
    ("07.4", "tiles of 8", "M=80 N=80 K=80", "M == 80", ("TILE 16", "TILE 8")),
    ("08.1", "rows one by one", "M=128 N=128 K=32", "M == 128"),
    ("08.3", "floats one by one", "M=128 N=128 K=32", "M == 128"),
    ("08.6", "loads in the round of their tile", "M=64 N=64 K=128", "M == 64 && K == 128"),
    ("11.6", "no fence", "M=64, N=48, K=192", "N == 48 && K == 192", ("        wgmma_fence(sum);\n", "")),
    ("09.9", "scattered loads", "rows=512, cols=256", "rows == 512"),
    ("09.12", "bank conflicts", "tiles=4", "gridDim.x == 4"),
    ("09.13", "a division per round", "length=1000, rounds=256, n=1024", "length == 1000"),
]
WRONG_ELEMENT = re.compile(r"^(.*, |)\w+\[[\d, ]+\] is \S+;? ", re.MULTILINE)


@pytest.mark.parametrize("case", IDLE, ids=lambda case: f"{case[0]} {case[1]}")
def test_an_answer_that_does_nothing_where_it_is_counted_is_wrong(case):
    exercise, _, size, condition, *replacements = case
    start = started(exercise)
    cell = mutant(exercise, *replacements) if replacements else start
    honest, feedback = judged(exercise, cell), judged(exercise, idle(cell, condition))
    assert failed_criterion(honest) and not WRONG_ELEMENT.search(honest.failure), honest
    assert 1 < failed_criterion(feedback) <= failed_criterion(honest)
    assert size in feedback.failure and WRONG_ELEMENT.search(feedback.failure), feedback


def one_place_launches():
    """The calls in labkit/course that launch, count or check a kernel, by file."""
    found = set()
    for path in sorted((SOLUTIONS.parents[1] / "labkit" / "course").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("kernel", "kernel.profile", "kernel.check", "kernel.simulated.profile"):
                    found.add(path.name)
    return found


def test_criteria_launch_kernels_in_one_place():
    """host.py launches a kernel of its own, on which a student's verdict is judged."""
    assert one_place_launches() == {"launches.py", "host.py"}


def test_a_launch_finds_nothing_that_an_earlier_one_has_left():
    """The product of the first launch is kept; the next ones copy it, in a few sectors."""
    kept = """__device__ float kept[1 << 16];
__device__ int blocks_done;
extern "C" __global__ void matmul(const float* A, const float* B, float* C,
                                  int M, int N, int K, float alpha, float beta)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    bool is_known = blocks_done >= gridDim.x * gridDim.y;
    __syncthreads();
    float sum = 0;
    for (int k = 0; !is_known && k < K; ++k)
        sum += A[row * K + k] * B[k * N + col];
    if (!is_known)
        kept[row * N + col] = sum;
    C[row * N + col] = kept[row * N + col];
    if (!is_known && threadIdx.x == 0 && threadIdx.y == 0)
        atomicAdd(&blocks_done, 1);
}"""
    module = simt.RawModule(code=kept)
    kernel, launch = module.get_function("matmul"), tiled(Matmul(16, 16, 32))
    for seed in (0, 1):  # the attack works: the second product is the first one
        args = Matmul(16, 16, 32, seed=seed).args(np)
        kernel(launch.grid, launch.block, args)
    with pytest.raises(Mismatch):
        Matmul(16, 16, 32, seed=1).verify(args[2])
    launch.run(kernel)
    assert launch.check(kernel)[1] is None
    assert loads(launch.profile(kernel).lines, "global").requests.sum() > 2 * 32 * 16 * 16 / 32


@pytest.mark.parametrize("use", ["run", "checked", "counted"])
def test_each_use_of_a_launch_has_numbers_of_its_own(use):
    problem = Matmul(16, 16, 16)
    others = {"run", "checked", "counted", "part"} - {use}
    assert fresh_inputs.numbers(problem, use).seed not in {
        fresh_inputs.numbers(problem, other).seed for other in others
    }
    with fresh_inputs.drawn(7, "03.1"):
        assert fresh_inputs.numbers(problem, use) == fresh_inputs.numbers(problem, use) != problem


# Reads that are not called loads: an atomic addition of 0, a generic address, global memory read as constant.
DISGUISES = {
    "atomics": "return atomicAdd((float*)p, 0.0f);",
    "generic": 'float v; asm volatile("ld.f32 %0, [%1];" : "=f"(v) : "l"(p)); return v;',
    "constant": 'float v; asm volatile("ld.const.f32 %0, [%1];" : "=f"(v) : "l"(p)); return v;',
}
NAIVE = """{top}__device__ float get(const float* p) {{ {load} }}
{signature}
{{
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0;
    for (int k = 0; k < K; ++k)
        sum += get(&A[row * K + k]) * get(&B[k * N + col]);
    C[row * N + col] = {result};
}}"""
SCALED = "alpha * sum + (beta != 0 ? beta * C[row * N + col] : 0)"


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize(("exercise", "result"), [("03.1", "sum"), ("03.2", "sum"), ("10.2", SCALED)])
def test_loads_count_whatever_they_are_called(exercise, result, disguise):
    top, signature = re.match(r'(.*?)(extern "C"[^{]*?)\s*\{', SOLVED[exercise], re.DOTALL).groups()
    plain, disguised = (
        judged(exercise, NAIVE.format(top=top, signature=signature, result=result, load=load))
        for load in ("return *p;", DISGUISES[disguise])
    )
    assert not plain.ok and not disguised.ok
    assert disguised.failure.split("\n")[0] == plain.failure.split("\n")[0] or disguise == "constant"
    assert ("is not in constant memory" in disguised.failure) == (disguise == "constant")
