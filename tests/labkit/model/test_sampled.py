"""The launch that is predicted, on drawn numbers: what its blocks write, and which of them run."""

import numpy as np
import pytest

import simt
from labkit.model.doubled import doubled
from labkit.model.sampled import PERIOD, Contents, tried
from simt.common.errors import SimtError
from simt.common.occupancy import gpu
from simt.timing.prediction import NoPrediction
from simt.timing.sample import plan

BLOCKS, THREADS = 1000, 64
LONG = "float v = in[i]; for (int k = 0; k < 5000; ++k) v = v * 0.5f + 1;"


def kernel(body, above=""):
    head = 'extern "C" __global__ void k(const float* in, float* out, int n)\n{\n'
    index = "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    return simt.RawModule(code=f"{above}{head}{index}    {body}\n}}").get_function("k")


def of(body, blocks=(3, 500), above="", low=1):
    """What is tried of a launch of 1000 blocks, and its input."""
    n = BLOCKS * THREADS
    x = Contents((n,), 7, low, 9, whole=True)
    return tried(kernel(body, above), BLOCKS, THREADS, (x, Contents((n,)), np.int32(n)), blocks, "H200"), x


class TestContents:
    @pytest.mark.parametrize("shape", [(5,), (3, 7), (2, PERIOD), (PERIOD + 1,)])
    def test_an_element_is_the_same_in_the_array_and_alone(self, shape):
        drawn = Contents(shape, 3, -1, 1)
        array, places = drawn.array(), np.array([0, 1, np.prod(shape) - 1])
        assert array.shape == shape and array.dtype == np.float32
        assert np.array_equal(array.ravel()[places], drawn.at(places))
        assert np.array_equal(array, Contents(shape, 3, -1, 1).array())

    def test_numbers_lie_between_their_ends(self):
        whole = Contents((10_000,), 1, 1, 9, whole=True).array()
        assert set(whole) == set(range(1, 10))
        some = Contents((10_000,), 1, -1, 1).array()
        assert -1 <= some.min() < -0.99 and 0.99 < some.max() < 1 and abs(some.mean()) < 0.05
        assert not np.array_equal(some, Contents((10_000,), 2, -1, 1).array())

    def test_an_output_is_zero(self):
        assert not Contents((3, 4)).array().any()


class TestTried:
    def test_blocks_of_the_plan_and_those_that_are_asked_for(self):
        found, x = of("out[i] = 2 * in[i];")
        wanted = plan((BLOCKS, 1, 1), 32, gpu("H200"))
        own = {3, 500, wanted.first, *wanted.beside}
        assert own <= set(found.blocks) and len(found.blocks) < 100
        assert len(wanted.spread) // 2 <= len({*wanted.spread} & set(found.blocks)) < len(wanted.spread)
        assert set(found.places // THREADS) == set(found.blocks)
        assert len(set(found.places)) == THREADS * len(found.blocks)
        assert np.array_equal(found.values, 2 * x.at(found.places)) and found.predicted.seconds > 0

    def test_each_block_runs_alone_as_for_the_prediction(self):
        """The first block that comes writes nothing: so do all that run alone."""
        count = "__shared__ int number; if (!threadIdx.x) number = atomicAdd(&came, 1); __syncthreads();"
        found, _ = of(f"{count}{LONG} if (number) out[i] = v;", above="__device__ int came;\n")
        wanted = plan((BLOCKS, 1, 1), 32, gpu("H200"))
        alone = {wanted.first, *wanted.beside, *wanted.spread} - set(wanted.together) - {3, 500}
        assert alone & set(found.blocks) and not alone & set(found.places // THREADS)

    def test_no_block_sees_what_others_have_left(self):
        """As in the prediction, where nobody has written anything."""
        seen = "bool seen = 0; for (int b = 0; b < gridDim.x; ++b) seen |= b != blockIdx.x && out[64 * b];"
        found, _ = of(f"{seen} out[i] = seen ? 2 : 1;", blocks=(3,))
        together = set(plan((BLOCKS, 1, 1), 32, gpu("H200")).together)
        alone = ~np.isin(found.places // THREADS, list(together))
        assert alone.sum() > 10 * THREADS and set(found.values[alone]) == {1}

    def test_what_is_left_in_an_input_is_told(self):
        with pytest.raises(SimtError, match="writes to its input"):
            of("out[i] = 1; if (i == 64 * 500) ((float*)in)[7] = 0;")

    def test_the_time_is_that_of_the_same_numbers(self):
        """Nobody leaves: no number is 0."""
        plain, leaving = (
            of(f"{first}{LONG} out[i] = v;")[0].predicted for first in ("", "if (in[i] == 0) return; ")
        )
        assert leaving.seconds == pytest.approx(plain.seconds, rel=0.1)

    @pytest.mark.parametrize(
        "body", ["out[i + n] = 1;", "while (*(volatile float*)&in[n - 1 - i] > 0); out[i] = 1;"]
    )
    def test_what_cannot_be_predicted(self, body):
        with pytest.raises(NoPrediction):
            of(body)


PRODUCT = """#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void product(const half* A, const half* B, {type}* C)
{{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, {type}> sum;
    wmma::fill_fragment(sum, 3);
    wmma::load_matrix_sync(a, A, 16);
    wmma::load_matrix_sync(b, B, 16);
    wmma::mma_sync(sum, a, b, sum);
    wmma::mma_sync(sum, a, b, sum);
    wmma::store_matrix_sync(C, sum, 16, wmma::mem_row_major);
}}"""


WARPGROUPS = """
extern "C" __global__ void product(const unsigned* A, float* C) {
    __shared__ alignas(1024) unsigned tile[512];  // 64 rows of 16 elements, which are A and, in part, B
    int t = threadIdx.x;
    for (int i = t; i < 512; i += 128) tile[i / 64 * 64 + i % 8 / 4 * 32 + i / 8 % 8 * 4 + i % 4] = A[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    float s[4] = {3, 3, 3, 3};
    unsigned long long at = __cvta_generic_to_shared(tile) >> 4 | 8ull << 16 | 16ull << 32;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int add = 1; add >= 0; --add)  // the second one begins at 0
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; wgmma.mma_async.sync.aligned.m64n8k16"
                     ".f32.f16.f16 {%0, %1, %2, %3}, %4, %4, p, 1, 1, 0, 0; }"
                     : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "l"(at), "r"(START ? add : 1));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; ++i)
        C[(t / 32 * 16 + t % 32 / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2] = s[i];
}"""


@pytest.mark.parametrize(("start", "kept", "times"), [(0, 3, 2), (1, 0, 1)])
def test_products_of_a_warpgroup_count_twice(start, kept, times):
    a = np.random.default_rng(1).integers(-4, 5, (64, 16)).astype(np.float16)
    made = simt.RawModule(code=WARPGROUPS, options=(f"-DSTART={start}",)).get_function("product")
    right = a.astype(float) @ a[:8].astype(float).T
    # Where the second product begins at 0, its own repetition still adds to it.
    for kernel_, factor in ((made, 1), (doubled(made), 2)):
        out = np.zeros((64, 8), np.float32)
        kernel_(1, 128, (a.view(np.uint32), out))
        assert np.array_equal(out, kept + factor * times * right)


@pytest.mark.parametrize(("type_", "dtype"), [("float", np.float32), ("half", np.float16)])
def test_products_count_twice_and_what_they_are_added_to_once(type_, dtype):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (16, 16)).astype(np.float16) for _ in range(2))
    made = simt.RawModule(code=PRODUCT.format(type=type_)).get_function("product")
    right = a.astype(float) @ b.astype(float).T
    for kernel_, times in ((made, 2), (doubled(made), 4)):
        out = np.zeros((16, 16), dtype)
        kernel_(1, 32, (a, b, out))
        assert np.array_equal(out, 3 + times * right)
