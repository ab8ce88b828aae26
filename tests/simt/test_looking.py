"""Looking changes nothing: after a prediction, a recorded block or a listing, memory is as it was before.

`profile` and `check` run the kernel once, so they leave memory as one plain run does. The kernels keep what
the next launch depends on: counters, tickets, queues, states of random numbers, variables of the module,
surfaces.
"""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
import simt
from simt.recording.record import record
from simt.texture import (
    ChannelFormatDescriptor,
    CUDAarray,
    ResourceDescriptor,
    SurfaceObject,
    cudaArraySurfaceLoadStore,
    cudaChannelFormatKindFloat,
    cudaResourceTypeArray,
)

THREADS = 64
CODE = """
__device__ unsigned launches, taken, salt;
__device__ float total = 1.5f;
__device__ int ring[64], last[4];
__constant__ float scale = 2;

// A queue: each thread that finds something takes the next place, and the order is nobody's.
extern "C" __global__ void compact(const int* in, int* out, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > 0) out[atomicAdd(count, 1)] = in[i];
}

// The block that takes the last ticket adds up what the others left, and resets the ticket.
extern "C" __global__ void last_block(const int* in, int* out, int* parts, int n) {
    __shared__ bool is_last;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) parts[blockIdx.x] = 0;
    __syncthreads();
    if (i < n) atomicAdd(&parts[blockIdx.x], in[i]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(&taken, 1) == gridDim.x - 1;
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int sum = 0;
        for (unsigned b = 0; b < gridDim.x; b++) sum += ((volatile int*)parts)[b];
        out[0] = sum;
        taken = 0;
        atomicAdd(&launches, 1);
    }
}

// Blocks take work from a counter until there is none.
extern "C" __global__ void tickets(const int* in, int* out, int* next, int n) {
    __shared__ int mine;
    for (;;) {
        if (threadIdx.x == 0) mine = atomicAdd(next, 1);
        __syncthreads();
        int first = mine * blockDim.x, at = first + threadIdx.x;
        __syncthreads();
        if (first >= n) break;
        atomicAdd(&out[min(at, n - 1)], at < n ? in[at] + 1 : 0);
    }
}

// A generator of random numbers per thread, whose state stays for the next launch (as curandState does).
extern "C" __global__ void draw(const int* in, int* out, unsigned* states, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = states[i];
    int rounds = 0;
    do { x ^= x << 13; x ^= x >> 17; x ^= x << 5; rounds++; } while (x % 3 == 0 && rounds < 9);
    states[i] = x;
    out[i] = in[i] + rounds;
}

// Variables of the module that a launch reads and changes.
extern "C" __global__ void variables(const int* in, int* out, int* unused, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&ring[(i + salt) % 64], in[i]);
        out[i] = in[i] * scale;
    }
    if (i == 0) { launches++; total *= scale; last[launches % 4] = in[0]; }
}

// In place, so that a second run gives something else.
extern "C" __global__ void in_place(const int* in, int* out, int* flags, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && out[i] % 2 == 0) { out[i] = out[i] * 3 + in[i]; atomicOr(flags, 1 << (i % 32)); }
}
"""
NAMES = ("compact", "last_block", "tickets", "draw", "variables", "in_place")
SURFACE = """extern "C" __global__ void fade(cudaSurfaceObject_t s, float* sums, int w) {
    int x = threadIdx.x;
    if (x >= w) return;
    float v = surf2Dread<float>(s, x * 4, blockIdx.x);
    if (v > 0) surf2Dwrite(v - 1, s, x * 4, blockIdx.x);
    sums[blockIdx.x * w + x] += v;
}"""


@cache
def module():
    return simt.RawModule(code=CODE)


@cache
def kernel(name):
    return module().get_function(name)


def drawn(name, seed, n):
    """Draw a launch: block, arguments. The module's variables get drawn contents, too."""
    rng = np.random.default_rng(seed)
    for memory in module().memory.values():
        memory[:] = rng.integers(0, 3, memory.nbytes)
    module().get_global("taken")[:] = 0  # or no block is the last one
    third = rng.integers(1, 1 << 31, max(n, 64)).astype(np.uint32).view(np.int32)
    if name in ("compact", "tickets"):
        third[:] = 0
    args = (
        rng.integers(-9, 9, n).astype(np.int32),
        rng.integers(0, 99, n).astype(np.int32),
        third,
        np.int32(n),
    )
    return -(-n // THREADS), THREADS, args


def memory_of(args):
    """Return all bytes that a launch may change."""
    arrays = [each for each in args if isinstance(each, np.ndarray)]
    return [each.tobytes() for each in (*arrays, *module().memory.values())]


LOOKS = {
    "predict": lambda k, launch: k.predict(*launch),
    "sass": lambda k, launch: (k.sass("H200"), k.resources_for("sm_90")),
    "record": lambda k, launch: record(k, *launch),
    "record, optimised": lambda k, launch: record(k, *launch, optimised=True),
    "trace": lambda k, launch: labkit.trace(k, *launch, optimised=True),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 300))
@settings(max_examples=5, deadline=None)
def test_what_does_not_run_the_launch_leaves_memory_as_it_was(name, look, seed, n):
    launch = drawn(name, seed, n)
    before = memory_of(launch[2])
    try:
        LOOKS[look](kernel(name), launch)
    except simt.SimtError as error:  # a time that is a matter of luck, which the message says
        assert look == "predict", error
    assert memory_of(launch[2]) == before


def by_value(name, args):
    """Return what a run left, without what depends on the order of its threads."""
    arrays = [each.copy() for each in args if isinstance(each, np.ndarray)]
    if name == "compact":
        arrays[1][: arrays[2][0]].sort()
    return [each.tobytes() for each in (*arrays, *module().memory.values())]


@pytest.mark.parametrize("how", ["profile", "profile, read later", "check"])
@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 300))
@settings(max_examples=5, deadline=None)
def test_a_profile_and_a_check_leave_memory_as_one_plain_run_does(name, how, seed, n):
    launch = drawn(name, seed, n)
    kernel(name)(*launch)
    want = by_value(name, launch[2])
    launch = drawn(name, seed, n)
    if how == "check":
        assert [str(each) for each in kernel(name).check(*launch)] == []
    else:
        profile = kernel(name).profile(*launch)
        if how == "profile, read later":
            left = memory_of(launch[2])
            try:
                assert profile.metrics  # runs the machine code on the contents that were kept
            except simt.SimtError as error:
                assert "counts" in str(error) or "threads" in str(error) or "time" in str(error), error
            assert memory_of(launch[2]) == left
    assert by_value(name, launch[2]) == want


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_block_is_checked_on_the_memory_that_it_was_recorded_on(name):
    """Both runs begin with the same counters, or the findings would be those of another launch."""
    launch = drawn(name, 3, 100)
    first = record(kernel(name), *launch, optimised=True)
    again = record(kernel(name), *launch, optimised=True)
    assert len(first.events) == len(again.events)
    assert [str(each) for each in first.findings] == [str(each) for each in again.findings] == []


@pytest.mark.parametrize("look", LOOKS)
def test_a_surface_is_as_it_was(look):
    made = simt.RawModule(code=SURFACE).get_function("fade")
    form = ChannelFormatDescriptor(32, 0, 0, 0, cudaChannelFormatKindFloat)
    array = CUDAarray(form, 32, 4, flags=cudaArraySurfaceLoadStore)
    values = np.arange(128, dtype=np.float32).reshape(4, 32)
    array.copy_from(values)
    surface = SurfaceObject(ResourceDescriptor(cudaResourceTypeArray, cuArr=array))
    launch = 4, 32, (surface, np.zeros(128, np.float32), np.int32(32))
    try:
        LOOKS[look](made, launch)
    except simt.SimtError as error:
        assert look == "predict", error
    read = np.empty_like(values)
    array.copy_to(read)
    assert np.array_equal(read, values) and not launch[2][1].any()
