"""Registers that a path reads before it writes them, and what is computed from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from ptx_kernels import kernel, programs, reached, ways

import simt
from simt.analysis.blocks import find_live_registers, ordered, split
from simt.analysis.unset import may_be_unset, takes_on
from simt.compiler.origin import PtxText


def unset(body):
    """Return the registers that may be unset, each with the opcode of its first use."""
    blocks = ordered(split(kernel(body)))
    find_live_registers(blocks)
    return {name: instruction.opcode for name, instruction in may_be_unset(blocks).items()}


def test_a_sum_that_starts_with_nothing():
    found = unset("mov.u32 %r2, 3; add.s32 %r1, %r1, %r2; st.global.u32 [x], %r1; ret;")
    assert found == {"%r1": "add.s32"}


def test_a_register_that_one_path_sets():
    body = """setp.eq.u32 %p1, 0, 1; {first} @%p1 bra SKIP; mov.u32 %r1, 2; SKIP: xor.b32 %r2, %r1, 1;
    st.global.u32 [x], %r2; ret;"""
    assert unset(body.format(first="")) == {"%r1": "xor.b32", "%r2": "xor.b32"}
    assert unset(body.format(first="mov.u32 %r1, 1;")) == {}


def test_both_paths_set_it():
    assert not unset(
        """setp.eq.u32 %p1, 0, 1; @%p1 bra ELSE; mov.u32 %r1, 1; bra END; ELSE: mov.u32 %r1, 2;
        END: st.global.u32 [x], %r1; ret;"""
    )


def test_a_write_under_a_guard_may_not_happen():
    assert unset("setp.eq.u32 %p1, 0, 1; @%p1 mov.u32 %r1, 1; st.global.u32 [x], %r1; ret;") == {
        "%r1": "st.global.u32"
    }


def test_a_loop_that_sets_it_only_at_its_end():
    assert unset("L: st.global.u32 [x], %r1; mov.u32 %r1, 1; setp.eq.u32 %p1, 0, 1; @%p1 bra L; ret;") == {
        "%r1": "st.global.u32"
    }


def test_what_follows_from_it_names_its_first_use():
    found = unset("neg.s32 %r2, %r1; add.s32 %r3, %r2, 1; cvt.rn.f32.s32 %f1, %r3; st.global.f32 [x], %f1;")
    assert found == dict.fromkeys(["%r1", "%r2", "%r3", "%f1"], "neg.s32")


def test_memory_and_other_lanes_give_values_that_are_set():
    found = unset(
        """ld.global.u32 %r1, [%rd1]; shfl.sync.idx.b32 %r3, %r2, 0, 31, -1;
        vote.sync.ballot.b32 %r4, %p1, -1;
        atom.global.add.u32 %r5, [%rd1], %r6; ret;"""
    )
    assert found.keys() == {"%rd1", "%r2", "%p1", "%r6"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("add.s32 %r1, %r2, %r3;", True),
        ("mov.b64 %rd1, {%r1, %r2};", True),
        ("ld.global.u32 %r1, [%rd1];", False),
        ("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;", False),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%f5};",
            True,
        ),
    ],
)
def test_whose_results_are_as_unset_as_their_operands(line, expected):
    assert takes_on(kernel(f"{line} ret;").code[0]) == expected


@settings(max_examples=150, deadline=None)
@given(programs())
def test_a_register_may_be_unset_where_a_path_from_the_start_says_so(text):
    """The model: registers and places in the code; a value is unset from the start, or from an operand."""
    made = kernel(text)
    blocks = ordered(split(made))
    find_live_registers(blocks)
    found, following, code = may_be_unset(blocks), ways(made), made.code
    names = {register.name for i in code for register in (*i.results, *i.sources)}
    never = {name: _places_reached_unwritten(code, following, name) for name in names}
    read = {
        name
        for name in names
        for place in never[name]
        if name in {register.name for register in code[place].sources}
    }
    assert read <= found.keys()
    alive = {id(code[n]) for n in reached(0, following)}
    assert all(id(instruction) in alive for instruction in found.values())


def _places_reached_unwritten(code, following, name):
    seen, work = set(), [0]
    while work:
        place = work.pop()
        if place not in seen:
            seen.add(place)
            writes = name in {register.name for register in code[place].results} and not code[place].guard
            work += [] if writes else following[place]
    return seen


# --- whole launches ----------------------------------------------------------------------------------------


def checked(body, n, threads=64):
    source = f"""extern "C" __global__ void f(float* out, int n) {{
    int i = threadIdx.x;
{body}
}}"""
    kernel_ = simt.RawModule(code=source).get_function("f")
    found = kernel_.check(1, threads, (np.zeros(64, np.float32), np.int32(n)))
    return [(finding.tool, finding.line) for finding in found]


ONE_PATH = """    float v, w;
    if (i < n) { v = out[i]; w = v * 2; }
    if (i < 32) out[i] = v + w;"""


def test_a_check_follows_a_variable_that_one_path_sets():
    assert checked(ONE_PATH, n=32) == []  # the lanes that store it have set it
    assert {tool for tool, _ in checked(ONE_PATH, n=20)} <= {"initcheck"}  # or the compiler used its freedom
    assert checked(ONE_PATH, n=64) == []


LOOP = """    float sum;
    for (int k = 0; k < n; k++) { if (k == 0) sum = out[i]; else sum += k; }
    if (n > 0) out[i] = sum;
    __syncthreads();
    if (sum > 3) out[i] = 1;"""


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_check_follows_a_variable_that_a_loop_sets(n):
    assert all(tool == "initcheck" for tool, _ in checked(LOOP, n))
    if n:
        assert checked(LOOP, n) == []


PATHS = """.version 8.8
.target sm_90
.address_size 64
.visible .entry f(.param .u64 p, .param .u32 n)
{
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .b16 %rs<3>;
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r2, [n];
    ld.param.u64 %rd1, [p];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    setp.ge.u32 %p1, %r1, %r2;
    @%p1 bra SKIP;
    mov.f32 %f1, 0f40000000;
    mov.b16 %rs1, 7;
    setp.lt.u32 %p2, %r1, 3;
    mov.b64 %rd3, 5;
SKIP:
    bar.sync 0;
    setp.ge.u32 %p1, %r1, 16;
    @%p1 bra END;
    selp.f32 %f2, %f1, 0f3F800000, %p2;
    cvt.u32.u16 %r3, %rs1;
    cvt.u32.u64 %r4, %rd3;
    add.u32 %r3, %r3, %r4;
    cvt.rn.f32.u32 %f3, %r3;
    add.f32 %f2, %f2, %f3;
    st.global.f32 [%rd1], %f2;
END:
    ret;
}
"""


@pytest.mark.parametrize(("n", "is_set"), [(64, True), (16, True), (15, False), (0, False)])
def test_a_check_of_registers_of_each_type_that_one_path_sets(n, is_set):
    """They are needed after a barrier; threads below 16 use them, and those below n have set them."""
    module = simt.RawModule.from_ptx(PtxText(PATHS, "", {}))
    out = np.zeros(64, np.float32)
    found = module.get_function("f").check(1, 64, (out, np.int32(n)))
    assert bool(found) != is_set and {finding.tool for finding in found} <= {"initcheck"}
    plain = np.zeros(64, np.float32)
    module.get_function("f")(1, 64, (plain, np.int32(n)))
    set_ = np.arange(64) < min(n, 16)
    expected = np.where(np.arange(64) < 3, 14.0, 13.0)
    np.testing.assert_array_equal(plain[set_], expected[set_])
    assert not plain[16:].any()
