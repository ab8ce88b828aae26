"""Which arguments decide where a kernel goes, and whether the contents of memory do."""

import pytest
from ptx_kernels import kernel

from simt.analysis.deciders import find_deciders

PARAMS = ".param .u64 x, .param .u64 y, .param .u32 n, .param .f32 alpha"
LOADS = """ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n];
ld.param.f32 %f1, [alpha];"""
X, Y, N, ALPHA = range(4)


def deciders(body):
    found = find_deciders(kernel(f"{LOADS} {body} ret;", PARAMS))
    return set(found.arguments), found.contents


@pytest.mark.parametrize(
    ("body", "arguments", "contents"),
    [
        ("", set(), False),
        ("st.global.f32 [%rd1], %f1;", {X}, False),
        ("ld.global.f32 %f2, [%rd1]; mul.f32 %f2, %f2, %f1; st.global.f32 [%rd2], %f2;", {X, Y}, False),
        ("setp.lt.u32 %p1, %r1, 3; @%p1 bra L; mov.u32 %r2, 1; L:", {N}, False),
        ("setp.lt.u32 %p1, %r1, 3; @%p1 mov.u32 %r2, 1;", {N}, False),
        ("mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], 1;", {X, N}, False),
        ("ld.global.u32 %r2, [%rd1]; setp.eq.u32 %p1, %r2, 0; @%p1 ret;", {X}, True),
        ("ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd2], %r2;", {X, Y}, False),
        # n goes through memory: any load may give it back
        ("st.shared.u32 [64], %r1; ld.shared.u32 %r2, [0]; bar.sync %r2;", {N}, True),
        ("st.shared.f32 [64], %f1; ld.shared.u32 %r2, [0]; mov.u32 %r3, %r2;", set(), False),
        ("shfl.sync.idx.b32 %r2, %r3, 0, 31, %r1;", {N}, False),  # the lanes that take part
        ("shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;", set(), False),
        ("setp.gt.f32 %p1, %f1, %f1; selp.b32 %r2, 1, 2, %p1;", set(), False),
    ],
)
def test_what_decides(body, arguments, contents):
    assert deciders(body) == (arguments, contents)


def test_a_value_is_followed_round_a_loop():
    body = """mov.u32 %r5, 0; L: mov.u32 %r4, %r3; mov.u32 %r3, %r2; mov.u32 %r2, %r1;
    setp.eq.u32 %p1, %r4, 9; @%p1 bra L;"""
    assert deciders(body) == ({N}, False)
