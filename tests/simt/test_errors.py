"""What a student does wrong comes back as an error that names the line, the thread and the way out; nothing
else is lost.
"""

import multiprocessing
import os
import signal
import threading
import time

import numpy as np
import pytest

import simt

COPY = """extern "C" __global__ void f(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}"""


def kernel(source, name="f", **options):
    return simt.RawModule(code=source, **options).get_function(name)


def floats(*shape):
    return np.zeros(shape, np.float32)


def test_compile_error_names_the_line():
    with pytest.raises(simt.CompileError) as error:
        kernel(COPY.replace("out[i] = in[i];", "out[i] = inn[i];"))
    assert [(line, severity) for line, severity, _ in error.value.lines] == [(3, "error")]
    assert 'identifier "inn" is undefined' in error.value.log


def test_write_behind_the_end():
    out = floats(40)
    with pytest.raises(simt.InvalidAccess) as error:
        kernel(COPY)(2, 32, (floats(64), out, np.int32(40)))
    finding = error.value.finding
    assert (finding.tool, finding.kind, finding.line) == ("memcheck", "out of bounds", 3)
    assert (finding.block, finding.thread) == ((1, 0, 0), (8, 0, 0))
    assert "invalid global write of 4 bytes" in finding.message
    assert ": `out[40]` is past the end of `out`, which has 40 elements" in finding.message
    assert "out[i] = in[i];" in str(finding)


def test_read_before_the_start():
    source = COPY.replace("in[i]", "in[i - 2]")
    with pytest.raises(simt.InvalidAccess, match=r"read of 4 bytes: `in\[-2\]` is before the start of `in`"):
        kernel(source)(1, 32, (floats(32), floats(32), np.int32(32)))


def test_guarded_lanes_outside_are_no_mistake():
    source = COPY.replace("out[i] =", "if (i < n && i > 2) out[i] =").replace("in[i]", "in[i + 5]")
    values, out = np.arange(45, dtype=np.float32), floats(40)
    kernel(source)(2, 32, (values, out, np.int32(40)))
    np.testing.assert_array_equal(out, [0, 0, 0, *values[8:45]])


def test_misaligned_vector_load():
    source = """extern "C" __global__ void f(const float* in, float4* out) {
        out[threadIdx.x] = *(const float4*)(in + 1 + 4 * threadIdx.x);
    }"""
    with pytest.raises(simt.InvalidAccess, match=r"byte 4 of `in` is not a multiple of 16"):
        kernel(source)(1, 2, (floats(64), floats(64)))


def test_null_pointer():
    source = """extern "C" __global__ void f(float* out) {
        float* p = 0; if (out[0] == 0) p += 2; else p = out; *p = 1;
    }"""
    with pytest.raises(simt.InvalidAccess, match=r"null pointer plus 8 bytes"):
        kernel(source)(1, 1, (floats(4),))


@pytest.mark.parametrize(
    "index, message",
    [("threadIdx.x + 1", "ends 4 bytes past"), ("(int)threadIdx.x - 3", "12 bytes before")],
)
def test_outside_shared_memory(index, message):
    source = """extern "C" __global__ void f(float* out) {
        __shared__ float s[32];
        s[INDEX] = 1; __syncthreads(); out[threadIdx.x] = s[threadIdx.x];
    }""".replace("INDEX", index)
    with pytest.raises(
        simt.InvalidAccess,
        match=rf"line 3: invalid shared write of 4 bytes: .*{message}.*128 bytes of shared memory",
    ):
        kernel(source)(1, 32, (floats(32),))


def test_barrier_in_a_branch_that_parts_a_warp():
    source = """extern "C" __global__ void f(float* out) {
        if (threadIdx.x < 16) {
            __syncthreads();
            out[threadIdx.x] = 1;
        }
        out[threadIdx.x] += 2;
    }"""
    with pytest.raises(
        simt.BarrierError, match=r"line 3: .*16 of the warp's 32 threads are elsewhere"
    ) as error:
        kernel(source)(1, 32, (floats(32),))
    assert error.value.finding.tool == "synccheck"


def test_warps_at_different_barriers():
    source = """extern "C" __global__ void f(float* out) {
        if (threadIdx.x < 32) {
            out[0] = 1;
            __syncthreads();
            out[1] = 2;
        } else {
            out[2] = 3;
            __syncthreads();
            out[3] = 4;
        }
    }"""
    with pytest.raises(simt.BarrierError, match="line 8 and line 4"):
        kernel(source)(1, 64, (floats(4),))


def test_endless_loop_names_its_line_and_stops():
    source = """extern "C" __global__ void f(volatile int* out) {
        out[0] = 7;
        while (out[0] == 7)
            out[1] += 1;
    }"""
    out = np.zeros(2, np.int32)
    start = time.perf_counter()
    with pytest.raises(simt.Timeout, match=r"line [34]: .*more than 0.2 s") as error:
        kernel(source)(1, 1, (out,), timeout=0.2)
    assert time.perf_counter() - start < 2
    assert error.value.finding.line in (3, 4)
    assert out[1] > 0


def test_the_simulator_goes_on_after_mistakes():
    copy, out = kernel(COPY), floats(32)
    for _ in range(3):
        with pytest.raises(simt.InvalidAccess):
            copy(2, 32, (floats(32), floats(32), np.int32(32)))
    copy(1, 32, (np.ones(32, np.float32), out, np.int32(32)))
    assert out.all()


@pytest.mark.parametrize(
    "grid, block, message",
    [
        (1, (33, 33), r"block \(33, 33\) has 1089 threads; a block holds at most 1024. Choose TILE ≤ 32"),
        (1, (1, 1, 128), "limits are"),
        (1, 0, "no threads"),
        (0, 32, "no blocks"),
        ((1, 70000), 32, r"grid \(1, 70000\) is too large"),
        ((1, 1, 1, 1), 32, "tuple of 1 to 3"),
        (1, (8.0, 8), "must be an int or a tuple"),
        (1, 8.0, "must be an int or a tuple"),
        ("1", 8, "must be an int or a tuple"),
    ],
)
def test_launch_limits(grid, block, message):
    out = floats(32)
    with pytest.raises(simt.LaunchError, match=message):
        kernel(COPY)(grid, block, (floats(32) + 1, out, np.int32(32)))
    assert not out.any()


def test_too_much_shared_memory():
    static = """extern "C" __global__ void f(float* out) {
        __shared__ float s[16384]; s[threadIdx.x] = 1; out[0] = s[5];
    }"""
    with pytest.raises(simt.LaunchError, match=r"65536 bytes of shared memory.* 49152 \(48 KB\)"):
        kernel(static)
    with pytest.raises(simt.LaunchError, match="the limit is 49152"):
        kernel(COPY)(1, 32, (floats(32), floats(32), np.int32(32)), shared_mem=50000)


ONE = floats(32) + 1


@pytest.mark.parametrize(
    "args, message",
    [
        ((ONE, ONE), "takes 3 arguments, 2 were given"),
        ((ONE, ONE, 3.5), "argument 2 is the Python float 3.5; the kernel takes an integer of 4 bytes"),
        ((ONE, ONE, np.int64(3)), r"argument 2 is int64 \(8 bytes\); the kernel takes 4 bytes: np.int32"),
        ((ONE, ONE, np.float32(3)), "argument 2 is float32; the kernel takes an integer"),
        ((ONE, ONE, 2**40), "does not fit"),
        ((ONE, [1, 2], np.int32(3)), "argument 1 is a list"),
        ((ONE, np.int32(3), np.int32(3)), r"argument 1 is int32 \(4 bytes\); the kernel takes 8 bytes"),
        ((ONE, np.complex64(1), np.int32(3)), "argument 1 is complex64"),
        ((ONE, ONE, ONE), "the kernel takes a number of 4 bytes here, not an array"),
        ((ONE[::2], ONE, np.int32(3)), "argument 0 .* is not contiguous"),
        ((ONE, ONE.astype(">f4"), np.int32(3)), "byte order"),
    ],
)
def test_arguments_that_do_not_fit(args, message):
    with pytest.raises(simt.LaunchError, match=message):
        kernel(COPY)(1, 32, args)
    assert (ONE == 1).all()


def test_read_only_array():
    frozen = floats(32)
    frozen.flags.writeable = False
    with pytest.raises(simt.LaunchError, match="read-only"):
        kernel(COPY)(1, 32, (ONE, frozen, np.int32(32)))


def test_python_numbers_that_fit_are_taken():
    source = """extern "C" __global__ void f(float* out, int i, unsigned j, float x, double y) {
        out[i] = x + y + j;
    }"""
    out = floats(4)
    kernel(source)(1, 1, (out, 2, 4294967295, 0.5, 1))
    assert out[2] == np.float32(4294967296.5)


def test_unknown_kernel_and_instruction():
    module = simt.RawModule(code=COPY)
    with pytest.raises(simt.SimtError, match=r"no kernel is called `g`; this module has: `f`"):
        module.get_function("g")
    source = """extern "C" __global__ void f(int* out) {
        out[0] = 1;
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 "
            "{%0,%0,%0,%0},{%0,%0},{%0,%0},{%0,%0,%0,%0};" :: "r"(0));
    }"""
    with pytest.raises(simt.SimtError, match=r"line 3: .*does not know the PTX instruction `mma.sync"):
        kernel(source)(1, 32, (np.zeros(1, np.int32),))


def test_ctrl_c_stops_a_kernel():
    source = """extern "C" __global__ void f(volatile int* out) { while (out[0] == 0) out[1] += 1; }"""
    endless = kernel(source)
    endless(1, 32, (np.ones(2, np.int32),))
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        endless(1, 32, (np.zeros(2, np.int32),))
    assert time.perf_counter() - start < 5


def test_time_limit_of_a_launch_that_was_short_the_last_time():
    source = """extern "C" __global__ void f(volatile int* out) { while (out[0] == 0) out[1] += 1; }"""
    endless = kernel(source)
    for _ in range(2):
        endless(1, 32, (np.ones(2, np.int32),))
        with pytest.raises(simt.Timeout, match="line 1"):
            endless(1, 32, (np.zeros(2, np.int32),), timeout=0.2)
    endless(1, 32, (np.ones(2, np.int32),))


def test_launches_from_other_threads_and_from_child_processes():
    add = kernel("""extern "C" __global__ void f(int* out) { atomicAdd(out, 1); }""")
    counts = [np.zeros(1, np.int32) for _ in range(4)]

    def launch(count):
        for _ in range(5):
            add(1, 32, (count,))

    threads = [threading.Thread(target=launch, args=(count,)) for count in counts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [int(count[0]) for count in counts] == [160] * 4
    if hasattr(os, "fork"):
        child = multiprocessing.get_context("fork").Process(target=launch, args=(np.zeros(1, np.int32),))
        child.start()
        child.join(30)
        assert child.exitcode == 0


def test_endless_loop_that_a_barrier_ends():
    """The compiler places the barrier last, so that a warp gets to the loop's head where it is resumed."""
    source = """extern "C" __global__ void f(const float* in, float* out, int rows, int n) {
        __shared__ float a[16][16], b[16][16];
        int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
        float sum = 0;
        for (int i = 0; i < n;) {
            a[y][x] = row < rows && i + x < n ? in[row * n + i + x] : 0;
            b[y][x] = i + y < n && col < n ? in[(i + y) * n + col] : 0;
            __syncthreads();
            for (int k = 0; k < 16; ++k) sum += a[y][k] * b[k][x];
            __syncthreads();
        }
        if (row < rows && col < n) out[row * n + col] = sum;
    }"""
    square = np.zeros((16, 16), np.float32)
    with pytest.raises(simt.Timeout, match="in the loop here"):
        kernel(source)(1, (16, 16), (square, square.copy(), np.int32(16), np.int32(16)), timeout=0.2)


@pytest.mark.parametrize("threads", [1, 48])
def test_endless_loop_that_touches_no_memory(threads):
    """The compiler may not move the look at the time limit out of the loop."""
    source = """extern "C" __global__ void f(int* out, int step) {
        int sum = 0;
        for (int i = 0; i < 10; i += step) sum += i * step;
        out[threadIdx.x] = sum;
    }"""
    with pytest.raises(simt.Timeout, match="line 3"):
        kernel(source)(1, threads, (np.zeros(64, np.int32), np.int32(0)), timeout=0.2)


def test_endless_loop_that_goes_back_from_a_barrier():
    source = """extern "C" __global__ void f(volatile int* out) {
        asm volatile("{ bra.uni IN; AGAIN: bar.sync 0; IN: st.volatile.global.u32 [%0], 1;"
                     " bra.uni AGAIN; }" :: "l"(out) : "memory");
    }"""
    with pytest.raises(simt.Timeout, match="line 2"):
        kernel(source)(1, 64, (np.zeros(1, np.int32),), timeout=0.2)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"code": 3}, "code is a int; it must be CUDA"),
        ({"code": COPY, "options": "-DX=1"}, r"options is a list of strings, such as \['-DX=1'\]"),
        ({"code": COPY, "name_expressions": "f"}, "name_expressions is a list"),
    ],
)
def test_modules_of_the_wrong_types(wrong, message):
    with pytest.raises(TypeError, match=message):
        simt.RawModule(**wrong)


def test_shared_memory_must_be_whole_bytes():
    with pytest.raises(simt.LaunchError, match=r"shared_mem=3.5 must be a whole number"):
        kernel(COPY)(1, 32, (floats(32), floats(32), np.int32(32)), shared_mem=3.5)


def test_an_array_without_elements():
    with pytest.raises(
        simt.InvalidAccess, match=r"`out\[0\]` is past the end of `out`, which has 0 elements"
    ):
        kernel(COPY)(1, 1, (floats(1), floats(0), np.int32(0)))


def test_outside_shared_memory_in_the_last_of_many_blocks():
    """The distance is from the block's own shared memory, whichever thread of the host ran it."""
    source = """extern "C" __global__ void f(int* out) {
        __shared__ int s[8];
        for (int i = 0; i < 2000; i++) s[i % 8] = out[i % 8];
        s[blockIdx.x == 63 ? 9 : 3] = 1;
        out[8 + blockIdx.x] = s[3];
    }"""
    for _ in range(5):
        with pytest.raises(
            simt.InvalidAccess, match=r"line 4: .*ends 8 bytes past the end of the block's 32"
        ):
            kernel(source)(64, 1, (np.zeros(72, np.int32),))
