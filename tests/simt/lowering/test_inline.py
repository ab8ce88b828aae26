"""Calls of device functions as part of the kernel, run by a plain interpreter."""

import pytest
from ptx_kernels import REGISTERS, module, opcodes
from ptx_machine import LANES, Machine, Trap

from simt.lowering import callees
from simt.lowering.inline import inline_calls
from simt.lowering.recursion import STACK, STACK_BYTES, keeps_registers, on_cycles
from simt.ptx import Symbol
from simt.ptx.variables import function_addresses

DIFFERENCE = f"""
.func (.param .b32 out) difference(.param .b32 a, .param .b32 b)
{{{REGISTERS}
    ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b];
    sub.u32 %r3, %r1, %r2;
    st.param.b32 [out], %r3;
    ret;
}}
"""
CALL = """{{ .param .b32 p0; .param .b32 p1; .param .b32 r0;
    st.param.b32 [p0], {a}; st.param.b32 [p1], {b};
    {guard} call.uni (r0), {name}, (p0, p1);
    ld.param.b32 {d}, [r0]; }}"""


def call(d, a, b, name="difference", guard=""):
    return CALL.format(d=d, a=a, b=b, name=name, guard=guard)


def inlined(body, functions=DIFFERENCE, before=""):
    found = module(f"{before}{functions}\n.visible .entry f(.param .u32 n)\n{{{REGISTERS}{body}\nret;\n}}\n")
    kernel = found.kernels["f"]
    inline_calls(kernel, found)
    return kernel


def test_a_call_gives_its_result():
    kernel = inlined(f"mov.u32 %r1, %laneid; mov.u32 %r2, 100; {call('%r3', '%r2', '%r1')}")
    assert "call" not in opcodes(kernel.code)
    running = Machine(kernel).run()
    assert running.column("%r3") == [100 - lane for lane in range(LANES)]
    assert running.column("%r1") == list(range(LANES))  # the function's %r1 is another


def test_each_call_has_registers_of_its_own():
    body = f"""mov.u32 %r1, %laneid; mov.u32 %r2, 100; {call("%r3", "%r2", "%r1")} {call("%r4", "%r3", "%r2")}
    {call("%r5", "%r1", "%r4")}"""
    running = Machine(inlined(body)).run()
    assert running.column("%r4") == [-lane % 2**32 for lane in range(LANES)]
    assert running.column("%r5") == [2 * lane for lane in range(LANES)]


OUTER = (
    DIFFERENCE
    + f"""
.func (.param .b32 out) early(.param .b32 a, .param .b32 b)
{{{REGISTERS}
    ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b];
    st.param.b32 [out], 77;
    setp.lt.u32 %p1, %r1, 5;
    @%p1 ret;
    L: add.u32 %r2, %r2, 10; setp.lt.u32 %p1, %r2, 30; @%p1 bra L;
    {call("%r4", "%r2", "%r1")}
    st.param.b32 [out], %r4;
    ret;
}}
"""
)


def test_a_function_that_calls_another_and_returns_early():
    kernel = inlined(f"mov.u32 %r1, %laneid; mov.u32 %r2, 1; {call('%r3', '%r1', '%r2', 'early')}", OUTER)
    expected = [77 if lane < 5 else (31 - lane) % 2**32 for lane in range(LANES)]
    assert Machine(kernel).run().column("%r3") == expected


@pytest.mark.parametrize("negated", [False, True])
def test_a_call_under_a_guard(negated):
    guarded = call("%r3", "%r2", "%r1", guard=f"@{'!' * negated}%p1")
    kernel = inlined(
        f"""mov.u32 %r1, %laneid; mov.u32 %r2, 100; setp.lt.u32 %p1, %r1, 9;
        {call("%r3", "%r1", "%r1")} {guarded}"""
    )
    over = next(label for label in kernel.labels if label.startswith("over"))
    running = Machine(kernel)
    running.run()
    stored = [name for name in running.registers[0] if name.startswith("%r0+0")]
    assert over and stored
    for lane in range(LANES):
        called = (lane < 9) != negated
        assert (running.registers[lane]["%r3"] == 100 - lane) == called


def test_local_memory_of_a_function():
    function = f"""
    .func (.param .b32 out) kept(.param .b32 a, .param .b32 b)
    {{{REGISTERS} .local .align 8 .b8 depot[16];
        ld.param.u32 %r1, [a]; mov.u64 %rd1, depot; st.local.u32 [%rd1+4], %r1;
        ld.local.u32 %r2, [depot+4]; st.param.b32 [out], %r2; ret;
    }}"""
    kernel = inlined(
        f"mov.u32 %r1, %laneid; {call('%r3', '%r1', '%r1', 'kept')} {call('%r4', '%r3', '%r1', 'kept')}",
        function,
    )
    assert [(v.size, v.align) for v in kernel.local] == [(16, 8), (16, 8)]
    assert len({v.name for v in kernel.local}) == 2
    assert Machine(kernel).run().column("%r4") == list(range(LANES))


def test_vectors_and_bytes_of_parameters():
    function = f"""
    .func (.param .align 16 .b8 out[16]) turned(.param .align 16 .b8 a[16])
    {{{REGISTERS} ld.param.v4.b32 {{%r1, %r2, %r3, %r4}}, [a];
        st.param.v2.b32 [out], {{%r4, %r3}}; st.param.v2.b32 [out+8], {{%r2, %r1}}; ret; }}"""
    kernel = inlined(
        """mov.u32 %r1, %laneid; { .param .align 16 .b8 p0[16]; .param .align 16 .b8 r0[16];
        st.param.v4.b32 [p0], {1, 2, 3, %r1}; call.uni (r0), turned, (p0);
        ld.param.v4.b32 {%r5, %r6, %r7, %r8}, [r0]; }""",
        function,
    )
    running = Machine(kernel).run()
    assert [running.registers[9][f"%r{n}"] for n in (5, 6, 7, 8)] == [9, 3, 2, 1]


def test_code_of_a_header_belongs_to_the_line_that_calls_it():
    files = '.file 1 "kernel.cu"\n.file 2 "header.h"\n'
    header = DIFFERENCE.replace("sub.u32", ".loc 2 700 1\nsub.u32")
    kernel = inlined(f".loc 1 12 1\n{call('%r3', '%r2', '%r1')}", header, files)
    assert {i.line for i in kernel.code if i.parts[0] == "sub"} == {12}
    own = DIFFERENCE.replace("sub.u32", ".loc 1 3 1\nsub.u32")
    kernel = inlined(f".loc 1 12 1\n{call('%r3', '%r2', '%r1')}", own, files)
    assert {i.line for i in kernel.code if i.parts[0] == "sub"} == {3}


def test_printf_assert_and_unknown_functions():
    text = """.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
    .extern .func __assertfail(.param .b64 a);
    .extern .func (.param .b32 r) elsewhere(.param .b32 a);"""
    kernel = inlined(
        """st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd2; call.uni (r0), vprintf, (p0, p1);
        call.uni __assertfail, (p0); call.uni (r0), elsewhere, (p0);""",
        text,
    )
    assert opcodes(kernel.code)[-4:] == ["printf", "trap.assert", "call.uni", "ret"]
    stored = [i.operands[0] for i in kernel.code if i.parts[0] == "mov"]
    assert kernel.code[-4].operands == tuple(stored)


# --- calls by pointer --------------------------------------------------------------------------------------

SUM = DIFFERENCE.replace("difference", "total").replace("sub.u32 %r3", "add.u32 %r3")
ONE = f".func (.param .b32 out) one(.param .b32 a) {{{REGISTERS} st.param.b32 [out], 1; ret; }}"
POINTERS = """.global .align 8 .u64 table[3] = {difference, total, one};"""


def by_pointer(pointer):
    return f"""mov.u32 %r1, %laneid; mov.u32 %r2, 50; {pointer}
    {call("%r3", "%r2", "%r1", name="%rd1").replace("(p0, p1)", "(p0, p1), proto")}"""


def test_a_call_by_pointer_calls_what_it_points_to():
    found = module(f"{DIFFERENCE}{SUM}{ONE}")
    numbers = function_addresses(found)
    assert len(set(numbers.values())) == 3 and 0 not in numbers.values()
    choose = "setp.lt.u32 %p1, %r1, 16; mov.u64 %rd2, difference; mov.u64 %rd3, total; "
    choose += "selp.b64 %rd1, %rd2, %rd3, %p1;"
    kernel = inlined(by_pointer(choose), DIFFERENCE + SUM + ONE, POINTERS)
    expected = [50 - lane if lane < 16 else 50 + lane for lane in range(LANES)]
    assert Machine(kernel).run().column("%r3") == expected


def test_a_pointer_to_no_function_is_a_trap():
    kernel = inlined(by_pointer("mov.u64 %rd1, 12345;"), DIFFERENCE + SUM + ONE, POINTERS)
    with pytest.raises(Trap, match=r"trap\.pointer"):
        Machine(kernel).run()


def test_which_functions_a_pointer_may_mean():
    found = module(f"{POINTERS}{DIFFERENCE}{SUM}{ONE}.entry f() {{ call (r0), %rd1, (p0, p1), proto; ret; }}")
    made = found.kernels["f"].code[0]
    pointed_to = callees.pointed_to(found)
    assert pointed_to == {"difference", "total", "one"}
    assert set(callees.candidates(made, found.functions, pointed_to)) == {"difference", "total"}
    assert callees.target_of(made) != Symbol("proto")


# --- recursion ---------------------------------------------------------------------------------------------

FACTORIAL = f"""
.func (.param .b32 out) factorial(.param .b32 a)
{{{REGISTERS}
    ld.param.u32 %r1, [a];
    setp.gt.u32 %p1, %r1, 1;
    @%p1 bra MORE;
    st.param.b32 [out], 1;
    ret;
MORE:
    sub.u32 %r2, %r1, 1;
    {{ .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %r2;
      call.uni (r0), factorial, (p0); ld.param.b32 %r3, [r0]; }}
    mul.lo.u32 %r4, %r3, %r1;
    st.param.b32 [out], %r4;
    ret;
}}
"""
ASK = """{{ .param .b32 p0; .param .b32 r0; st.param.b32 [p0], {a};
    call.uni (r0), {name}, (p0); ld.param.b32 {d}, [r0]; }}"""


def test_functions_that_reach_themselves():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d", "a"}, "e": {"a", "d"}, "g": set()}
    cycles = on_cycles(graph)
    assert cycles.keys() == {"b", "c", "d"}
    assert cycles["b"] == cycles["c"] != cycles["d"]


def test_a_function_that_calls_itself():
    body = "mov.u32 %r1, %laneid; and.b32 %r1, %r1, 7;" + ASK.format(a="%r1", d="%r3", name="factorial")
    kernel = inlined(body, FACTORIAL)
    (stack,) = kernel.local
    assert (stack.name, stack.size) == (STACK, STACK_BYTES)
    assert any(map(keeps_registers, kernel.code))
    running = Machine(kernel).run()
    assert running.column("%r3") == [1, 1, 2, 6, 24, 120, 720, 5040] * 4


def test_two_functions_that_call_each_other():
    template = FACTORIAL.replace("mul.lo.u32 %r4, %r3, %r1", "add.u32 %r4, %r3, {step}")
    functions = "".join(
        template.replace("(.param .b32 out) factorial", f"(.param .b32 out) {name}")
        .replace("(r0), factorial", f"(r0), {other}")
        .replace("{step}", step)
        for name, other, step in (("even", "odd", "100"), ("odd", "even", "1"))
    )
    body = "mov.u32 %r1, %laneid; and.b32 %r1, %r1, 7;" + ASK.format(a="%r1", d="%r3", name="even")

    def expected(n, is_even):
        return 1 if n <= 1 else expected(n - 1, not is_even) + (100 if is_even else 1)

    assert Machine(inlined(body, functions)).run().column("%r3") == [
        expected(lane % 8, True) for lane in range(LANES)
    ]


def test_a_call_within_an_expression_of_results():
    """Two calls of a function by itself: what the first gave is kept while the second runs."""
    fibonacci = f"""
    .func (.param .b32 out) fibonacci(.param .b32 a)
    {{{REGISTERS}
        ld.param.u32 %r1, [a]; mov.u32 %r9, %r1; setp.lt.u32 %p1, %r1, 2; @%p1 bra END;
        sub.u32 %r2, %r1, 1; {ASK.format(a="%r2", d="%r3", name="fibonacci")}
        sub.u32 %r4, %r1, 2; {ASK.format(a="%r4", d="%r5", name="fibonacci")}
        add.u32 %r9, %r3, %r5;
    END: st.param.b32 [out], %r9; ret;
    }}"""
    body = "mov.u32 %r1, %laneid; and.b32 %r1, %r1, 7;" + ASK.format(a="%r1", d="%r3", name="fibonacci")
    running = Machine(inlined(body, fibonacci)).run(8)
    assert [lane["%r3"] for lane in running.registers[:8]] == [0, 1, 1, 2, 3, 5, 8, 13]


def test_a_stack_that_is_full_is_a_trap():
    kernel = inlined("mov.u32 %r1, 500;" + ASK.format(a="%r1", d="%r3", name="factorial"), FACTORIAL)
    with pytest.raises(Trap, match=r"trap\.recursion"):
        Machine(kernel).run(1)
