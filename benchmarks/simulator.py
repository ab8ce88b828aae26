"""Time of kernels in the simulator: plain, counted and checked, beside other systems where theirs are given.

usage: python benchmarks/simulator.py [--threads 1] [--sizes 128,256,512,1024,2048] [--peers FILE ...]

first: from the source to the first result, nothing cached. cached: the same in a new process, with the disk
cache. plain: the median of the warm runs; counted and checked: as multiples of it. ns/step: plain, for 32
multiply-adds (a transpose: 32 elements), a thread of the host; it stays the same where cost grows with the
work. memory: most that the process had beyond the arrays and what it had before the runs.

Another table has the time to build unrolled kernels, from PTX to machine code, over their instructions: it
grows no faster than they do. A third has half products of 512^3 on tensor cores, up to Hopper's wgmma, TMA
and clusters. `--sizes ""` prints these two alone.

FILE holds JSON objects, one per line, with label, kernel, N and best_s, the best of a few warm runs: those of
Intel's and PoCL's runtimes for OpenCL, say, on the same naive, tiled and transpose kernels. Then a second
table says how many times as fast the simulator is (its best of the warm runs; for a label with "checked" in
it, the checked run).
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Annotated

os.environ["LABKIT_DEVICE"] = "simt"

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

# The kernels that peers run, in CUDA: float32, square, sizes that the tile divides.
SAME_AS_PEERS = {
    "naive": """extern "C" __global__ void naive(const float* A, const float* B, float* C, int n) {
        int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
        if (r < n && c < n) {
            float sum = 0;
            for (int k = 0; k < n; k++) sum += A[r * n + k] * B[k * n + c];
            C[r * n + c] = sum;
        }
    }""",
    "tiled": """extern "C" __global__ void tiled(const float* A, const float* B, float* C, int n) {
        __shared__ float a[16][16], b[16][16];
        int x = threadIdx.x, y = threadIdx.y, c = blockIdx.x * 16 + x, r = blockIdx.y * 16 + y;
        float sum = 0;
        for (int t = 0; t < n / 16; t++) {
            a[y][x] = A[r * n + t * 16 + x];
            b[y][x] = B[(t * 16 + y) * n + c];
            __syncthreads();
            for (int k = 0; k < 16; k++) sum += a[y][k] * b[k][x];
            __syncthreads();
        }
        C[r * n + c] = sum;
    }""",
    "transpose": """extern "C" __global__ void transpose(const float* A, float* B, int n) {
        __shared__ float s[32][33];
        int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 32 + tx, y = blockIdx.y * 32 + ty;
        for (int j = 0; j < 32; j += 8) s[ty + j][tx] = A[(y + j) * n + x];
        __syncthreads();
        x = blockIdx.y * 32 + tx;
        y = blockIdx.x * 32 + ty;
        for (int j = 0; j < 32; j += 8) B[(y + j) * n + x] = s[tx][ty + j];
    }""",
}
# Kernels whose threads wait often, for blocks of 256: each loads an element of n * n.
OF_BLOCKS = {
    "reduction": """extern "C" __global__ void reduction(const float* in, float* out) {
        __shared__ float s[256];
        int t = threadIdx.x;
        s[t] = in[blockIdx.x * 256 + t];
        __syncthreads();
        for (int half = 128; half > 0; half /= 2) {
            if (t < half) s[t] += s[t + half];
            __syncthreads();
        }
        if (t == 0) out[blockIdx.x] = s[0];
    }""",
    "barriers": """extern "C" __global__ void barriers(const float* in, float* out) {
        __shared__ float s[256];
        int t = threadIdx.x, i = blockIdx.x * 256 + t;
        s[t] = in[i];
        __syncthreads();
        for (int turn = 0; turn < 32; turn++) {
            float next = s[(t + 1) % 256];
            __syncthreads();
            s[t] = next;
            __syncthreads();
        }
        out[i] = s[t];
    }""",
}
# Kernels of the course, with their tiles and rows of threads per block.
COURSE = {
    "matmul/1_naive": (16, None),
    "matmul/2_tiled": (16, None),
    "transpose/3_padded": (32, None),
    "transpose/4_unrolled": (32, 8),
}
# Kernels to build, and how far they are unrolled.
UNROLLED = {
    "sum": (
        """extern "C" __global__ void unrolled(const float* a, const float* b, float* out) {
            float sum = 0;
            #pragma unroll
            for (int k = 0; k < STEPS; k++) sum += a[32 * k + threadIdx.x] * b[k];
            out[threadIdx.x] = sum;
        }""",
        (100, 300, 1000, 2000),
    ),
    "tensor cores": (
        """#include <mma.h>
        using namespace nvcuda;
        extern "C" __global__ void unrolled(const half* a, const half* b, float* out) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x[8];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y;
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[8][8];
            #pragma unroll
            for (int i = 0; i < 64; i++) wmma::fill_fragment(sum[i / 8][i % 8], 0);
            #pragma unroll
            for (int k = 0; k < STEPS; k++) {
                #pragma unroll
                for (int i = 0; i < 8; i++)
                    wmma::load_matrix_sync(x[i], a + 16 * (i * STEPS + k), 16 * STEPS);
                #pragma unroll
                for (int j = 0; j < 8; j++) {
                    wmma::load_matrix_sync(y, b + 16 * (j * STEPS + k), 16 * STEPS);
                    #pragma unroll
                    for (int i = 0; i < 8; i++) wmma::mma_sync(sum[i][j], x[i], y, sum[i][j]);
                }
            }
            #pragma unroll
            for (int i = 0; i < 64; i++)
                wmma::store_matrix_sync(out + 256 * i, sum[i / 8][i % 8], 16, wmma::mem_row_major);
        }""",
        (1, 4, 16, 32),
    ),
}
# A product of 64 x 256 by a warpgroup keeps 128 sums in each thread.
_SUMS = range(128)
UNROLLED["warpgroups"] = (
    f"""extern "C" __global__ void unrolled(unsigned long long a, unsigned long long b, float* out) {{
        float d[128] = {{}};
        #pragma unroll
        for (int k = 0; k < STEPS; k++)
            asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
                "{{{", ".join(f"%{i}" for i in _SUMS)}}}, %128, %129, 1, 1, 1, 0, 0;"
                : {", ".join(f'"+f"(d[{i}])' for i in _SUMS)} : "l"(a + 2 * k), "l"(b + 2 * k));
        #pragma unroll
        for (int i = 0; i < 128; i++) out[128 * i + threadIdx.x] = d[i];
    }}""",
    (1, 4, 16),
)
# On tensor cores: warp by warp, by a warpgroup, and with a producer warp and clusters; types float16.
ON_TENSOR_CORES = ("3_cp_async", "4_wgmma", "6_persistent", "7_cluster")
WARM_RUNS = 9
LONGEST = 2.0  # seconds a run; the checked and counted runs of larger sizes are left out


class Launch:
    """One kernel at one size: its source, and what it is launched with."""

    def __init__(self, name: str, size: int) -> None:
        import labkit

        self.name, self.size, self.is_product = name, size, "transpose" not in name
        if name in COURSE:
            tile, rows = COURSE[name]
            self.entry = name.partition("/")[0]
            problem = labkit.problem(self.entry, *[size] * (3 if self.is_product else 2))
            self.source, self.options = labkit.kernels.source(name), (f"-DTILE={tile}",)
            self.grid, self.block = problem.launch(tile, rows)
            self.args = problem.args(np)
            self.verify = lambda: problem.verify(problem.output(self.args))
        elif name in OF_BLOCKS:
            self.entry, self.source, self.options = name, OF_BLOCKS[name], ()
            self.grid, self.block, self.is_product = size * size // 256, 256, False
            blocks = np.random.default_rng(0).random((self.grid, 256), dtype=np.float32)
            right = blocks.sum(1) if name == "reduction" else np.roll(blocks, -32, 1)
            out = np.zeros(right.shape, np.float32)
            self.args = (blocks, out)
            self.verify = lambda: np.testing.assert_allclose(out, right, rtol=1e-4)
        else:
            self.entry, self.source, self.options = name, SAME_AS_PEERS[name], ()
            self.block, tile = ((16, 16), 16) if self.is_product else ((32, 8), 32)
            self.grid = (size // tile, size // tile)
            a, b = np.random.default_rng(0).random((2, size, size), dtype=np.float32)
            out = np.zeros((size, size), np.float32)
            self.args = (a, b, out, np.int32(size)) if self.is_product else (a, out, np.int32(size))
            right = a @ b if self.is_product else a.T
            self.verify = lambda: np.testing.assert_allclose(out, right, rtol=1e-4)

    def kernel(self):
        import simt

        return simt.RawModule(code=self.source, options=self.options).get_function(self.entry)

    def steps(self) -> float:
        return self.size ** (3 if self.is_product else 2) / 32


def seconds(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def times(run) -> list[float]:
    """Time the warm runs; one alone where it takes long."""
    first = seconds(run)
    return [first] if first > LONGEST else [seconds(run) for _ in range(WARM_RUNS)]


def measure(name: str, size: int, threads: int) -> dict[str, float]:
    """Seconds of each kind of run, and MB of memory."""
    os.environ["LABKIT_CACHE"] = tempfile.mkdtemp()  # nothing is compiled before it is timed
    launch = Launch(name, size)
    found = {"first": seconds(lambda: launch.kernel()(launch.grid, launch.block, launch.args))}
    launch.verify()
    found["cached"] = from_cache(name, size, threads)
    kernel, before = launch.kernel(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    plain = times(lambda: kernel(launch.grid, launch.block, launch.args))
    found |= {"plain": statistics.median(plain), "best": min(plain)}
    found["memory"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    for kind, run in (("counted", kernel.profile), ("checked", kernel.check)):
        if found["plain"] < LONGEST / 20:
            run(launch.grid, launch.block, launch.args)
            each = times(lambda run=run: run(launch.grid, launch.block, launch.args))
            found |= {kind: statistics.median(each), f"best {kind}": min(each)}
    return found


def from_cache(name: str, size: int, threads: int) -> float:
    """From the source to the first result in a new process that has imported labkit."""
    command = [sys.executable, str(Path(__file__).resolve()), "--cached", f"{name}:{size}"]
    command += ["--threads", str(threads)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def report_cached(name: str, size: int) -> None:
    launch = Launch(name, size)
    import simt  # noqa: F401 - not a part of what is timed

    print(seconds(lambda: launch.kernel()(launch.grid, launch.block, launch.args)))


def build_times() -> Table:
    """Time from PTX to machine code, for small launches in each mode; instructions are those in the table."""
    import simt
    from simt.counters.counting import Counting
    from simt.run.compile import compile_kernel
    from simt.run.observer import Observer
    from simt.sanitizer.sanitizer import Sanitizer

    modes = {"plain": Observer, "counted": Counting, "checked": Sanitizer}
    table = Table(title="time to build a kernel for 128 threads")
    for heading in ("kernel", "steps", "instructions", *(f"{mode}, s" for mode in modes), "plain, us/instr."):
        table.add_column(heading, justify="left" if heading == "kernel" else "right")
    for name, (source, steps) in UNROLLED.items():
        for count in steps:
            kernel = simt.RawModule(code=source, options=(f"-DSTEPS={count}",)).get_function("unrolled")
            found = []
            for observer in modes.values():
                build = partial(
                    compile_kernel, kernel.parsed, kernel.storage, (128, 1, 1), observer, False, True
                )
                found.append(seconds(build))
            length = len(kernel.parsed.code)
            cells = [f"{each:.2f}" for each in found]
            table.add_row(name, str(count), str(length), *cells, f"{1e6 * found[0] / length:.0f}")
    return table


def tensor_cores(size: int, threads: int) -> Table:
    """Time products of float16 matrices by rungs of the family `tensor_matmul`, compiled before."""
    import labkit
    from labkit import kernels

    table = Table(title=f"half products of {size}^3 on tensor cores, {threads} thread(s) of the host")
    for heading in ("kernel", "plain, ms", "counted, ms", "checked, ms"):
        table.add_column(heading, justify="left" if heading == "kernel" else "right")
    problem = labkit.problem("tensor_matmul", size, size, size, dtype="float16")
    for rung in ON_TENSOR_CORES:
        name, args = f"tensor_matmul/{rung}", problem.args(np)
        kernel = kernels.load(name, DTYPE=problem.ctype)
        launch = kernels.whole_launch(name, problem, args)
        found = []
        for run in (kernel, kernel.profile, kernel.check):
            run(*launch)
            found.append(statistics.median(times(partial(run, *launch))))
        problem.verify(problem.output(args))
        table.add_row(name, *(f"{1e3 * each:.1f}" for each in found))
    return table


def main(
    threads: int = 1,
    sizes: str = "128,256,512",
    peers: Annotated[list[Path] | None, typer.Option(help="JSON lines of other systems")] = None,
    cached: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if cached:
        name, _, size = cached.partition(":")
        report_cached(name, int(size))
        return
    console = Console(width=120)
    console.print(build_times())
    console.print(tensor_cores(512, threads))
    if not sizes:
        return
    table = Table(title=f"simulator, {threads} thread(s) of the host")
    headings = (
        "kernel",
        "N",
        "first, s",
        "cached, ms",
        "plain, ms",
        "counted",
        "checked",
        "ns/step",
        "memory, MB",
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "kernel" else "right")
    found = {}
    for name in (*SAME_AS_PEERS, *OF_BLOCKS, *COURSE):
        for size in map(int, sizes.split(",")):
            figures = found[name, size] = measure(name, size, threads)
            ratios = [
                f"{figures[k] / figures['plain']:.2f} x" if k in figures else ""
                for k in ("counted", "checked")
            ]
            step = 1e9 * figures["plain"] * threads / Launch(name, size).steps()
            row = [
                f"{figures['first']:.3f}",
                f"{1e3 * figures['cached']:.1f}",
                f"{1e3 * figures['plain']:.3f}",
            ]
            table.add_row(name, str(size), *row, *ratios, f"{step:.2f}", f"{figures['memory']:.1f}")
    console.print(table)
    if peers:
        console.print(
            beside(found, [json.loads(line) for file in peers for line in file.read_text().splitlines()])
        )


def beside(found: dict[tuple[str, int], dict[str, float]], rows: list[dict]) -> Table:
    """How many times as fast as each peer the simulator is, on the same kernel and size."""
    table = Table(title="times as fast as")
    for heading in ("peer", "kernel", "N", "peer, ms", "simulator, ms", "times as fast"):
        table.add_column(heading, justify="left" if heading in ("peer", "kernel") else "right")
    for row in rows:
        figures = found.get((row["kernel"], row["N"]), {})
        ours = figures.get("best checked" if "checked" in row["label"] else "best")
        if ours:
            cells = (f"{1e3 * row['best_s']:.3f}", f"{1e3 * ours:.3f}", f"{row['best_s'] / ours:.2f}")
            table.add_row(row["label"], row["kernel"], str(row["N"]), *cells)
    return table


if __name__ == "__main__":
    typer.run(main)
