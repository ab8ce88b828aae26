"""Basic blocks: where they begin and end, what follows them, their order, and the registers they need."""

import itertools

import pytest
from hypothesis import given, settings
from ptx_kernels import kernel, opcodes, programs, reached, ways

from simt.analysis.blocks import find_live_registers, ordered, split


def blocks_of(body):
    return split(kernel(body))


def successors(blocks):
    return [block.successors for block in blocks]


def test_straight_code_is_one_block():
    (block,) = blocks_of("mov.u32 %r1, 1; add.u32 %r1, %r1, 2; ret;")
    assert len(block.code) == 3 and block.successors == [] and block.end == "leave"


def test_if_and_else():
    blocks = blocks_of(
        """setp.eq.u32 %p1, %r1, 0; @%p1 bra ELSE;
        mov.u32 %r2, 1; bra END;
        ELSE: mov.u32 %r2, 2;
        END: ret;"""
    )
    assert successors(blocks) == [[2, 1], [3], [3], []]  # a branch's target comes first
    assert [block.end for block in blocks] == ["branch", "branch", "", "leave"]


def test_a_loop():
    blocks = blocks_of("mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra L; ret;")
    assert successors(blocks) == [[1], [1, 2], []]


def test_a_barrier_ends_a_block_and_a_warps_does_not():
    blocks = blocks_of("bar.warp.sync 255; bar.sync 0; mov.u32 %r1, 1; ret;")
    assert [opcodes(block.code) for block in blocks] == [["bar.warp.sync", "bar.sync"], ["mov.u32", "ret"]]
    assert successors(blocks) == [[1], []] and blocks[0].end == ""


def test_a_guarded_return_goes_on():
    blocks = blocks_of("@%p1 ret; @!%p1 exit; trap; mov.u32 %r1, 1; ret;")
    assert successors(blocks) == [[1], [2], [], []]
    assert [block.end for block in blocks] == ["leave", "leave", "trap", "leave"]


def test_a_branch_to_the_next_instruction_has_one_successor():
    assert successors(blocks_of("@%p1 bra NEXT; NEXT: ret;")) == [[1], []]


def test_a_block_without_a_way_to_it_is_dropped():
    body = "bra END; mov.u32 %r1, 1; bra END; END: ret;"
    assert len(blocks_of(body)) == 3
    assert [opcodes(block.code) for block in ordered(blocks_of(body))] == [["bra"], ["ret"]]


def test_what_follows_a_loop_comes_after_it_in_order():
    """The exit stands before the loop's second half in the text."""
    blocks = ordered(
        blocks_of(
            """L: setp.eq.u32 %p1, %r1, 0; @!%p1 bra BODY;
            ret;
            BODY: sub.u32 %r1, %r1, 1; bra L;"""
        )
    )
    assert [opcodes(block.code)[0] for block in blocks] == ["setp.eq.u32", "sub.u32", "ret"]
    assert successors(blocks) == [[1, 2], [0], []]


@pytest.mark.parametrize(
    "text",
    [
        "@%p1 bra WAIT; mov.u32 %r1, 1; ret; WAIT: mov.u32 %r1, 2; bar.sync 0; ret;",
        "@%p1 bra LEAVE; mov.u32 %r1, 2; bar.sync 0; ret; LEAVE: mov.u32 %r1, 1; ret;",
    ],
)
def test_lanes_that_return_go_before_a_way_to_a_barrier(text):
    """They are gone when the others arrive."""
    blocks = ordered(blocks_of(text))
    ends = [block.code[-1].opcode for block in blocks]
    assert ends == ["bra", "ret", "bar.sync", "ret"]


# --- random graphs -----------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(programs())
def test_blocks_go_where_their_code_goes(text):
    made = kernel(text)
    number = {id(instruction): n for n, instruction in enumerate(made.code)}
    following, blocks = ways(made), ordered(split(made))
    code = [[number[id(instruction)] for instruction in block.code] for block in blocks]
    assert sorted(n for each in code for n in each) == sorted(reached(0, following))
    assert code[0][0] == 0
    for block, numbers in zip(blocks, code, strict=True):
        assert all(following[a] == {b} for a, b in itertools.pairwise(numbers))
        assert {code[s][0] for s in block.successors} == following[numbers[-1]]
        assert len(set(block.successors)) == len(block.successors)


@settings(max_examples=150, deadline=None)
@given(programs())
def test_a_register_is_live_where_some_path_reads_it_first(text):
    made = kernel(text)
    following, blocks = ways(made), ordered(split(made))
    find_live_registers(blocks)
    number = {id(instruction): n for n, instruction in enumerate(made.code)}
    names = {register.name for i in made.code for register in (*i.results, *i.sources)}
    for block in blocks:
        start = number[id(block.code[0])]
        live = {name for name in names if _reads_first(made.code, following, start, name)}
        assert block.live_in == live


def _reads_first(code, following, start, name):
    """Say whether a path from `start` reads a register before it surely writes it."""
    seen, work = set(), [start]
    while work:
        place = work.pop()
        if place in seen:
            continue
        seen.add(place)
        instruction = code[place]
        writes = name in {register.name for register in instruction.results}
        if name in {register.name for register in instruction.sources} or (writes and instruction.guard):
            return True  # where the guard does not hold, the old value stays
        work += [] if writes else following[place]
    return False
