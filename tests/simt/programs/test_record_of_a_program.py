"""The record of a program: what it did, whatever it prints, and nothing changes by being recorded."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from simt.programs.program import build_program
from simt.programs.recording import Span, record_of
from simt.programs.server.recorder import packed, unpacked

SOURCE = r"""
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <sys/wait.h>

extern char** environ;
__global__ void scale(int n, float factor, const float* x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = factor * x[i];
}
__global__ void asserts(int n) { assert(n < 0); }
__global__ void queue(int* next, int* slots) { slots[atomicAdd(next, 1)] = threadIdx.x; }

static float scaled(int n)
{
    float *x, *y, *host = (float*)malloc(n * sizeof(float)), sum = 0;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    for (int i = 0; i < n; ++i)
        host[i] = i;
    cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
    scale<<<(n + 31) / 32, 32>>>(n, 3, x, y);
    cudaMemcpy(host, y, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i)
        sum += host[i];
    cudaFree(x), cudaFree(y), free(host);
    return sum;
}

int main(int argc, char** argv)
{
    auto is = [&](const char* name) { return !strcmp(argv[1], name); };
    if (is("scale"))
        printf("%g\n", scaled(40));
    if (is("environment"))
        for (char** each = environ; *each; ++each)
            puts(*each);
    if (is("proc")) {
        char text[1 << 16];
        FILE* file = fopen("/proc/self/environ", "r");
        size_t length = fread(text, 1, sizeof text, file);
        for (size_t i = 0; i < length; ++i)
            putchar(text[i] ? text[i] : '\n');
    }
    if (is("exits")) {
        scaled(40);
        printf("done\n"), fflush(stdout);
        _exit(0);
    }
    if (is("anew") && argc == 2)
        execl("/proc/self/exe", argv[0], "scale", nullptr);
    if (is("forks")) {
        pid_t child = fork();
        printf("%g\n", scaled(child ? 40 : 50)), fflush(stdout);
        if (child)
            waitpid(child, nullptr, 0);
    }
    if (is("leaves a child")) {
        printf("%g\n", scaled(40)), fflush(stdout);
        if (!fork())
            sleep(60);
    }
    if (is("errors")) {
        scale<<<1, 2048>>>(0, 1, nullptr, nullptr);
        cudaGetLastError();
        cudaMalloc(nullptr, 1);
        asserts<<<1, 1>>>(1);
        cudaDeviceSynchronize();
    }
    if (is("events")) {
        cudaEvent_t start, stop;
        cudaEventCreate(&start), cudaEventCreate(&stop);
        cudaEventRecord(start);
        scaled(40);
        cudaEventRecord(stop), cudaEventSynchronize(stop);
        float ms;
        cudaEventElapsedTime(&ms, start, stop);
        printf("%.9g\n", ms);
    }
    if (is("leaks")) {
        void* d;
        cudaMalloc(&d, 100);
        cudaDeviceReset();
        cudaMalloc(&d, 200);
    }
    if (is("queue")) {
        int *d, h[2] = {0, 0};
        cudaMalloc(&d, 200 * sizeof(int)), cudaMemset(d, 0, 200 * sizeof(int));
        for (int i = 0; i < 3; ++i)
            queue<<<1, 32>>>(d, d + 1);
        cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
        printf("%d\n", h[0]);
        cudaFree(d);
    }
}
"""


@pytest.fixture(scope="module")
def program(nvcc):
    return build_program(SOURCE)


def line_of(text):
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


def floats(array):
    return array[: array.size // 4 * 4].view(np.float32)


@pytest.mark.parametrize("mode", ["run", "check", "profile"])
@pytest.mark.parametrize("word", ["scale", "events", "queue", "forks"])
def test_the_output_is_that_of_a_plain_run(program, word, mode):
    plain = program.run(word, mode=mode, variables={"LABKIT_DEVICE": "simt"})
    seen = program.run(word, mode=mode, record=1)
    # Of a parent and its child either may be first.
    assert sorted(seen.stdout.splitlines()) == sorted(plain.stdout.splitlines()) != []
    assert seen.code == plain.code == 0


def test_a_launch_its_arrays_and_the_copy(program):
    record = program.run("scale", record=5).record
    (launch,) = record.launches
    assert (launch.kernel, launch.grid, launch.block, launch.code) == ("scale", (2, 1, 1), (32, 1, 1), 0)
    x, y = launch.arrays
    numbers = np.arange(40, dtype=np.float32)
    assert np.array_equal(floats(x.before), numbers) and np.array_equal(x.after, x.before)
    assert np.array_equal(floats(y.after), 3 * numbers) and not np.array_equal(y.after, y.before)
    (copied,) = record.copies
    assert np.array_equal(floats(copied.contents), 3 * numbers) and copied.at > launch.at
    assert record.ended and record.is_whole and record.found == record.returned == []
    assert [each.copy for each in record.spans] == [1, Span.KERNEL, 2]
    assert all(
        before.end <= after.begin for before, after in zip(record.spans, record.spans[1:], strict=False)
    )


def test_a_launch_is_tried_on_numbers_of_the_seed(program):
    first, again, other = (program.run("scale", record=seed).record.launches[0].tried for seed in (5, 5, 6))
    x, y = first
    assert np.array_equal(floats(y.after), 3 * floats(x.before))
    assert 0 < np.ptp(floats(x.before)) < 16
    assert np.array_equal(again[0].before, x.before) and not np.array_equal(other[0].before, x.before)


@pytest.mark.parametrize("word", ["environment", "proc"])
def test_the_environment_does_not_tell(program, word):
    plain = program.run(word, variables={"LABKIT_GPU": "H200"}, record=1).stdout
    assert "LABKIT" not in plain and "PATH=" in plain
    assert program.run(word, mode="check", variables={"LABKIT_GPU": "GH200"}, record=2).stdout == plain


def test_a_program_that_ends_early_is_not_seen_to_its_end(program):
    outcome = program.run("exits", mode="check", record=1)
    assert outcome.stdout == "done\n" and not outcome.record.ended and len(outcome.record.launches) == 1


def test_a_program_that_is_started_anew_is_not_recorded(program):
    outcome = program.run("anew", record=1, variables={"LABKIT_DEVICE": "simt"})
    assert not outcome.record.ended and not outcome.record.launches


def test_what_a_child_does_is_not_in_the_record(program):
    outcome = program.run("forks", record=1)
    assert outcome.stdout.split() in (["2340", "3675"], ["3675", "2340"])
    assert [launch.grid for launch in outcome.record.launches] == [(2, 1, 1)] and outcome.record.ended


def test_a_child_that_stays_does_not_hold_the_record_up(program):
    start = time.monotonic()
    assert program.run("leaves a child", record=1).record.launches
    assert time.monotonic() - start < 40


def test_errors_that_calls_return(program):
    record = program.run("errors", record=1).record
    told = [(each.function.lstrip("_"), each.code) for each in record.returned]
    assert told == [
        ("cudaLaunchKernel", 1),
        ("cudaGetLastError", 1),
        ("cudaMalloc", 1),
        ("cudaDeviceSynchronize", 710),
    ]
    (launch,) = record.launches
    assert (launch.kernel, launch.code, launch.tried) == ("asserts", 710, None)


def test_times_between_events(program):
    outcome = program.run("events", record=1)
    (elapsed,) = outcome.record.elapsed
    assert elapsed.ms > 0 and float(outcome.stdout) == pytest.approx(elapsed.ms, rel=1e-6)
    (launch,) = outcome.record.launches
    assert elapsed.started < launch.at < elapsed.stopped
    assert elapsed.begin <= outcome.record.spans[0].begin and outcome.record.spans[-1].end <= elapsed.end


def test_a_reset_hides_no_leak(program):
    found = program.run("leaks", mode="check", record=1).record.found
    assert [kind for kind, _ in found] == ["leak", "leak"]
    first, second = (text for _, text in found)
    assert "100 bytes" in first and "200 bytes" in second
    assert first.partition(": ")[0] == f"program.cu:{line_of('cudaMalloc(&d, 100)')}"


def test_the_gpu_is_the_one_that_is_asked_for(program):
    assert program.run("scale", record=1, variables={"LABKIT_GPU": "GH200"}).record.gpu == "GH200"


def test_the_simulator_finds_packages_where_this_process_does(program, tmp_path, monkeypatch):
    """On a GPU, notebooks choose another device; some machines have packages on PYTHONPATH alone."""
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'seen')!r}, 'w').close()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("LABKIT_DEVICE", "gpu")
    assert program.run("scale", record=1).record.launches and (tmp_path / "seen").exists()


def test_nothing_stays_behind(program):
    files = Path("/proc/self/fd")
    before = len([*files.iterdir()])
    for _ in range(3):
        program.run("scale", record=1)
    assert len([*files.iterdir()]) == before
    servers = [
        path
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"simt.programs.server" in path.read_bytes()
        and str(os.getpid()) == path.with_name("stat").read_text().rpartition(")")[2].split()[1]
    ]
    assert not servers


def test_a_program_that_is_stopped_has_no_record(program):
    outcome = program.run("leaves a child", record=1, timeout=0.01)
    assert outcome.timed_out and outcome.record is None


def test_a_record_crosses_as_numbers_and_text():
    told = {"ended": True, "is_whole": True, "gpu": "H200", "found": [], "copies": []}
    told["launches"] = [
        {"at": 1, "kernel": "k", "grid": [1, 1, 1], "block": [2, 1, 1], "code": 0, "seconds": 0.5,
         "arrays": [{"start": 8, "before": np.arange(3, dtype=np.uint8), "after": np.ones(3, np.uint8)}],
         "tried": "out of bounds"}
    ]  # fmt: skip
    (launch,) = record_of(unpacked(packed(told))).launches
    assert launch.arrays[0].before.tolist() == [0, 1, 2] and launch.tried == "out of bounds"


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"ended": 1, "is_whole": 1, "gpu": "", "found": [], "copies": [{"at": 1, "to": 2, "contents": "x"}]},
    ],
)
def test_what_is_no_record_is_refused(told):
    with pytest.raises((KeyError, TypeError, ValueError)):
        record_of(told)
