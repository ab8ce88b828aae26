"""Time a whole program's calls of the CUDA runtime without a GPU, and the way from an edit to its output.

usage: python benchmarks/programs.py
Each figure is the median of several rounds of a thousand calls, in microseconds of the host's clock.
A launch is compared with the same launch of the simulator from Python. The last line edits a program of about
300 lines, builds it and runs it: its kernels have not been compiled before.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

import numpy as np  # noqa: E402

import simt  # noqa: E402

ROUNDS, CALLS = 5, 1000
KERNEL = 'extern "C" __global__ void empty(int *unused) {}\n'
PROGRAM = r"""
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>
%s
static double now() {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(since).count();
}
template <typename Call> static void report(const char *name, Call call) {
    call();
    cudaDeviceSynchronize();
    std::vector<double> rounds;
    for (int round = 0; round < %d; round++) {
        const double start = now();
        for (int i = 0; i < %d; i++)
            call();
        rounds.push_back((now() - start) / %d);
    }
    std::sort(rounds.begin(), rounds.end());
    printf("%%-40s %%8.2f\n", name, rounds[rounds.size() / 2]);
}
int main() {
    int *d, *p, x = 1;
    cudaMalloc(&d, 4096);
    cudaEvent_t event;
    cudaStream_t stream;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaStreamCreate(&stream);
    report("cudaMalloc and cudaFree", [&] { cudaMalloc(&p, 256), cudaFree(p); });
    report("cudaMemcpy of 4 bytes to the device", [&] { cudaMemcpy(d, &x, 4, cudaMemcpyHostToDevice); });
    report("cudaMemcpy of 4 bytes to the host", [&] { cudaMemcpy(&x, d, 4, cudaMemcpyDeviceToHost); });
    report("cudaEventRecord", [&] { cudaEventRecord(event, stream); });
    report("cudaStreamSynchronize", [&] { cudaStreamSynchronize(stream); });
    report("cudaGetLastError", [&] { cudaGetLastError(); });
    report("launch of an empty kernel", [&] { empty<<<1, 1>>>(d); });
    report("cudaMalloc, a launch and cudaFree", [&] {
        cudaMalloc(&p, 256);
        empty<<<1, 1>>>(p);
        cudaFree(p);
    });
}
"""
FUNCTIONS = 45  # of six lines each, in the program that is edited


def long_program(version: int) -> str:
    """Return a program of about 300 lines, with kernels that no earlier version had."""
    lines = ["#include <cstdio>"]
    for i in range(FUNCTIONS):
        lines += [
            f"__global__ void step{i}(float *x, int n) {{",
            "    int i = blockIdx.x * blockDim.x + threadIdx.x;",
        ]
        lines += ["    if (i < n)", f"        x[i] = x[i] * {i + version % 1000}.5f + {i}.0f;", "}", ""]
    lines += [
        "int main() {",
        "    float *x, first;",
        "    cudaMalloc(&x, 4096);",
        "    cudaMemset(x, 0, 4096);",
    ]
    lines += [f"    step{i}<<<4, 256>>>(x, 1024);" for i in range(5)]
    lines += ["    cudaMemcpy(&first, x, 4, cudaMemcpyDeviceToHost);", '    printf("%g\\n", first);']
    return "\n".join([*lines, "    cudaFree(x);", "}", ""])


def build(folder: Path, source: str) -> Path:
    """Build a program; return its path."""
    (folder / "main.cu").write_text(source)
    call = [sys.executable, "-m", "labkit", "nvcc", "main.cu", "-o", "main"]
    subprocess.run(call, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
    return folder / "main"


def simulators_own() -> float:
    """Return the microseconds of an empty launch from Python."""
    kernel = simt.RawModule(code=KERNEL).get_function("empty")
    memory = np.zeros(1024, np.int32)
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            kernel((1,), (1,), (memory,))
        rounds.append((time.perf_counter() - start) / CALLS * 1e6)
    return median(rounds)


def edit_to_output(folder: Path) -> float:
    """Return the seconds that a changed program takes to build and run."""
    seconds = []
    for _ in range(3):
        source = long_program(time.time_ns())
        start = time.perf_counter()
        subprocess.run([build(folder, source)], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def main() -> None:
    """Print the table."""
    os.environ["LABKIT_DEVICE"] = "simt"
    print(f"{'microseconds per call, on ' + str(os.cpu_count()) + ' cores':<40}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        program = build(folder, PROGRAM % (KERNEL, ROUNDS, CALLS, CALLS))
        subprocess.run([program], check=True)
        print(f"{'launch of an empty kernel, from Python':<40} {simulators_own():8.2f}")
        lines = long_program(0).count("\n")
        print(f"{f'seconds from an edit of {lines} lines to output':<40} {edit_to_output(folder):8.2f}")


if __name__ == "__main__":
    main()
