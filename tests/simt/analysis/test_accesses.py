"""Loads and stores of a block: what each reads or writes, and which of them one check of the range covers."""

from ptx_kernels import flow, module

from simt.analysis.accesses import Accesses
from simt.analysis.lanes import VARYING
from simt.analysis.layout import Layout, storage

START = (
    "mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [x]; mul.wide.s32 %rd2, %r1, {size}; add.s64 %rd3, %rd1, %rd2;"
)


def accesses(body, size=4, before=""):
    found = flow(f"{START.format(size=size)} {body} ret;")
    layout = Layout(storage(found.kernel, module(before)), (32, 1, 1), found)
    at = Accesses(found.blocks[0], found, layout).at
    assert list(at) == sorted(at)
    return list(at.values())


def test_a_load_and_what_it_moves():
    (load,) = accesses("ld.global.v2.f32 {%f1, %f2}, [%rd3+16];", size=8)
    assert (load.size, load.offsets, load.space, load.range) == (4, [16, 20], "global", 0)
    assert not load.is_store and not load.is_atomic and load.alignment == 8 and len(load.items) == 2
    assert load.extent == (16, 16 + 32 * 8) and load.has_fast_form


def test_neighbours_share_one_check():
    first, second, third = accesses(
        "ld.global.f32 %f1, [%rd3]; ld.global.f32 %f2, [%rd3+256]; st.global.f32 [%rd3+-128], %f1;"
    )
    together = (-128, 256 + 128)
    assert [each.group_range for each in (first, second, third)] == [together] * 3
    assert [each.is_first for each in (first, second, third)] == [True, False, False]
    assert third.is_store


def test_a_base_that_changes_is_another():
    first, second = accesses("ld.global.f32 %f1, [%rd3]; add.s64 %rd3, %rd3, 512; ld.global.f32 %f2, [%rd3];")
    assert first.is_first and second.is_first and first.group_range == second.group_range == (0, 128)


def test_different_widths_are_checked_apart():
    narrow, wide = accesses("ld.global.f32 %f1, [%rd3]; ld.global.f64 %rd4, [%rd3];", size=8)
    assert narrow.is_first and wide.is_first
    assert (narrow.extent, wide.extent) == ((0, 252), (0, 256))


def test_an_access_off_its_alignment_has_no_fast_form():
    (load,) = accesses("ld.global.f64 %rd4, [%rd3];", size=4)
    assert load.alignment == 8 and not load.has_fast_form
    (load,) = accesses("ld.global.f64 %rd4, [%rd3];", size=16)
    assert load.has_fast_form


def test_atomics_and_unknown_arrays_have_no_fast_form():
    atomic, unknown = accesses("atom.global.cas.b32 %r2, [%rd3], %r3, %r4; ld.global.f32 %f1, [%rd9];")
    assert atomic.is_atomic and atomic.is_store is False and len(atomic.items) == 2
    assert atomic.offsets == [0] and not atomic.has_fast_form
    assert unknown.range is None and not unknown.has_fast_form


def test_shared_memory_needs_no_array():
    (store,) = accesses("shl.b32 %r2, %r1, 2; st.shared.u32 [%r2+64], %r1;")
    assert store.range is None and store.has_fast_form and store.extent == (64, 64 + 128)


def test_lanes_that_lie_anywhere():
    (load,) = accesses("ld.global.u64 %rd4, [%rd3]; ".replace("%rd3", "%rd1") + "")
    assert load.extent == (0, 8)
    *_, scattered = accesses(
        "xor.b32 %r2, %r1, 5; mul.wide.s32 %rd4, %r2, 4; add.s64 %rd5, %rd1, %rd4;ld.global.u32 %r3, [%rd5];"
    )
    assert scattered.shape == VARYING and scattered.range == 0


def test_a_constant_array_is_not_written():
    before = ".const .align 4 .u32 c[8];"
    store, load = accesses(
        "mov.u64 %rd5, c; st.global.u32 [%rd5], 1; ld.const.u32 %r2, [c+4];", before=before
    )
    assert store.range is None and load.range is not None
    (plain,) = accesses("ld.const.u32 %r2, [%rd3];", before=before)
    assert plain.range is None
