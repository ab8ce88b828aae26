"""Checks of notebook 13: what a program prints, how it ends, and what a checked run finds decide."""

import shutil

import pytest
from course_tables import checks_of_mistakes, checks_of_other_answers, checks_of_starters, judged, solved

from labkit.course.exercises import lab_13
from labkit.programs.program import Unbuilt
from labkit.programs.toolkit import NoCompiler, host_compiler, toolkit


def is_missing():
    """Say whether programs cannot be built here."""
    try:
        return not (toolkit() and host_compiler())
    except NoCompiler:
        return True


pytestmark = pytest.mark.skipif(is_missing(), reason="nvcc or a C++ compiler is missing")

STARTERS = {
    "13.1": (1, "2000", "9000", lab_13.MEMORY),
    "13.2": 2,
    "13.3": (1, lab_13.MENDED["out of bounds"]),
    "13.4": (2, "0.01274", lab_13.BY_EVENTS),
    "13.5": (2, "0.1544", lab_13.TWO),
}

test_what_a_student_starts_from_fails_and_says_why = checks_of_starters(STARTERS)

GUARD = "    if (i < n)\n        y[i] = a"
ON_THE_HOST = "double sum = 0;\n    for (int i = 0; i < n; ++i)\n        y[i] += a * x[i];\n"
TO_THE_GPU = ".data(), bytes, cudaMemcpyHostToDevice"
UNASKED = "cudaMemcpy(x.data(), d_x, n * 4, cudaMemcpyDeviceToHost);"
STOP = "    CUDA_CHECK(cudaEventRecord(stop));\n"
WAIT = "    CUDA_CHECK(cudaEventSynchronize(stop));"
BACK = "    CUDA_CHECK(cudaMemcpy(c.data(), d_c, bytes, cudaMemcpyDeviceToHost));\n"
START = "    CUDA_CHECK(cudaEventRecord(start));"
PINNED, FREED = "CUDA_CHECK(cudaMallocHost(&x, bytes));", "CUDA_CHECK(cudaFreeHost(x));"
STEP = "d[i] = x[(i + 1) % n] - x[i];"
STEPS = "        steps<<<(n + 255) / 256, 256>>>(n, d_x, d_d);\n"
BROUGHT = "        CUDA_CHECK(cudaMemcpy(d.data(), d_d, n * sizeof(float), cudaMemcpyDeviceToHost));\n"
ON_THE_RING = "for (int i = 0; i < n; ++i) d[i] = x[(i + 1) % n] - x[i];\n"
LAUNCH = "    saxpy<<<(n + 255) / 256, 256>>>(n, a, d_x, d_y);\n"
ASKED = "    CUDA_CHECK(cudaGetLastError());\n    CUDA_CHECK(cudaDeviceSynchronize());\n"
COPY = "CUDA_CHECK(cudaMemcpy(x.data(), d_x, n * sizeof(float), cudaMemcpyDeviceToHost));"

WRONG = [
    ("13.1", "no guard", 3, lab_13.FREED["out of bounds"], (GUARD, "    y[i] = a")),
    ("13.1", "on the host", 2, lab_13.MEMORY, (LAUNCH, ""), ("double sum = 0;", ON_THE_HOST)),
    ("13.1", "never freed", 3, lab_13.FREED["leak"], ("    CUDA_CHECK(cudaFree(d_y));\n", "")),
    ("13.1", "too few blocks", 1, lab_13.MEMORY, ("(n + 255) / 256", "n / 256")),
    ("13.1", "one block", 1, "2500", "5", ("(n + 255) / 256, 256", "1, n")),
    ("13.1", "y is x", 1, lab_13.MEMORY, (f"y{TO_THE_GPU}", f"x{TO_THE_GPU}")),
    ("13.2", "a launch is not asked", 2, lab_13.CHECKED, (ASKED, ""), (COPY, UNASKED)),
    ("13.2", "another exit code", 2, "3", "1", ("exit(1)", "exit(3)")),
    ("13.2", "no message", 2, lab_13.CHECKED, ("cudaGetErrorString(error)", '"failed"')),
    ("13.3", "one free", 3, lab_13.MENDED["leak"], ("        CUDA_CHECK(cudaFree(d_d));\n", "")),
    ("13.3", "no ring", 1, lab_13.MENDED["out of bounds"], ("(i + 1) % n", "i + 1")),
    (
        "13.3",
        "the last one left out",
        2,
        lab_13.MENDED["out of bounds"],
        (STEP, "d[i] = i + 1 < n ? x[i + 1] - x[i] : 0;"),
    ),
    ("13.3", "on the host", 1, (STEPS, ""), (BROUGHT, ON_THE_RING)),
    ("13.4", "copies too", 2, lab_13.BY_EVENTS, (STOP, ""), (WAIT, f"{BACK}{STOP}{WAIT}")),
    ("13.4", "does not wait", 1, (WAIT, "")),
    ("13.4", "bytes of one array", 3, "12", ("3.0 * bytes", "1.0 * bytes")),
    (
        "13.4",
        "seconds",
        2,
        lab_13.BY_EVENTS,
        ("ms: %.6f", "ms: %.9f"),
        ("sum, ms, rate", "sum, ms / 1000, rate"),
    ),
    ("13.5", "one stream", 2, lab_13.TWO, ("stream[c % 2]", "stream[0]")),
    ("13.5", "pageable", 2, lab_13.TWO, (PINNED, "x = (float*)malloc(bytes);"), (FREED, "free(x);")),
    ("13.5", "a part of the time", 2, lab_13.JOINED, ("sum, ms);", "sum, 0.7f * ms);")),
    ("13.5", "made up", 2, lab_13.JOINED, ("sum, ms);", "sum, 0.01f);")),
]

OTHERS = [
    ("13.1", "blocks of 64", ("(n + 255) / 256, 256", "(n + 63) / 64, 64")),
    ("13.2", "the copy waits", (ASKED, "    CUDA_CHECK(cudaGetLastError());\n")),
    ("13.3", "by a condition", ("x[(i + 1) % n]", "x[i + 1 < n ? i + 1 : 0]")),
    ("13.4", "after another launch", (START, f"    triad<<<1, 32>>>(32, d_a, d_b, d_c);\n{START}")),
    ("13.5", "the other way round", ("stream[c % 2]", "stream[(c + 1) % 2]")),
]

test_a_typical_mistake_is_told_in_words_that_help = checks_of_mistakes(WRONG)
test_another_right_answer_passes = checks_of_other_answers(OTHERS)


def test_a_program_that_ends_in_a_strange_way_is_told():
    feedback = judged("13.1", solved("13.1").replace("int n = atoi(argv[1]);", "int n = *(volatile int*)0;"))
    assert "it was ended by signal 11" in feedback.failure


def test_a_program_that_prints_without_end_is_ended():
    feedback = judged(
        "13.1", solved("13.1").replace("double sum = 0;", 'double sum = 0; while (true) puts("more");')
    )
    assert "it was ended by signal 9" in feedback.failure


def test_where_nothing_can_be_built_the_check_says_what_is_missing(monkeypatch):
    toolkit.cache_clear()
    monkeypatch.setattr("labkit.compiler.wheels.program", lambda name: None)
    try:
        from course_tables import answer_of

        answer = answer_of("13.1", solved("13.1"))
        assert isinstance(answer, Unbuilt) and answer.run().code == 127
        feedback = judged("13.1", solved("13.1"))
        assert not feedback.ok and "pip install 'labkit[nvcc]'" in feedback.failure
    finally:
        toolkit.cache_clear()
    assert shutil.which("nvcc") or toolkit()
