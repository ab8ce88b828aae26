"""Which thread and place a finding names; what excuses two accesses to shared memory, and what does not."""

import numpy as np
import pytest

import simt
from simt import texture
from simt.findings import _long
from simt.texture import ChannelFormatDescriptor, CUDAarray, ResourceDescriptor, SurfaceObject


def kernel(source):
    return simt.RawModule(code=source).get_function("f")


def test_a_thread_of_a_block_with_three_sides():
    """Thread 22 of a block of 4 x 3 x 2 threads is (2, 2, 1): x counts fastest."""
    outside = kernel("""extern "C" __global__ void f(float* a) {
        if (threadIdx.x == 2 && threadIdx.y == 2 && threadIdx.z == 1) a[100] = 1;
    }""")
    (finding,) = outside.check(1, (4, 3, 2), (np.zeros(10, np.float32),))
    assert (finding.kind, finding.thread) == ("out of bounds", (2, 2, 1))


def test_volatile_accesses_of_two_warps_to_shared_memory_race():
    racing = kernel("""extern "C" __global__ void f(int* out) {
        __shared__ volatile int s;
        if (threadIdx.x % 32 == 0) s = threadIdx.x;
        __syncthreads();
        out[threadIdx.x] = s;
    }""")
    (finding,) = racing.check(1, 64, (np.zeros(64, np.int32),))
    assert (finding.tool, finding.kind, finding.line) == ("racecheck", "write after write", 3)


def test_a_flag_in_shared_memory_that_a_warp_waits_for_is_no_race():
    waiting = kernel("""extern "C" __global__ void f(int* out) {
        __shared__ volatile int flag;
        if (threadIdx.x == 0) flag = 0;
        __syncthreads();
        if (threadIdx.x == 32) { __threadfence_block(); flag = 1; }
        if (threadIdx.x == 0) while (!flag) ;
        out[threadIdx.x] = 1;
    }""")
    assert [str(finding) for finding in waiting.check(1, 64, (np.zeros(64, np.int32),))] == []


SURFACE = """extern "C" __global__ void f(cudaSurfaceObject_t s, int x, int y) {
    surf2Dwrite(1.0f, s, x, y, cudaBoundaryModeTrap);
}"""


@pytest.mark.parametrize(
    ("x", "y", "kind", "words"),
    [
        (6 * 4, 0, "out of bounds", "x goes from 0 to 23"),
        (4, 4, "out of bounds", "y goes from 0 to 3"),
        (6, 0, "misaligned", "x = 6 is not a multiple of 4 bytes"),
    ],
)
def test_a_surface_says_which_edge_or_that_a_place_is_not_aligned(x, y, kind, words):
    channel = ChannelFormatDescriptor(32, 0, 0, 0, texture.cudaChannelFormatKindFloat)
    array = CUDAarray(channel, 6, 4, flags=texture.cudaArraySurfaceLoadStore)
    surface = SurfaceObject(ResourceDescriptor(texture.cudaResourceTypeArray, cuArr=array))
    with pytest.raises(simt.InvalidAccess, match=words) as error:
        kernel(SURFACE)(1, 1, (surface, np.int32(x), np.int32(y)))
    assert error.value.finding.kind == kind


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 second"), (59, "59 seconds"), (90, "2 minutes"), (3600, "1 hour"), (3 * 86400, "3 days")],
)
def test_a_time_has_the_largest_unit_of_which_it_is_one(seconds, words):
    assert _long(seconds) == words
