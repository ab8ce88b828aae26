"""Fragments and pipelines: the layout that a kernel finds, times worked out by hand, and the explorers."""

from itertools import islice

import numpy as np
import pytest

import simt
from labkit import widgets
from labkit.figures.pictures.fragments import fragments, lanes, of
from labkit.figures.pictures.pipeline import Pipeline, timeline
from labkit.widgets.fragment_map_view import fragment_map_view
from labkit.widgets.pipeline_view import pipeline_view

# ldmatrix is documented without fragments: lane l gets word l % 4 of row l / 4 of each 8 x 8 matrix.
PRODUCT = r"""
#include <cuda_fp16.h>
extern "C" __global__ void product(
    const half (*A)[16], const half (*B)[16], unsigned* a, unsigned* b, float* c)
{
    __shared__ __align__(16) half at[16][16], bt[8][16];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) at[i / 16][i % 16] = A[i / 16][i % 16];
    for (int i = lane; i < 128; i += 32) bt[i / 16][i % 16] = B[i / 16][i % 16];
    __syncwarp();
    unsigned x[4], y[2];
    float d[4] = {};
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
        : "r"((unsigned)__cvta_generic_to_shared(&at[lane % 16][lane / 16 * 8])) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(y[0]), "=r"(y[1])
        : "r"((unsigned)__cvta_generic_to_shared(&bt[lane % 8][lane / 8 % 2 * 8])) : "memory");
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
        " {%8, %9}, {%0, %1, %2, %3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    for (int i = 0; i < 4; ++i) a[4 * lane + i] = x[i], c[4 * lane + i] = d[i];
    for (int i = 0; i < 2; ++i) b[2 * lane + i] = y[i];
}
"""


def found(A, B):
    """What each lane holds of A, of B and of A B, as a kernel sees it: (32, elements)."""
    a, b, c = np.zeros((32, 4), np.uint32), np.zeros((32, 2), np.uint32), np.zeros((32, 4), np.float32)
    kernel = simt.RawModule(code=PRODUCT).get_function("product")
    kernel(1, 32, (A.astype(np.float16), np.ascontiguousarray(B.T, np.float16), a, b, c))
    return a.view(np.float16), b.view(np.float16), c


def test_the_lanes_of_a_picture_are_those_of_a_kernel():
    number = np.arange(256).reshape(16, 16)  # of each element of A, and of B, whose columns are the first 8
    for role, held in zip("ab", found(number, number[:, :8]), strict=False):
        for lane in range(32):
            assert sorted(held[lane]) == sorted(
                number[:, : 16 if role == "a" else 8][lanes(of("half"), role) == lane]
            )
    (*_, sums) = found(number, np.eye(16, 8))
    for lane in range(32):
        assert sorted(sums[lane]) == sorted(number[:, :8][lanes(of("half"), "c") == lane])


def test_the_fragments_are_those_that_mma_multiplies():
    A, B = np.random.default_rng(1).integers(-4, 5, (2, 16, 16))
    (*_, sums) = found(A, B[:, :8])
    right = (A @ B[:, :8]).astype(float)
    for lane in range(32):
        assert sorted(sums[lane]) == sorted(right[lanes(of("half"), "c") == lane])


@pytest.mark.parametrize(("kind", "shape"), [("half", (16, 16)), ("tf32", (16, 8)), ("fp8", (16, 32))])
def test_all_lanes_hold_as_much(kind, shape):
    for role in "abc":
        assert len(set(np.bincount(lanes(of(kind), role).ravel(), minlength=32))) == 1
    assert lanes(of(kind), "a").shape == shape


def test_the_picture_of_fragments_says_what_a_lane_holds():
    assert "lane 6 holds 8 of A, 4 of B and 4 sums" in fragments().alt
    assert "Lane 31 holds 16 of A, 8 of B and 4 sums" in fragment_map_view("fp8", 31).text
    with pytest.raises(ValueError, match=r"no lane 32\. Choose 0 to 31"):
        fragments(lane=32)


def test_steps_of_a_pipeline_by_hand():
    """Two stages, a copy takes 3 and a product 1: the third copy waits for the first product."""
    assert list(islice(Pipeline(2, 3, 1).steps(), 4)) == [
        (0, 3, 3, 4), (0, 3, 4, 5), (4, 7, 7, 8), (5, 8, 8, 9)
    ]  # fmt: skip


@pytest.mark.parametrize("stages", range(1, 7))
@pytest.mark.parametrize(("copy", "multiply"), [(3, 1), (8, 3), (1, 4), (5, 5)])
def test_the_share_is_that_of_many_steps(stages, copy, multiply):
    first, last = (
        step for i, step in enumerate(islice(Pipeline(stages, copy, multiply).steps(), 601)) if i % 600 == 0
    )
    pipeline = Pipeline(stages, copy, multiply)
    assert 600 * multiply / (last.begun - first.begun) == pytest.approx(pipeline.busy)
    assert (stages >= pipeline.enough) == (pipeline.busy == 1)


def test_the_timeline_says_what_it_finds():
    assert "With 2 stages the tensor cores work 50 % of the time" in timeline().alt
    assert "With 1 stage the" in timeline(1).alt
    assert "never wait: 4 would be enough" in pipeline_view(5, 3, 1).text
    assert "They would not with 4 stages" in pipeline_view(3, 3, 1).text


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (widgets.pipeline, "stages", 4),
        (widgets.pipeline, "copy", 7),
        (widgets.pipeline, "multiply", 2),
        (widgets.fragment_map, "lane", 31),
        (widgets.fragment_map, "kind", "tf32"),
    ],
)
def test_each_control_changes_the_picture(make, name, value):
    shown = make()
    assert str(shown.set(**{name: value}).pictures[0]) != str(make().set().pictures[0])
