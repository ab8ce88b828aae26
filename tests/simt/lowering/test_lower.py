"""Copies, branches by a table, atomics on vectors and waits as plain instructions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_kernels import PARAMS, kernel, opcodes, shown
from ptx_machine import LANES, Machine

from simt.common.errors import SimtError
from simt.lowering.lower import LONGEST_WAIT, copy_parameters, lower
from simt.ptx import Address, Register, Symbol


def lowered(body, **options):
    made = kernel(body, **options)
    lower(made)
    return made


DATA = np.random.default_rng(1).integers(1, 256, 4096).astype(np.uint8)


def copied(line, registers, size=16):
    """Return what shared memory holds where each lane has copied `size` bytes to its place, over 0xEE."""
    machine = Machine(lowered(f"{line} ret;"), registers=registers)
    machine.memory["global"][:] = DATA.tobytes()
    machine.memory["shared"][:] = b"\xee" * 4096
    machine.run()
    return np.frombuffer(machine.memory["shared"], np.uint8)[: LANES * size].reshape(LANES, size)


def places(lane, size=16, **others):
    return {"%r1": size * lane, "%rd1": 64 * lane, **others}


@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_whole_copy_is_a_load_and_a_store(size):
    line = f"cp.async.ca.shared.global [%r1], [%rd1+8], {size};" if size < 16 else ""
    line = line or "cp.async.cg.shared.global.L2::128B [%r1], [%rd1+16], 16;"
    vector = {4: "b32", 8: "v2.b32", 16: "v4.b32"}[size]
    assert opcodes(lowered(line).code) == [f"ld.global.{vector}", f"st.shared.{vector}"]
    got = copied(line, lambda lane: places(lane, size), size)
    first = 8 if size < 16 else 16
    np.testing.assert_array_equal(got, DATA[: LANES * 64].reshape(LANES, 64)[:, first : first + size])


@pytest.mark.parametrize("count", range(18))
def test_bytes_beyond_a_known_count_become_zero(count):
    got = copied(f"cp.async.cg.shared.global [%r1], [%rd1], 16, {count};", places)
    expected = DATA[: LANES * 64].reshape(LANES, 64)[:, :16].copy()
    expected[:, count:] = 0
    np.testing.assert_array_equal(got, expected)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=LANES, max_size=LANES), st.sampled_from([4, 8, 16]))
def test_bytes_beyond_a_count_at_run_time_become_zero(counts, size):
    got = copied(
        f"cp.async.ca.shared.global [%r1], [%rd1], {size}, %r2;",
        lambda lane: places(lane, size, **{"%r2": counts[lane]}),
        size,
    )
    expected = DATA[: LANES * 64].reshape(LANES, 64)[:, :size].copy()
    for lane, count in enumerate(counts):
        expected[lane, count:] = 0
    np.testing.assert_array_equal(got, expected)


def test_a_copy_that_some_lanes_ignore():
    got = copied(
        "cp.async.ca.shared.global [%r1], [%rd1], 16, %p1;",
        lambda lane: places(lane, **{"%p1": lane % 3 == 0}),
    )
    expected = DATA[: LANES * 64].reshape(LANES, 64)[:, :16].copy()
    expected[::3] = 0  # a true predicate ignores the source
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("more", ["", ", 5", ", %r2", ", %p2"])
@pytest.mark.parametrize("negated", ["", "!"])
def test_a_copy_under_a_guard_touches_nothing_elsewhere(negated, more):
    def registers(lane):
        return places(lane, **{"%p1": lane % 2, "%r2": 5, "%p2": 0})

    got = copied(f"@{negated}%p1 cp.async.ca.shared.global [%r1], [%rd1], 16{more};", registers)
    off = 1 if negated else 0
    assert (got[off::2] == 0xEE).all()
    whole = DATA[: LANES * 64].reshape(LANES, 64)[1 - off :: 2, :16].copy()
    if more in (", 5", ", %r2"):
        whole[:, 5:] = 0
    np.testing.assert_array_equal(got[1 - off :: 2], whole)


def test_a_cache_hint_is_no_count():
    line = "cp.async.cg.shared.global.L2::cache_hint [%r1], [%rd1], 16, %rd9;"
    assert opcodes(lowered(line).code) == ["ld.global.v4.b32", "st.shared.v4.b32"]


def test_groups_of_copies_are_complete_at_once():
    text = "cp.async.commit_group; cp.async.wait_group 1; cp.async.wait_all; ret;"
    assert opcodes(lowered(text).code) == ["ret"]
    assert opcodes(lowered("cp.async.mbarrier.arrive.shared.b64 [%r1];").code) == [
        "cp.async.mbarrier.arrive.shared.b64"
    ]


def test_lowered_instructions_keep_their_line():
    made = kernel(".loc 1 9 3\ncp.async.ca.shared.global [%r1], [%rd1], 8, 3;", before='.file 1 "kernel.cu"')
    lower(made)
    assert len(made.code) > 3 and {i.line for i in made.code} == {9}


def test_labels_move_along():
    made = lowered(
        """A: cp.async.ca.shared.global [%r1], [%rd1], 8; B: cp.async.commit_group; C: @%p1 bra A; @%p1 bra B;
        bra C; D: @%p1 bra D; ret;"""
    )
    assert [made.labels[name] for name in "ABCD"] == [0, 2, 2, 5]


# --- branches by a table -----------------------------------------------------------------------------------


def test_a_branch_by_index_goes_to_each_target():
    made = lowered(
        """ts: .branchtargets A, B, C, A;
        mov.u32 %r1, %laneid; and.b32 %r1, %r1, 3; brx.idx %r1, ts;
        A: mov.u32 %r2, 10; bra END; B: mov.u32 %r2, 20; bra END; C: mov.u32 %r2, 30; END: ret;"""
    )
    assert Machine(made).run().column("%r2") == [10, 20, 30, 10] * 8


def test_a_table_of_one_target_needs_no_comparison():
    assert opcodes(lowered("ts: .branchtargets A; brx.idx %r1, ts; A: ret;").code) == ["bra", "ret"]


# --- atomics -----------------------------------------------------------------------------------------------


def test_an_atomic_on_a_vector_is_one_on_each_element():
    made = lowered("@%p1 red.global.add.noftz.v4.f16x2 [%rd1+16], {%r1, %r2, %r3, %r4}; ret;")
    *reds, _ = made.code
    assert {i.opcode for i in reds} == {"red.global.add.noftz.f16x2"} and {i.guard for i in reds} != {None}
    assert [i.operands for i in reds] == [
        (Address(Register("%rd1"), 16 + 4 * n), Register(f"%r{n + 1}")) for n in range(4)
    ]
    pair = lowered("atom.global.v2.f32.add {%f1, %f2}, [%rd1], {%f3, %f4}; ret;").code[:2]
    assert [[shown(o) for o in i.operands] for i in pair] == [
        ["%f1", Address(Register("%rd1"), 0), "%f3"],
        ["%f2", Address(Register("%rd1"), 4), "%f4"],
    ]


def test_a_plain_atomic_stays():
    made = lowered("atom.global.add.u32 %r1, [%rd1], 1; red.shared.max.s32 [%r2], %r3; ret;")
    assert opcodes(made.code) == ["atom.global.add.u32", "red.shared.max.s32", "ret"]


# --- waits -------------------------------------------------------------------------------------------------


def yields(body):
    """Return the places of instructions before which a warp gives way, in the code as it was."""
    places = [place for place, each in enumerate(lowered(body).code) if each.parts == ("yield",)]
    return [place - number for number, place in enumerate(places)]


def test_a_loop_that_only_looks_gives_way():
    loop = "L: ld.{how}.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret;"
    for how in ("volatile", "relaxed.gpu", "acquire.gpu"):
        assert yields(loop.format(how=how)) == [0]
    assert yields(loop.replace("{how}.", "")) == []
    made = lowered(loop.format(how="volatile"))
    assert made.labels["L"] == 0  # the loop gives way each time


def test_loops_that_do_more_than_wait():
    head, tail = "L: ld.volatile.global.u32 %r1, [%rd1];", "setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret;"
    assert yields(f"{head} st.global.u32 [%rd2], 1; {tail}") == []
    assert yields(f"{head} bar.sync 0; {tail}") == []
    assert yields(f"{head} add.s64 %rd1, %rd1, 4; {tail}") == []  # looks elsewhere each time
    assert yields(head + "add.u32 %r2, %r2, 1;" * (LONGEST_WAIT - 4) + tail) == [0]
    assert yields(head + "add.u32 %r2, %r2, 1;" * (LONGEST_WAIT - 2) + tail) == []


def test_what_is_acquired_for_the_block():
    assert yields("ld.acquire.cta.global.u32 %r1, [%rd1]; ret;") == [0]
    assert yields("fence.acq_rel.cta; ret;") == [0]
    assert yields("ld.acquire.gpu.global.u32 %r1, [%rd1]; st.release.cta.global.u32 [%rd1], 1; ret;") == []


# --- parameters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4, 7, 12, 18])
def test_a_structure_whose_address_is_taken_is_copied(size):
    made = kernel(
        f"""mov.u32 %r1, %laneid; and.b32 %r1, %r1, 3; setp.ge.u32 %p1, %r1, {size}; @%p1 ret;
        mov.b64 %rd1, s; cvt.u64.u32 %rd2, %r1; add.s64 %rd3, %rd1, %rd2;
        ld.param.u8 %rs1, [%rd3]; ret;""",
        params=f"{PARAMS}, .param .align 4 .b8 s[{size}]",
    )
    copy_parameters(made)
    (copy,) = made.local
    assert (copy.size, copy.align) == (size, 16) and copy.name != "s"
    values = bytes(range(101, 101 + size))
    machine = Machine(made, params={"s": values}).run()
    for lane in range(LANES):
        if lane % 4 < size:
            assert machine.registers[lane]["%rs1"] == values[lane % 4]
        assert bytes(machine.local[lane][:size]) == values


def test_parameters_whose_address_nobody_takes_stay():
    made = kernel("ld.param.u32 %r1, [n]; ret;")
    before = list(made.code)
    copy_parameters(made)
    assert made.code == before and made.local == []


def test_labels_stand_behind_the_copies():
    made = kernel("L: mov.b64 %rd1, n; @%p1 bra L; ret;")
    copy_parameters(made)
    assert made.code[made.labels["L"]].operands[1] == Symbol(made.local[0].name)


def test_an_unknown_product_is_named():
    with pytest.raises(SimtError, match=r"line 4.*wmma\.mma"):
        text = ".loc 1 4 1\nwmma.mma.sync.aligned.row.col.m9n9k9.f32.f32 {%f1}, {%r1}, {%r2}, {%f2};"
        lower(kernel(text, before='.file 1 "kernel.cu"'))
