"""How values differ between lanes: shapes, held against what each lane computes itself."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_kernels import flow, kernel, rules

from simt.analysis.lanes import (
    LANE_INDEX,
    UNIFORM,
    VARYING,
    Shape,
    absorbed,
    added,
    elementwise,
    joined,
    scaled,
    thread_index,
    with_offsets,
)
from simt.analysis.strides import stride, strides

LANES = np.arange(32)
BLOCKS = st.tuples(st.integers(1, 40), st.integers(1, 8), st.integers(1, 3)).filter(
    lambda block: block[0] * block[1] * block[2] <= 1024
)


def holds(shape, values):
    """Say whether 32 values are one base per group, plus the shape's offsets."""
    rest = np.asarray(values) - np.array(shape.lane_offsets())
    return all(len(set(group.tolist())) == 1 for group in rest.reshape(-1, shape.group))


SHAPES = st.builds(
    with_offsets,
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.one_of(
        st.just((0,) * 32),
        st.integers(-4, 4).map(lambda step: tuple(step * lane for lane in range(32))),
        st.integers(0, 5).map(lambda bits: tuple(lane >> bits for lane in range(32))),
        st.lists(st.integers(-9, 9), min_size=32, max_size=32).map(tuple),
    ),
)
BASES = st.lists(st.integers(-1000, 1000), min_size=32, max_size=32)


def values_of(shape, bases):
    return np.array(bases)[LANES // shape.group] + np.array(shape.lane_offsets())


@given(SHAPES, SHAPES, BASES, BASES, st.integers(-9, 9))
def test_shapes_hold_the_values_that_lanes_compute(a, b, bases_a, bases_b, factor):
    x, y = values_of(a, bases_a), values_of(b, bases_b)
    assert holds(a, x) and holds(absorbed(a), x) and absorbed(a).offsets is None
    assert holds(added(a, b), x + y)
    assert holds(added(a, b, sign=-1), x - y)
    assert holds(scaled(a, factor), factor * x)
    assert holds(elementwise(a, b), x * y ^ x)
    either = joined(a, b)
    assert holds(either, x) and holds(either, y)


@given(SHAPES, st.integers(-9, 9))
def test_bases_are_one_per_group(shape, factor):
    assert shape.bases * shape.group == 32
    assert scaled(shape, 0) == Shape(shape.group) and joined(None, shape) == shape
    assert joined(shape, shape) == shape and scaled(scaled(shape, factor), 1) == scaled(shape, factor)


def test_the_coarsest_shape_without_offsets():
    assert absorbed(LANE_INDEX) == VARYING
    assert absorbed(Shape(32, tuple(lane // 8 for lane in range(32)))) == Shape(8)
    assert absorbed(Shape(4, tuple(lane % 2 for lane in range(32)))) == VARYING
    assert elementwise() == UNIFORM


@given(BLOCKS, st.sampled_from("xyz"))
def test_indices_of_threads(block, axis):
    """Threads are numbered along x first, then y, then z."""
    shape, index = thread_index(axis, block)
    x, y, z = block
    numbers = np.stack(np.meshgrid(range(z), range(y), range(x), indexing="ij"), -1).reshape(-1, 3)
    own = numbers[:, "zyx".index(axis)]
    for warp in range(-(-len(own) // 32)):
        lanes = own[32 * warp : 32 * warp + 32]
        if shape == VARYING:
            assert [index(32 * warp + lane) for lane in range(len(lanes))] == lanes.tolist()
        else:
            assert (index(warp) + np.array(shape.lane_offsets())[: len(lanes)] == lanes).all()


@pytest.mark.parametrize(
    ("block", "axis", "shape"),
    [
        ((32, 1, 1), "x", LANE_INDEX),
        ((256, 1, 1), "x", LANE_INDEX),
        ((256, 1, 1), "y", UNIFORM),
        ((16, 16, 1), "x", Shape(32, tuple(lane % 16 for lane in range(32)))),
        ((16, 16, 1), "y", Shape(32, tuple(lane // 16 for lane in range(32)))),
        ((32, 8, 1), "y", UNIFORM),
        ((4, 4, 4), "z", Shape(32, tuple(lane // 16 for lane in range(32)))),
        ((33, 2, 1), "x", VARYING),
        ((24, 4, 1), "y", VARYING),
    ],
)
def test_known_indices(block, axis, shape):
    assert thread_index(axis, block)[0] == shape


# --- rules -------------------------------------------------------------------------------------------------


def shapes(body, block=(32, 1, 1), **options):
    return flow(f"{body} ret;", block, **options).shapes


def steps(body, name, **options):
    """The step from lane to lane of a register, if it is the same everywhere."""
    offsets = shapes(body, **options)[name].lane_offsets()
    (step,) = {b - a for a, b in itertools.pairwise(offsets)}
    return step


def test_sums_and_products_with_numbers_keep_the_step():
    body = "mov.u32 %r1, %tid.x; mov.u32 %r9, %ctaid.x;"
    assert steps(f"{body} add.s32 %r2, %r1, %r9;", "%r2") == 1
    assert steps(f"{body} sub.s32 %r2, %r9, %r1;", "%r2") == -1
    assert steps(f"{body} mul.lo.s32 %r2, %r1, 12;", "%r2") == 12
    assert steps(f"{body} mul.lo.s32 %r2, -3, %r1;", "%r2") == -3
    assert steps(f"{body} shl.b32 %r2, %r1, 4;", "%r2") == 16
    assert steps(f"{body} mad.lo.s32 %r2, %r1, 5, %r1;", "%r2") == 6
    assert steps(f"{body} mul.wide.s32 %rd1, %r1, 8; add.s64 %rd2, %rd1, %rd1;", "%rd2") == 16
    assert steps(f"{body} mad.wide.s32 %rd2, %r1, 4, %rd9;", "%rd2") == 4
    assert steps(f"{body} cvt.s64.s32 %rd1, %r1;", "%rd1") == 1


def test_what_is_no_sum_is_computed_in_each_lane():
    body = "mov.u32 %r1, %tid.x; mov.u32 %r9, %ctaid.x;"
    for line in (
        "mul.lo.s32 %r2, %r1, %r9;",
        "mul.hi.s32 %r2, %r1, 5;",
        "shr.u32 %r2, %r1, 1;",
        "and.b32 %r2, %r1, 3;",
        "add.sat.s32 %r2, %r1, 1;",
        "shl.b32 %r2, %r9, %r1;",
        "min.s32 %r2, %r1, 3;",
        "cvt.rn.f32.s32 %f1, %r1; mov.f32 %f2, %f1; cvt.rzi.s32.f32 %r2, %f2;",
    ):
        assert shapes(f"{body} {line}")["%r2"] == VARYING, line


def test_an_unsigned_sum_may_wrap_before_it_is_widened():
    body = "mov.u32 %r1, %tid.x; add.u32 %r2, %r1, %r9; mul.wide.u32 %rd1, %r2, 4;"
    body += "mul.wide.s32 %rd2, %r2, 4;"
    found = shapes(body)
    assert found["%rd1"] == VARYING and found["%rd2"].lane_offsets() == tuple(range(0, 128, 4))
    made = kernel(f"{body} ret;")
    known = rules(made, indices=frozenset({"%r2"}))
    assert known.result(made.code[2], found).shape.lane_offsets() == tuple(range(0, 128, 4))


def test_values_per_row_of_a_block():
    found = shapes("mov.u32 %r1, %tid.y; mul.lo.s32 %r2, %r1, %r9; mov.u32 %r3, %tid.x;", (8, 8, 1))
    assert found["%r2"] == Shape(8)
    assert found["%r3"].lane_offsets() == tuple(range(8)) * 4
    both = shapes("mov.u32 %r1, %tid.y; mov.u32 %r3, %tid.x; mad.lo.s32 %r2, %r1, %r9, %r3;", (8, 8, 1))
    assert both["%r2"] == Shape(8, tuple(range(8)) * 4)


def test_what_lanes_exchange():
    found = shapes(
        """mov.u32 %r1, %ctaid.x; mov.u32 %r2, %laneid;
        shfl.sync.idx.b32 %r3, %r1, 0, 31, -1; vote.sync.ballot.b32 %r4, %p1, -1;
        vote.sync.ballot.b32 %r5, %p1, %r2; activemask.b32 %r6; mov.u32 %r7, %lanemask_lt;
        redux.sync.add.s32 %r8, %r2, -1; atom.global.add.u32 %r9, [x], 1;"""
    )
    names = [f"%r{n}" for n in range(3, 10)]
    assert [found[name] for name in names] == [VARYING, UNIFORM, VARYING, UNIFORM, VARYING, UNIFORM, VARYING]
    assert found["%r2"] == LANE_INDEX


def test_loads_differ_as_their_addresses_do():
    found = shapes(
        """ld.param.u64 %rd1, [x]; ld.global.u32 %r1, [%rd1];
        mov.u32 %r2, %tid.y; mul.wide.s32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;
        ld.global.u32 %r3, [%rd3];""",
        (8, 4, 1),
    )
    assert found["%r1"] == UNIFORM and found["%r3"] == Shape(8)


def test_each_lane_has_its_own_local_memory():
    found = shapes(".local .align 8 .b8 depot[40]; mov.u64 %rd1, depot; add.u64 %rd2, %rd1, 8;")
    assert found["%rd2"].lane_offsets() == tuple(48 * lane for lane in range(32))  # 40, up to 16


# --- random straight code ----------------------------------------------------------------------------------

OPERATIONS = {
    "add.s32": lambda x, y: x + y,
    "sub.s32": lambda x, y: x - y,
    "mul.lo.s32": lambda x, y: x * y,
    "shl.b32": lambda x, y: x << (y & 3),
    "xor.b32": lambda x, y: x ^ y,
}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(list(OPERATIONS)), st.integers(0, 9), st.integers(-5, 9)), max_size=12
    ),
    st.sampled_from([(32, 1, 1), (16, 2, 1), (8, 2, 2), (4, 4, 4), (33, 1, 1)]),
)
def test_random_code_has_the_shape_of_its_values(lines, block):
    """Operands are one of the registers so far, and another or a number."""
    numbers = np.arange(32)
    x, y = block[:2]
    values = [numbers % x, numbers // x % y, np.full(32, 5), numbers]
    body = ["mov.u32 %r0, %tid.x;", "mov.u32 %r1, %tid.y;", "mov.u32 %r2, %ctaid.x;", "mov.u32 %r3, %laneid;"]
    for opcode, first, second in lines:
        first %= len(values)
        is_number = second < 0 or opcode == "shl.b32"
        other = abs(second) % 4 if is_number else second % len(values)
        result = OPERATIONS[opcode](values[first], other if is_number else values[other])
        operand = other if is_number else f"%r{other}"
        body.append(f"{opcode} %r{len(values)}, %r{first}, {operand};")
        values.append(result)
    found = shapes("\n".join(body), block)
    for number, value in enumerate(values):
        assert holds(found[f"%r{number}"], value)


# --- strides -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (UNIFORM, 0),
        (Shape(32, tuple(4 * lane for lane in range(32))), 4),
        (Shape(32, tuple(-8 * lane for lane in range(32))), -8),
        (Shape(32, tuple(4 * (lane % 16) for lane in range(32))), 4),  # 30 of 31 steps
        (Shape(32, tuple(lane // 2 for lane in range(32))), 0),  # 16 of 31
        (Shape(32, tuple(lane**2 for lane in range(32))), None),
        (Shape(8, tuple(4 * (lane % 8) for lane in range(32))), 4),
        (VARYING, 0),  # known only when the kernel runs
    ],
)
def test_stride_between_neighbours(shape, expected):
    assert stride(shape) == expected


def test_strides_of_a_kernels_accesses():
    found = flow(
        """mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [x]; mul.wide.s32 %rd2, %r1, 12; add.s64 %rd3, %rd1, %rd2;
        ld.global.u32 %r2, [%rd3+4]; st.global.u32 [%rd1], %r2; ret;"""
    )
    assert strides(found.kernel, found) == [0, 0, 0, 0, 12, 0, 0]
