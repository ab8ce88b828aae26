"""PTX text as data: functions, variables, registers, scopes, labels and source lines."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.common.errors import SimtError
from simt.ptx import Register, Symbol, Vector
from simt.ptx.parser import parse, return_directly

HEAD = ".version 8.8\n.target sm_90\n.address_size 64\n"


def module(text, **options):
    return parse(HEAD + text, **options)


def entry(body, params="", attributes=""):
    """Return the kernel with this body."""
    return module(f".visible .entry f({params}) {attributes}\n{{\n{body}\n}}\n").kernels["f"]


def opcodes(kernel):
    return [instruction.opcode for instruction in kernel.code]


# --- registers ---------------------------------------------------------------------------------------------


def test_families_and_single_registers():
    kernel = entry(".reg .pred %p<3>;\n.reg .b32 %r<10>, %first;\n.reg .f64 %fd<2>;\nret;")
    types = {name: kernel.register_type(name) for name in ("%p2", "%r9", "%first", "%fd1")}
    assert types == {"%p2": "pred", "%r9": "b32", "%first": "b32", "%fd1": "f64"}


def test_an_undeclared_register_has_no_type():
    with pytest.raises(KeyError):
        entry("ret;").register_type("%r1")


def test_an_inner_scope_hides_registers():
    kernel = entry(
        """.reg .b32 %r<3>; .reg .pred p;
        mov.u32 %r1, 1;
        { .reg .b64 %r<2>; .reg .b32 t;
          mov.b64 %r1, 2; mov.u32 t, 3; mov.u32 %r2, 4;
          { .reg .b16 t; mov.b16 t, 5; }
          mov.u32 t, 6;
        }
        mov.u32 %r1, 7;
        { .reg .b16 %r1; mov.b16 %r1, 8; }
        """
    )
    written = [instruction.operands[0] for instruction in kernel.code]
    types = [kernel.register_type(register.name) for register in written]
    assert types == ["b32", "b64", "b32", "b32", "b16", "b32", "b32", "b16"]
    outer, hidden, t, r2, inner_t, t_again, outer_again, other = written
    assert outer == outer_again == Register("%r1") and r2 == Register("%r2")
    assert t == t_again and len({outer, hidden, t, inner_t, other}) == 5


def test_an_inner_scope_renames_guards_and_addresses():
    kernel = entry(
        """.reg .b64 %rd1; .reg .pred %p1;
        { .reg .pred %p1; .reg .b64 a; .reg .b32 x, y;
          @%p1 ld.global.v2.u32 {x, y}, [a+4]; }
        @%p1 st.global.u32 [%rd1], 0;"""
    )
    inside, outside = kernel.code
    names = {register.name for register in (*inside.results, *inside.sources)}
    assert len(names) == 4 and not names & {"%p1", "a", "x", "y"}
    assert outside.guard.register == Register("%p1")


# --- labels ------------------------------------------------------------------------------------------------


def test_labels_are_places_in_the_code():
    kernel = entry(
        """.reg .pred %p1;
        $L__A: @%p1 bra $L__C;
        bar.sync 0;
        $L__B: $L__unused:
        bra.uni $L__A;
        $L__C:
        bra $L__B;"""
    )
    assert kernel.labels == {"$L__A": 0, "$L__B": 2, "$L__C": 3}


def test_scopes_have_labels_of_their_own():
    """Two copies of an `asm` with a loop, each within braces."""
    loop = "{ .reg .pred q; AGAIN: setp.eq.u32 q, 0, 1; @q bra AGAIN; }"
    kernel = entry(f"{loop}\n{loop}")
    targets = [i.operands[0].name for i in kernel.code if i.parts[0] == "bra"]
    assert len(set(targets)) == 2
    assert [kernel.labels[name] for name in targets] == [0, 2]


def test_a_table_of_targets():
    kernel = entry(
        """.reg .b32 %r1;
        ts: .branchtargets $A, $B,
            $C;
        brx.idx %r1, ts;
        $A: ret; $B: trap; $C: exit;"""
    )
    assert kernel.tables == {"ts": ("$A", "$B", "$C")}
    assert [kernel.labels[name] for name in kernel.tables["ts"]] == [1, 2, 3]


def test_a_branch_to_a_return_is_a_return():
    kernel = entry(
        """.reg .pred %p<3>;
        @%p1 bra END; @!%p2 bra MIDDLE; bar.sync 0; MIDDLE: @%p1 ret; bra END; END: ret;"""
    )
    return_directly(kernel)
    assert opcodes(kernel) == ["ret", "bra", "bar.sync", "ret", "ret", "ret"]
    assert kernel.code[0].guard.register.name == "%p1" and kernel.code[0].operands == ()


# --- source lines ------------------------------------------------------------------------------------------

FILES = '.file 1 "/tmp/kernel.cu"\n.file 2 "/usr/include/header.h"\n'


def test_lines_of_the_students_file_alone_count():
    text = f"""{FILES}.visible .entry f() {{
    mov.b32 %r0, 0;
    .loc 1 12 3
    mov.b32 %r1, 0;
    .loc 2 400 7
    mov.b32 %r2, 0;
    .loc 1 0 0
    mov.b32 %r3, 0;
    .loc 1 14 3
    ret;
    }}"""
    assert [i.line for i in module(text).kernels["f"].code] == [0, 12, 12, 12, 14]


def test_lines_of_several_files_follow_each_other():
    text = """.visible .entry f() {
    .loc 1 3 0
    bar.sync 0;
    .loc 2 4 0
    bar.sync 0;
    .loc 3 9 0
    ret;
    }
    .file 1 "a.cu"
    .file 2 "b.cuh"
    .file 3 "other.h" """
    code = module(text, first_lines={"a.cu": 0, "b.cuh": 100}).kernels["f"].code
    assert [i.line for i in code] == [3, 104, 104]


def test_the_lines_that_call_an_inlined_function():
    text = f"""{FILES}.visible .entry f() {{
    .loc 1 20 3
    bar.sync 0;
    .loc 1 10 3, function_name $L__info_string0, inlined_at 1 20 3
    bar.sync 0;
    .loc 1 5 1, function_name $L__info_string1, inlined_at 1 10 3
    bar.sync 0;
    .loc 1 21 3
    ret;
    }}"""
    code = module(text).kernels["f"].code
    assert [(i.line, i.calls) for i in code] == [(20, ()), (10, (20,)), (5, (10, 20)), (21, ())]


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 9999)), max_size=12))
def test_each_instruction_has_the_last_line_before_it(places):
    body = "\n".join(f".loc {file} {line} 1\nbar.sync {n};" for n, (file, line) in enumerate(places))
    code = module(f"{FILES}.visible .entry f() {{\n{body}\n}}").kernels["f"].code
    last, expected = 0, []
    for file, line in places:
        last = line if file == 1 and line else last
        expected.append(last)
    assert [i.line for i in code] == expected


def test_comments_are_left_out():
    kernel = entry("// add.s32 %r1, %r2;\nmov.b32 %r1, /* two; lines\n */ 3; // end\nret;")
    assert opcodes(kernel) == ["mov.b32", "ret"]


# --- functions and variables -------------------------------------------------------------------------------


def test_entries_functions_and_declarations():
    found = module(
        """.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
        .func (.param .b32 out) twice(.param .b32 in) { .reg .b32 %r<2>; ret; }
        .visible .entry first(.param .u64 p) { ret; }
        .entry second() { ret; }"""
    )
    assert list(found.kernels) == ["first", "second"] and list(found.functions) == ["twice"]
    twice = found.functions["twice"]
    assert [v.name for v in twice.params] == ["in"] and [v.name for v in twice.results] == ["out"]


def test_attributes_of_a_kernel():
    kernel = entry("ret;", attributes=".maxntid 16, 8, 2 .minnctapersm 2 .reqnctapercluster 2, 3")
    assert kernel.max_threads == 256 and kernel.cluster == (2, 3, 1) and kernel.blocks_together == 6
    assert entry("ret;", attributes=".maxntid 96").max_threads == 96
    assert entry("ret;").max_threads == 1024 and entry("ret;").cluster == (1, 1, 1)


def test_parameters():
    kernel = entry(
        "ret;",
        ".param .u64 .ptr .global .align 16 p, .param .f32 x, .param .align 4 .b8 s[12], .param .s16 n",
    )
    assert [(v.name, v.type, v.size, v.align) for v in kernel.params] == [
        ("p", "u64", 8, 8),
        ("x", "f32", 4, 4),
        ("s", "b8", 12, 4),
        ("n", "s16", 2, 2),
    ]


def test_shared_and_local_variables():
    kernel = entry(
        """.shared .align 16 .b8 tile[1024];
        .local .align 8 .b8 __local_depot0[24];
        .shared .f64 sums[2][3];
        .pragma "nounroll";
        ret;"""
    )
    assert [(v.name, v.size, v.align) for v in kernel.shared] == [("tile", 1024, 16), ("sums", 48, 8)]
    assert [(v.name, v.size, v.align) for v in kernel.local] == [("__local_depot0", 24, 8)]


def test_variables_of_the_module():
    found = module(
        """.visible .global .align 4 .u32 n = 7;
        .extern .shared .align 16 .b8 dynamic[];
        .visible .const .align 4 .f32 w[3] = {0f3F800000, 0fC0000000, 0f3F000000};
        .global .align 2 .u16 k[2] = {65535, -2};
        .global .align 8 .u64 table[3] = {generic(n), generic(w)+8, 5};
        .entry f() { ret; }
        .global .u8 last;"""
    ).variables
    spaces = {name: (space, v.size, v.align) for name, (space, v) in found.items()}
    assert spaces == {
        "n": ("global", 4, 4),
        "dynamic": ("shared", 0, 16),
        "w": ("const", 12, 4),
        "k": ("global", 4, 2),
        "table": ("global", 24, 8),
        "last": ("global", 1, 1),
    }
    assert found["n"][1].values == np.uint32(7).tobytes()
    assert found["w"][1].values == np.array([1, -2, 0.5], np.float32).tobytes()
    assert found["k"][1].values == np.array([0xFFFF, 0xFFFE], np.uint16).tobytes()
    assert found["table"][1].addresses == ((0, "n", 0), (8, "w", 8))
    assert found["table"][1].values[16:] == (5).to_bytes(8, "little")


SIZES = {"u8": ctypes.c_uint8, "s16": ctypes.c_int16, "b32": ctypes.c_uint32, "f64": ctypes.c_double}


@given(st.sampled_from(list(SIZES)), st.lists(st.integers(1, 9), max_size=3))
def test_sizes_are_those_of_c_arrays(type_, dimensions):
    c_type = SIZES[type_]
    for dimension in reversed(dimensions):
        c_type = c_type * dimension
    dims = "".join(f"[{dimension}]" for dimension in dimensions)
    (variable,) = entry(f".shared .{type_} x{dims};\nret;").shared
    assert (variable.size, variable.align) == (ctypes.sizeof(c_type), ctypes.alignment(c_type))


def test_a_call_has_lists_of_results_and_arguments():
    kernel = entry("call.uni (ret0), twice, (param0, param1);")
    results, name, given_ = kernel.code[0].operands
    assert results == Vector((Symbol("ret0"),)) and name == Symbol("twice")
    assert given_ == Vector((Symbol("param0"), Symbol("param1")))


def test_constants_that_only_headers_define_are_dropped():
    found = module(
        """.global .align 1 .b8 _ZN34_INTERNAL_aa_9_kernel_cu_f4cuda3std5plainE[1];
        .global .u32 mine;
        .entry f() { ret; }"""
    )
    assert list(found.variables) == ["mine"]


# --- what is not understood --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (".entry f() { .strange 3; ret; }", "strange"),
        (".entry f() { ret; ", "ends"),
        (".global .u32 x = {generic(y)}; .entry f() { ret; }", r"generic\(y\)"),  # 4 bytes hold no address
        (".global .f32 x = 1.5; .entry f() { ret; }", "1.5"),
    ],
)
def test_what_is_not_ptx_is_named(text, named):
    with pytest.raises(SimtError, match=named):
        module(text)
