"""What the simulator does not have is refused with its line."""

import pytest
from ptx_kernels import kernel

from simt.common.errors import SimtError
from simt.lowering.features import refuse


def refused(line):
    return kernel(f".loc 1 1 1\nmov.u32 %r1, 1;\n.loc 1 5 1\n{line}\nret;", before='.file 1 "kernel.cu"')


@pytest.mark.parametrize(
    "line",
    [
        "txq.width.b32 %r1, [%rd1];",
        "suq.height.b32 %r1, [%rd1];",
        "sured.b.add.2d.u32.trap [%rd1, {%r1, %r2}], %r3;",
        "sust.p.2d.v4.b32.trap [%rd1, {%r1, %r2}], {%r3, %r4, %r5, %r6};",
        "tex.2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2, %r3, %r4}];",
        "st.bulk.weak.shared::cta [%rd1], 1024, 0;",
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1}, %r3, 0;",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32 {%f1}, {%r1}, {%r2}, {%f1}, %r3, 0;",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;",
        "multimem.ld_reduce.global.add.u32 %r1, [%rd1];",
        "alloca.u64 %rd1, %rd2;",
        "mov.u32 %r1, %envreg1;",
        "call.uni (r), malloc, (p);",
        "call.uni (r), cudaGetParameterBufferV2, (p);",
        "ld.global.u32 %r1, [_Znwm];",
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p1, [%rd1, {%f1, %f2}];",
    ],
)
def test_a_feature_is_refused_with_its_line(line):
    with pytest.raises(SimtError, match="line 5"):
        refuse(refused(line))


@pytest.mark.parametrize(
    "line",
    [
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};",
        "call.uni (r), mallocate, (p);",
        "st.global.u32 [%rd1], 1;",
        "mov.u64 %rd1, freedom;",
    ],
)
def test_others_are_not(line):
    refuse(refused(line))
