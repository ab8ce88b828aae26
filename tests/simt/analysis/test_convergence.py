"""Regions of machine code in which lanes may part, and the blocks before which groups of lanes wait."""

import pytest
from ptx_kernels import kernel, rules

from simt.analysis.convergence import ALL, Groups, meeting_place


def groups(body):
    made = kernel(body)
    return Groups(made, rules(made))


OF_LANES = "mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 7;"
DIAMOND = f"""{OF_LANES} bssy MEET, %r9; @%p1 bra ELSE; st.global.u32 [x], 1; bsync MEET;
ELSE: st.global.u32 [x], 2; bsync MEET; MEET: st.global.u32 [x], 3; ret;"""


@pytest.mark.parametrize(
    ("line", "place"),
    [("bssy L;", "L"), ("bsync L;", "L"), ("break L;", "L"), ("bra L;", ""), ("ret;", "")],
)
def test_meeting_places(line, place):
    assert meeting_place(kernel(f"{line} L: ret;").code[0]) == place


def test_nothing_is_no_meeting_place():
    assert meeting_place(None) == ""


def test_lanes_meet_where_the_code_says():
    found = groups(DIAMOND)
    meet = found.blocks_of("MEET")
    assert found.meetings() == {meet} and found.divergent == {0}
    first, second = found.blocks[0].successors
    assert {meet} <= found.blocks[first].may_wait | found.blocks[second].may_wait
    assert meet not in found.blocks[meet].may_wait  # all have come
    assert all(block.may_have_exited for block in found.blocks)


def test_without_a_branch_that_parts_lanes_nobody_waits_at_the_arms():
    found = groups(DIAMOND.replace("%laneid", "%ctaid.x"))
    assert found.divergent == set()
    first, second = found.blocks[0].successors
    assert not {first, second} & set().union(*(block.may_wait for block in found.blocks))


def test_a_label_is_that_of_a_block():
    found = groups(DIAMOND)
    assert found.blocks[found.blocks_of("ELSE")].code[-1].parts == ("bsync",)
    assert found.blocks[found.blocks_of("MEET")].code[-1].parts == ("ret",)


def test_all_lanes_of_a_warp():
    assert ALL.bit_count() == 32
