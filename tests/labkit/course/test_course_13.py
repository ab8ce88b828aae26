"""Checks of notebook 13: what a program prints, how it ends, and what a checked run finds decide."""

import shutil

from course_tables import (
    NEEDS_COMPILERS,
    checks_of_mistakes,
    checks_of_other_answers,
    checks_of_starters,
    judged,
    solved,
)

from labkit.course.exercises import lab_13
from simt.programs.program import Unbuilt
from simt.programs.toolkit import toolkit

pytestmark = NEEDS_COMPILERS

STARTERS = {
    "13.1": (1, "2000", "9000", lab_13.MEMORY),
    "13.2": 2,
    "13.3": (1, lab_13.MENDED["out of bounds"]),
    "13.4": (2, lab_13.BY_EVENTS),
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

JOINED_STREAM = "    CUDA_CHECK(cudaStreamWaitEvent(stream[0], stop, 0));\n"
AROUND = """    cudaEvent_t first, last;
    cudaEventCreate(&first), cudaEventCreate(&last);
    cudaEventRecord(first, stream[0]);
    CUDA_CHECK(cudaEventRecord(start, stream[0]));
"""
AFTER = """    float whole;
    cudaDeviceSynchronize(), cudaEventRecord(last), cudaEventSynchronize(last);
    cudaEventElapsedTime(&whole, first, last);
"""
RATE = "rate = 3.0 * bytes / ms / 1e6;"
GUARDED = "    if (i < n)\n        y[i] = a * x[i] + y[i];"
SAXPY, TO_SAXPY = "const float* x, float* y)", "(n, a, d_x, d_y)"
MAIN = "int main(int argc, char** argv)\n{\n"
INPUT = "x[i] = i % 8, y[i] = i % 5;\n"
SUM = "double sum = 0;"
PRINTED = '    printf("sum: %.10g\\n", sum);\n'
FREES = "    CUDA_CHECK(cudaFree(d_x));\n    CUDA_CHECK(cudaFree(d_y));\n"
RESULT = "std::vector<float> z(n);\n    for (int i = 0; i < n; ++i) z[i] = a * x[i] + y[i];\n    "
Z = f"""{RESULT}float* d_z;
    cudaMalloc(&d_z, n * 4);
    cudaMemcpy(d_z, z.data(), n * 4, cudaMemcpyHostToDevice);
"""
ANEW = """    if (!getenv("ANEW")) {
        setenv("ANEW", "1", 1);
        execv("/proc/self/exe", argv);
    }
"""
UNIX = ("#include <vector>\n", "#include <vector>\n#include <unistd.h>\n")
NOT_JUDGED = """    bool judged = false;
    for (char** each = environ; *each; ++each)
        judged |= !strncmp(*each, "LABKIT_", 7);
"""

BY_HAND = """    if (threads > 1024) { fprintf(stderr, "invalid argument\\n"); exit(1); }
    if (n > CAPACITY) { fprintf(stderr, "device-side assert triggered\\n"); exit(1); }
    float* d_x;
"""

WRONG = [
    ("13.1", "no guard", 3, lab_13.FREED["out of bounds"], (GUARD, "    y[i] = a")),
    ("13.1", "on the host", 1, "saxpy", lab_13.MEMORY, (LAUNCH, ""), ("double sum = 0;", ON_THE_HOST)),
    ("13.1", "never freed", 3, lab_13.FREED["leak"], ("    CUDA_CHECK(cudaFree(d_y));\n", "")),
    ("13.1", "too few blocks", 1, lab_13.MEMORY, ("(n + 255) / 256", "n / 256")),
    ("13.1", "one block", 1, "2500", "5", ("(n + 255) / 256, 256", "1, n")),
    ("13.1", "y is x", 1, lab_13.MEMORY, (f"y{TO_THE_GPU}", f"x{TO_THE_GPU}")),
    ("13.1", "an empty kernel", 1, lab_13.MEMORY, (GUARDED, ""), (SUM, ON_THE_HOST)),
    (
        "13.1",
        "the result is uploaded",
        1,
        (GUARDED, "    if (i < n) y[i] = y[i];"),
        (f"y{TO_THE_GPU}", f"z{TO_THE_GPU}"),
        ("size_t bytes", f"{RESULT}size_t bytes"),
    ),
    (
        "13.1",
        "the result comes as x",
        1,
        (GUARDED, "    if (i < n) y[i] = x[i];"),
        (f"x{TO_THE_GPU}", f"z{TO_THE_GPU}"),
        ("size_t bytes", f"{RESULT}size_t bytes"),
    ),
    (
        "13.1",
        "the result less 1 is uploaded",
        1,
        (GUARDED, "    if (i < n) y[i] += 1;"),
        (f"y{TO_THE_GPU}", f"z{TO_THE_GPU}"),
        ("size_t bytes", f"{RESULT}for (float& each : z) each -= 1;\n    size_t bytes"),
    ),
    (
        "13.1",
        "another array has the result, for these x alone",
        2,
        lab_13.MEMORY,
        (SAXPY, "const float* x, float* y, const float* z)"),
        (TO_SAXPY, "(n, a, d_x, d_y, d_z)"),
        (GUARDED, "    if (i < n && x[i] == i % 8 && y[i] == i % 5)\n        y[i] = z[i];"),
        ("    float *d_x", f"    {Z}    float *d_x"),
        (FREES, FREES + "    cudaFree(d_z);\n"),
    ),
    (
        "13.1",
        "not brought back",
        1,
        ("    CUDA_CHECK(cudaMemcpy(y.data(), d_y, bytes, cudaMemcpyDeviceToHost));\n", ""),
        (SUM, ON_THE_HOST),
    ),
    (
        "13.1",
        "it ends before leaks are counted",
        3,
        (FREES, ""),
        (PRINTED, f"{PRINTED}    fflush(stdout);\n    _exit(0);\n"),
        UNIX,
    ),
    (
        "13.1",
        "it says itself that nothing is found",
        3,
        lab_13.FREED["leak"],
        (FREES, ""),
        (PRINTED, f'{PRINTED}    fprintf(stderr, "labkit check: no mistake found\\n");\n'),
    ),
    (
        "13.1",
        "no CUDA at all",
        1,
        ("    CUDA_CHECK", "    // "),
        ("    saxpy<<<", "    // "),
        (SUM, ON_THE_HOST),
        (PRINTED, f'{PRINTED}    fprintf(stderr, "     1  saxpy\\nlabkit check: no mistake found\\n");\n'),
    ),
    ("13.1", "started anew, without the check", 1, (MAIN, MAIN + ANEW), (FREES, ""), UNIX),
    (
        "13.1",
        "on the GPU only where it is judged",
        1,
        (MAIN, MAIN + NOT_JUDGED),
        UNIX,
        ("#include <vector>\n", "#include <vector>\n#include <cstring>\n"),
        (LAUNCH, f"    if (judged)\n    {LAUNCH}"),
        (SUM, f"if (!judged) {{ {ON_THE_HOST.replace(SUM, '')} }}\n    {SUM}"),
    ),
    ("13.2", "messages by hand", 2, ("    float* d_x;\n", BY_HAND)),
    ("13.2", "one message by hand", 3, ("    float* d_x;\n", BY_HAND.partition("\n")[2])),
    ("13.2", "the message of a launch by hand", 2, (ASKED, BY_HAND.partition("\n")[0] + "\n")),
    (
        "13.3",
        "a reset sweeps the leak away",
        3,
        lab_13.MENDED["leak"],
        ("        CUDA_CHECK(cudaFree(d_d));\n", "        CUDA_CHECK(cudaDeviceReset());\n"),
        ("        CUDA_CHECK(cudaFree(d_x));\n", ""),
    ),
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
    ("13.4", "a line through n", 2, lab_13.BY_EVENTS, (RATE, f"ms = 2.98e-6 * n;\n    {RATE}")),
    (
        "13.4",
        "a line through n, and no events",
        2,
        lab_13.BY_EVENTS,
        ("CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));", "ms = 2.98e-6 * n;"),
    ),
    (
        "13.4",
        "a third of the launch",
        1,
        ("triad<<<(n + 255) / 256, 256>>>", "triad<<<(n + 767) / 768, 256>>>"),
    ),
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
    (
        "13.5",
        "other events around all",
        2,
        lab_13.JOINED,
        ("    CUDA_CHECK(cudaEventRecord(start, stream[0]));\n", AROUND),
        (JOINED_STREAM, ""),
        ("    double sum = 0;", f"{AFTER}    double sum = 0;"),
    ),
    ("13.5", "a mean of the chunks", 2, lab_13.JOINED, ("sum, ms);", "sum, ms / 8);")),
    ("13.5", "the last stream is not waited for", 2, lab_13.JOINED, (JOINED_STREAM, "")),
    (
        "13.5",
        "the start is late",
        2,
        lab_13.JOINED,
        ("    CUDA_CHECK(cudaEventRecord(start, stream[0]));\n", ""),
        ("    CUDA_CHECK(cudaStreamWaitEvent(stream[1], start, 0));\n", ""),
        (
            "        triple<<<",
            "        if (c == 1)\n            CUDA_CHECK(cudaEventRecord(start, own));\n        triple<<<",
        ),
    ),
    ("13.5", "a part of the time", 2, lab_13.JOINED, ("sum, ms);", "sum, 0.7f * ms);")),
    ("13.5", "made up", 2, lab_13.JOINED, ("sum, ms);", "sum, 0.01f);")),
]

ALL_MANAGED = [
    ("    std::vector<float> x(n), y(n);\n", ""),
    ("    for (int i = 0; i < n; ++i)\n        x[i] = i % 8, y[i] = i % 5;\n", ""),
    ("    float *d_x, *d_y;\n", "    float *x, *y;\n"),
    ("    CUDA_CHECK(cudaMalloc(&d_x, bytes));\n", "    CUDA_CHECK(cudaMallocManaged(&x, bytes));\n"),
    ("    CUDA_CHECK(cudaMalloc(&d_y, bytes));\n", "    CUDA_CHECK(cudaMallocManaged(&y, bytes));\n"),
    ("    CUDA_CHECK(cudaMemcpy(d_x, x.data(), bytes, cudaMemcpyHostToDevice));\n", ""),
    (
        "    CUDA_CHECK(cudaMemcpy(d_y, y.data(), bytes, cudaMemcpyHostToDevice));\n",
        "    for (int i = 0; i < n; ++i)\n        x[i] = i % 8, y[i] = i % 5;\n",
    ),
    (TO_SAXPY, "(n, a, x, y)"),
    (
        "    CUDA_CHECK(cudaMemcpy(y.data(), d_y, bytes, cudaMemcpyDeviceToHost));\n",
        "    CUDA_CHECK(cudaDeviceSynchronize());\n",
    ),
    (FREES, ""),
    (
        "for (float each : y)\n        sum += each;",
        "for (int i = 0; i < n; ++i)\n        sum += y[i];\n    cudaFree(x), cudaFree(y);",
    ),
]
IN_PIECES = """    for (int first = 0; first < n; first += 300) {
        int count = n - first < 300 ? n - first : 300;
        saxpy<<<2, 256>>>(count, a, d_x + first, d_y + first);
    }
"""
ONE_ARRAY = [
    ("    CUDA_CHECK(cudaMalloc(&d_x, bytes));\n", "    CUDA_CHECK(cudaMalloc(&d_x, 2 * bytes));\n"),
    ("    CUDA_CHECK(cudaMalloc(&d_y, bytes));\n", "    d_y = d_x + n;\n"),
    ("    CUDA_CHECK(cudaFree(d_y));\n", ""),
]
TWO_BUFFERS = [
    ("CUDA_CHECK(cudaMalloc(&d_x, bytes));", "CUDA_CHECK(cudaMalloc(&d_x, 2 * size * sizeof(float)));"),
    ("*d_at = d_x + first;", "*d_at = d_x + c % 2 * size;"),
]
ONE = "    CUDA_CHECK(cudaEventRecord(start));\n    triad"
TEN = "    CUDA_CHECK(cudaEventRecord(start));\n    for (int i = 0; i < 10; ++i)\n        triad"
OUT_OF_PLACE = [
    ("__global__ void triple(int n, float* x)", "__global__ void triple(int n, const float* x, float* z)"),
    ("x[i] = 3 * x[i] + 1;", "z[i] = 3 * x[i] + 1;"),
    ("(count, d_at);", "(count, d_at, d_z + first);"),
    ("cudaMemcpyAsync(at, d_at, ", "cudaMemcpyAsync(at, d_z + first, "),
    (
        "    CUDA_CHECK(cudaMalloc(&d_x, bytes));\n",
        """    float* d_z;
    CUDA_CHECK(cudaMalloc(&d_x, bytes));
    CUDA_CHECK(cudaMalloc(&d_z, bytes));
""",
    ),
    ("    CUDA_CHECK(cudaFree(d_x));\n", "    CUDA_CHECK(cudaFree(d_x));\n    CUDA_CHECK(cudaFree(d_z));\n"),
]
ALLOCATED = """        float *d_x, *d_d;
        CUDA_CHECK(cudaMalloc(&d_x, n * sizeof(float)));
        CUDA_CHECK(cudaMalloc(&d_d, n * sizeof(float)));
"""
ONCE = [
    (ALLOCATED, ""),
    ("    double sum = 0;\n", f"    double sum = 0;\n{ALLOCATED}"),
    ("        CUDA_CHECK(cudaFree(d_d));\n", ""),
    ("        CUDA_CHECK(cudaFree(d_x));\n", ""),
    ("    printf(", "    CUDA_CHECK(cudaFree(d_d));\n    CUDA_CHECK(cudaFree(d_x));\n    printf("),
]

OTHERS = [
    ("13.1", "managed memory", *ALL_MANAGED),
    ("13.1", "in pieces", (LAUNCH, IN_PIECES)),
    ("13.1", "one array for both", *ONE_ARRAY),
    (
        "13.1",
        "y first",
        ("const float* x, float* y)", "float* y, const float* x)"),
        (TO_SAXPY, "(n, a, d_y, d_x)"),
    ),
    ("13.1", "a reset at the end", (PRINTED, f"{PRINTED}    CUDA_CHECK(cudaDeviceReset());\n")),
    ("13.1", "copied by cudaMemcpyDefault", ("cudaMemcpyDeviceToHost", "cudaMemcpyDefault")),
    ("13.2", "it peeks", ("CUDA_CHECK(cudaGetLastError());", "CUDA_CHECK(cudaPeekAtLastError());")),
    ("13.3", "allocated once", *ONCE),
    ("13.4", "a mean of 10", (ONE, TEN), ("    rate = ", "    ms /= 10;\n    rate = ")),
    ("13.5", "two buffers", *TWO_BUFFERS),
    ("13.5", "out of place", *OUT_OF_PLACE),
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
    monkeypatch.setattr("simt.compiler.wheels.program", lambda name: None)
    try:
        from course_tables import answer_of

        answer = answer_of("13.1", solved("13.1"))
        assert isinstance(answer, Unbuilt) and answer.run().code == 127
        feedback = judged("13.1", solved("13.1"))
        assert not feedback.ok and "pip install 'labkit[nvcc]'" in feedback.failure
    finally:
        toolkit.cache_clear()
    assert shutil.which("nvcc") or toolkit()
