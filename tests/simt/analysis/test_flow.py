"""Where the lanes of a warp part and meet: small kernels, and walks through random ones."""

from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_kernels import flow, opcodes

from simt.analysis.lanes import UNIFORM, VARYING

OF_LANES = "mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 7;"
OF_BLOCK = "mov.u32 %r1, %ctaid.x; setp.lt.u32 %p1, %r1, 7;"
DIAMOND = """@%p1 bra ELSE; mov.u32 %r2, 1; bra END; ELSE: mov.u32 %r2, 2;
END: st.global.u32 [x], %r2; ret;"""


def waiting(found):
    return [sorted(block.may_wait) for block in found.blocks]


def test_lanes_part_at_a_branch_on_the_lane():
    found = flow(OF_LANES + DIAMOND)
    assert found.divergent == {0}
    assert [block.successors for block in found.blocks] in ([[1, 2], [3], [3], []], [[2, 1], [3], [3], []])
    # of the two arms the first runs while the other lanes wait at the second, then those at the end
    assert waiting(found) == [[], [2], [3], []]


def test_lanes_stay_together_at_a_branch_on_the_block():
    found = flow(OF_BLOCK + DIAMOND)
    assert found.divergent == set() and waiting(found) == [[], [], [], []]
    assert found.shapes["%r2"] == UNIFORM


def test_a_register_is_blended_where_parted_lanes_need_its_old_value():
    body = """mov.u32 %r2, 5; @%p1 bra END; mov.u32 %r2, 6; mov.u32 %r3, 7; st.global.u32 [x], %r3;
    END: st.global.u32 [x], %r2; ret;"""
    parted, together = flow(OF_LANES + body), flow(OF_BLOCK + body)
    assert parted.shapes["%r2"] == VARYING and together.shapes["%r2"] == UNIFORM
    assert parted.needs_blend(1, "%r2") and not parted.needs_blend(1, "%r3")
    assert parted.shapes["%r3"] == UNIFORM  # nobody that waits reads it
    assert not together.needs_blend(1, "%r2")


def test_lanes_that_have_left_a_loop_wait_behind_it():
    found = flow(
        """mov.u32 %r1, %laneid;
        L: sub.u32 %r1, %r1, 1; setp.gt.s32 %p1, %r1, 0; @%p1 bra L;
        st.global.u32 [x], %r1; ret;"""
    )
    assert waiting(found) == [[], [2], []]
    assert found.divergent == {1} and not any(block.may_have_exited for block in found.blocks)


def test_lanes_that_have_ended():
    found = flow(f"{OF_LANES} @%p1 ret; mov.u32 %r2, 1; bar.sync 0; ret;")
    assert [block.may_have_exited for block in found.blocks] == [False, True, True]
    whole = flow(f"{OF_BLOCK} @%p1 ret; mov.u32 %r2, 1; bar.sync 0; ret;")
    assert [block.may_have_exited for block in whole.blocks] == [False, False, False]


def test_a_value_that_meets_itself_keeps_its_shape():
    body = "@%p1 bra ELSE; add.u32 %r3, %r2, 1; bra END; ELSE: add.u32 %r3, %r2, 1; END: ret;"
    found = flow(f"mov.u32 %r2, %tid.x; {OF_BLOCK} {body}")
    assert found.shapes["%r3"].lane_offsets() == tuple(range(32))


def test_a_loop_counter_is_uniform_and_what_depends_on_lanes_is_not():
    found = flow(
        """mov.u32 %r1, 0; mov.u32 %r2, %tid.x; mov.u32 %r3, 0; ld.param.u32 %r5, [n];
        L: add.u32 %r3, %r3, %r2; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r5; @%p1 bra L;
        ret;"""
    )
    assert found.shapes["%r1"] == UNIFORM and found.shapes["%p1"] == UNIFORM
    assert found.shapes["%r3"] == VARYING  # 0, then tid, then 2 tid: no one step
    assert found.divergent == set()


def test_a_guard_keeps_the_old_value_in_some_lanes():
    found = flow(f"{OF_LANES} mov.u32 %r2, 1; @%p1 mov.u32 %r2, 2; @%p1 mov.u32 %r3, 4; ret;")
    assert found.shapes["%r2"] == VARYING
    uniform = flow(f"{OF_BLOCK} mov.u32 %r2, 1; @%p1 mov.u32 %r2, 2; ret;")
    assert uniform.shapes["%r2"] == UNIFORM


# --- random graphs -----------------------------------------------------------------------------------------

LANES = 5


@st.composite
def graphs(draw):
    """Blocks, each with how it ends and where it branches to; what decides differs between lanes, or not."""
    count = draw(st.integers(2, 8))
    kinds = ("branch", "jump", "next", "barrier", "leave", "maybe leave")
    ends = [
        (draw(st.sampled_from(kinds)), draw(st.integers(0, count - 1)), draw(st.booleans()))
        for _ in range(count)
    ]
    return [*ends, ("leave", 0, False)]


def text_of(graph):
    lines = ["mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 7; mov.u32 %r2, %ctaid.x; setp.eq.u32 %p2, %r2, 0;"]
    for number, (kind, target, varies) in enumerate(graph):
        guard = "@%p1" if varies else "@%p2"
        end = {
            "branch": f"{guard} bra B{target};",
            "jump": f"bra B{target};",
            "next": "",
            "barrier": "bar.sync 0;",
            "leave": "ret;",
            "maybe leave": f"{guard} ret;",
        }[kind]
        lines.append(f"B{number}: st.global.u32 [x], {number}; {end}")
    return "\n".join(lines)


@settings(max_examples=200, deadline=None)
@given(graphs(), st.randoms(use_true_random=False))
def test_lanes_wait_only_where_the_analysis_says(graph, rng):
    """A warp walks at random by the scheduling rule: of the blocks with lanes, the lowest in order runs."""
    found = flow(text_of(graph))
    places, ended = dict.fromkeys(range(LANES), 0), 0
    for _ in range(60):
        if not places:
            break
        index = min(places.values())
        block = found.blocks[index]
        running = [lane for lane, place in places.items() if place == index]
        others = {place for place in places.values() if place != index}
        assert others <= block.may_wait
        assert block.may_have_exited or not ended
        if block.last and block.last.is_barrier and others:
            break  # a mistake of the kernel, which a launch reports
        ways = [*block.successors]
        if block.end == "leave":
            ways.append(None)
        together = rng.choice(ways)
        for lane in running:
            target = rng.choice(ways) if index in found.divergent else together
            if target is None:
                del places[lane]
                ended += 1
            else:
                places[lane] = target


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_a_warp_parts_only_at_branches_that_differ_between_lanes(graph):
    found = flow(text_of(graph))
    for index, block in enumerate(found.blocks):
        guard = block.last.guard if block.last else None
        assert (index in found.divergent) == (guard is not None and guard.register.name == "%p1")


def test_the_order_of_blocks_puts_a_join_after_its_arms():
    found = flow(
        f"""{OF_LANES} @%p1 bra A; mov.u32 %r2, 1; @%p2 bra B; mov.u32 %r2, 2; bra C;
        A: mov.u32 %r2, 3; bra C; B: mov.u32 %r2, 4; C: st.global.u32 [x], %r2; ret;"""
    )
    assert opcodes(found.blocks[-1].code) == ["st.global.u32", "ret"]
    assert found.blocks[-1].may_wait == frozenset()  # all lanes have met
