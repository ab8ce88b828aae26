"""Registers that hold a thread's index, which does not wrap round."""

import pytest
from ptx_kernels import kernel

from simt.analysis.indices import MOST_BLOCKS, thread_indices

SPECIAL = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, %tid.y;"


def indices(body):
    return thread_indices(kernel(f"{SPECIAL} {body} ret;")) - {"%r3", "%r4"}


@pytest.mark.parametrize(
    "body",
    [
        "mad.lo.s32 %r9, %r1, %r2, %r3;",
        "mad.lo.s32 %r9, %r2, %r1, %r3;",
        "mad.lo.u32 %r9, %r1, 256, %r3;",
        "mul.lo.s32 %r8, %r1, %r2; add.s32 %r9, %r8, %r3;",
        "mul.lo.u32 %r8, 1024, %r1; add.u32 %r9, %r3, %r8;",
        "mov.u32 %r7, %r3; mad.lo.s32 %r6, %r1, %r2, %r7; mov.b32 %r9, %r6;",
    ],
)
def test_an_index(body):
    assert "%r9" in indices(body)


@pytest.mark.parametrize(
    "body",
    [
        "mad.lo.s32 %r9, %r1, %r2, %r4;",  # of another direction
        "mad.lo.s32 %r9, %r1, %r1, %r3;",
        "mad.lo.s32 %r9, %r1, 1025, %r3;",  # more than a block has
        "mad.lo.s32 %r9, %r1, -1, %r3;",
        "mul.lo.s32 %r8, %r1, %r2; mul.lo.s32 %r9, %r8, %r3;",
        "mad.lo.s32 %r9, %r3, %r2, %r1;",
        "mad.lo.s32 %r8, %r1, %r2, %r3; add.s32 %r9, %r8, 1;",
        "mad.lo.s32 %r9, %r1, %r2, %r3; mov.u32 %r9, 7;",  # written twice
        "@%p1 mad.lo.s32 %r9, %r1, %r2, %r3;",
    ],
)
def test_no_index(body):
    assert "%r9" not in indices(body)


def test_the_thread_itself():
    assert thread_indices(kernel(f"{SPECIAL} ret;")) == {"%r3", "%r4"}


def test_indices_fit_into_32_bits():
    assert (MOST_BLOCKS + 1) * 1024 <= 2**32 and MOST_BLOCKS * 1024 + 1024 + 31 > 2**31
