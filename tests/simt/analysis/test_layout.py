"""Where variables lie: parameters, shared and local memory by the rules of C, and the frame of a warp."""

import ctypes
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_kernels import kernel, module, rules

from simt.analysis.flow import Flow
from simt.analysis.layout import (
    FRAME_HEAD,
    LARGE,
    OF_A_PRODUCT,
    Layout,
    granules,
    placed,
    rounded_up,
    storage,
)
from simt.analysis.unset import may_be_unset
from simt.ptx import TYPE_BYTES, Variable

C_TYPES = {
    "u8": ctypes.c_uint8,
    "s16": ctypes.c_int16,
    "b32": ctypes.c_uint32,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "u64": ctypes.c_uint64,
}
MEMBERS = st.lists(st.tuples(st.sampled_from(list(C_TYPES)), st.integers(1, 7)), max_size=9)


@given(st.integers(0, 10**6), st.integers(0, 12).map(lambda bits: 1 << bits))
def test_rounded_up(size, align):
    up = rounded_up(size, align)
    assert up % align == 0 and 0 <= up - size < align


@given(MEMBERS)
def test_parameters_lie_as_the_members_of_a_struct(members):
    """One that is an array has the alignment of its items."""
    structure = type(
        "S",
        (ctypes.Structure,),
        {"_fields_": [(f"m{i}", C_TYPES[t] * n) for i, (t, n) in enumerate(members)]},
    )
    text = ", ".join(f".param .{t} m{i}[{n}]" for i, (t, n) in enumerate(members))
    made = kernel("ret;", params=text)
    found = storage(made, module(""))
    assert found.params == {f"m{i}": getattr(structure, f"m{i}").offset for i in range(len(members))}
    end = max((found.params[v.name] + v.size for v in made.params), default=0)
    assert found.param_bytes == end


@given(
    st.lists(st.tuples(st.integers(1, 100), st.integers(0, 7).map(lambda bits: 1 << bits)), max_size=8),
    st.integers(0, 50),
)
def test_variables_lie_one_after_another(variables, start):
    made = [Variable(f"v{i}", "b8", size, align) for i, (size, align) in enumerate(variables)]
    offsets, end = placed(made, start)
    before = start
    for variable in made:
        place = offsets[variable.name]
        assert place % variable.align == 0 and before <= place < before + variable.align
        before = place + variable.size
    assert end == before


def test_shared_memory():
    found = module(
        """.extern .shared .align 16 .b8 dynamic[];
        .shared .align 32 .b8 outside[8];
        .entry f() { .shared .align 4 .b8 s[20]; .shared .f64 d[2]; ret; }"""
    )
    places = storage(found.kernels["f"], found)
    assert places.shared == {"s": 0, "d": 24, "outside": 64, "dynamic": 80}
    assert places.static_shared_bytes == 72 and places.dynamic_shared_start == 80


def test_dynamic_shared_memory_keeps_its_own_alignment():
    found = module(
        ".extern .shared .align 128 .b8 a[]; .extern .shared .f32 b[]; .entry f() { .shared .u8 s[3]; ret; }"
    )
    places = storage(found.kernels["f"], found)
    assert places.shared == {"s": 0, "a": 128, "b": 128} and places.static_shared_bytes == 3
    nothing = module(".entry f() { ret; }")
    assert storage(nothing.kernels["f"], nothing).dynamic_shared_start == 0


def test_local_memory_is_a_multiple_of_16_bytes():
    found = storage(kernel(".local .align 8 .b8 a[9]; .local .u16 b; .local .f64 c; ret;"), module(""))
    assert found.local == {"a": 0, "b": 10, "c": 16} and found.local_bytes == 32


def test_ranges_number_parameters_first():
    found = module(
        ".global .u32 g; .const .f32 c[4]; .shared .u32 s; .entry f(.param .u64 p, .param .u32 n) { ret; }"
    )
    places = storage(found.kernels["f"], found)
    assert places.ranges == {"p": 0, "n": 1, "g": 2, "c": 3} and places.constants == frozenset({3})


def test_memory_that_cooperative_groups_keep():
    made = kernel("mov.u32 %r1, %reserved_smem_offset_1; ret;", before=".shared .u32 s;")
    assert storage(made, module(".shared .u32 s;")).static_shared_bytes == 16 + 288


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ld.global.u32 %r1, [%rd1];", {"global": 4, "shared": 4}),
        ("ld.global.f64 %rd2, [%rd1];", {"global": 4, "shared": 4}),
        ("ld.global.u8 %rs1, [%rd1];", {"global": 1, "shared": 4}),
        ("st.shared.b16 [%rd1], %rs1;", {"global": 4, "shared": 2}),
        ("st.b16 [%rd1], %rs1;", {"global": 2, "shared": 2}),
        ("ld.local.u8 %rs1, [%rd1]; ld.param.u8 %rs1, [n];", {"global": 4, "shared": 4}),
    ],
)
def test_granules(line, expected):
    assert granules(kernel(f"{line} ret;")) == expected


# --- frames ------------------------------------------------------------------------------------------------


def layout(body, block=(64, 1, 1), is_checked=False):
    made = kernel(body)
    return Layout(storage(made, module("")), block, Flow(made, rules(made, block)), is_checked)


AROUND_A_BARRIER = """mov.u32 %r1, %ctaid.x; mov.u32 %r2, %laneid; and.b32 %r3, %r2, 5; mov.u64 %rd1, 8;
    mov.u32 %r4, 3; st.global.u32 [x], %r4; setp.eq.u32 %p1, %r3, 1;
    bar.sync 0; @%p1 st.global.u32 [%rd1], %r1; st.global.v2.u32 [%rd1], {%r2, %r3}; ret;"""


def test_registers_that_are_needed_after_a_barrier_have_places():
    found = layout(AROUND_A_BARRIER)
    assert found.warps == 2 and len(found.barriers) == 1 and found.turns == []
    assert set(found.places) == {"%r1", "%r2", "%r3", "%rd1", "%p1"}
    sizes = {"%r1": 4, "%r2": 4, "%r3": 128, "%rd1": 8, "%p1": 32}  # one base, or 32
    ends = [(place, place + sizes[name]) for name, place in sorted(found.places.items(), key=lambda p: p[1])]
    assert ends[0][0] >= FRAME_HEAD and ends[-1][1] <= found.frame_bytes
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ends))
    assert all(place % min(64, sizes[name]) == 0 for name, place in found.places.items())
    assert found.frame_bytes % 64 == 0


def test_a_kernel_without_barriers_keeps_nothing():
    assert layout("mov.u32 %r1, 1; st.global.u32 [x], %r1; ret;").places == {}


def test_local_memory_lies_in_the_frame():
    found = layout(".local .b8 a[20]; st.local.u8 [a], 1; ret;")
    assert found.local_bytes == 32 and found.local_start % 64 == 0
    assert found.frame_bytes >= found.local_start + 32 * 32
    checked = layout(".local .b8 a[20]; st.local.u8 [a], 1; ret;", is_checked=True)
    assert checked.map_bytes == 32 * 32 and found.map_bytes == 0


def test_a_checked_frame_has_a_word_per_register_that_may_be_unset():
    found = layout("st.global.u32 [x], %r1; mov.u32 %r2, 1; st.global.u32 [x], %r2; ret;", is_checked=True)
    assert list(found.unset) == ["%r1"] == list(may_be_unset(found.flow.blocks))
    assert found.map_bytes == 4


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_registers_of_a_large_kernel_share_places_only_when_one_is_done(uses):
    """All have places; two that are needed at the same time never overlap."""
    lines = ["mov.u32 %r58, %laneid; and.b32 %r59, %r58, 3;"]
    for register, varies, reads in uses:
        lines.append(f"add.u32 %r{register}, {'%r59' if varies else '%r57'}, 1;")
        lines += [f"st.global.u32 [x], %r{register};"] if reads else []
        lines += ["bar.sync 0;"] if register % 7 == 0 else []
    filler = "mov.u32 %r57, 1;" * (LARGE + 1)
    found = layout("\n".join([filler, *lines, "ret;"]))
    assert found.is_large
    shapes, kernel_ = found.flow.shapes, found.flow.kernel
    assert set(found.places) == set(shapes)
    size = {name: TYPE_BYTES[kernel_.register_type(name)] * shapes[name].bases for name in shapes}
    for block in found.flow.blocks:
        live = set().union(*(found.flow.blocks[s].live_in for s in block.successors))
        for instruction in reversed(block.code):
            needed = live | {register.name for register in instruction.results}
            places = sorted((found.places[name], name) for name in needed & shapes.keys())
            for (a, name), (b, _) in itertools.pairwise(places):
                assert a + size[name] <= b
            live -= {register.name for register in instruction.results}
            live |= {register.name for register in instruction.sources}


def test_how_large_a_kernel_is():
    assert not layout("mov.u32 %r1, 1;" * (LARGE - 1) + "ret;").is_large
    assert layout("mov.u32 %r1, 1;" * LARGE + "ret;").is_large
    operands = "{%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4}"
    product = f"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {operands};"
    assert layout(product * (LARGE // OF_A_PRODUCT) + "ret;").is_large
