"""One PTX instruction as data: its guard, its opcode and its operands. Reference: PTX ISA, 4.3, 4.5 and 6."""

import math
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simt.common.errors import SimtError
from simt.ptx import (
    Address,
    Guard,
    Immediate,
    Instruction,
    Register,
    Symbol,
    Vector,
    float_value,
    mapped,
)
from simt.ptx.operands import CARRY, immediate, read_instruction


def read(text):
    return read_instruction(text, 7)


# --- immediates --------------------------------------------------------------------------------------------


@given(st.integers(-(2**63), 2**64 - 1), st.sampled_from(["d", "x", "X", "o"]), st.booleans())
@example(0, "d", False)
@example(0, "o", True)
@example(-8, "o", False)
def test_integers_in_each_base(number, base, is_unsigned):
    sign, size = "-" if number < 0 else "", abs(number)
    text = {"d": f"{size}", "x": f"0x{size:x}", "X": f"0X{size:X}", "o": f"0{size:o}"}[base]
    suffix = "U" if is_unsigned and number >= 0 else ""
    assert immediate(f"{sign}{text}{suffix}") == Immediate(number)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_single_precision_is_given_by_its_bits(bits, is_upper):
    text = f"0F{bits:08X}" if is_upper else f"0f{bits:08x}"
    found = immediate(text)
    assert found == Immediate(bits, is_float=True, bits=32)
    (expected,) = struct.unpack("<f", struct.pack("<I", bits))
    assert float_value(found) == expected or (math.isnan(expected) and math.isnan(float_value(found)))


@given(st.floats(allow_nan=False))
def test_double_precision_is_given_by_its_bits(number):
    (bits,) = struct.unpack("<Q", struct.pack("<d", number))
    found = immediate(f"0d{bits:016X}")
    assert (found.value, found.is_float, found.bits) == (bits, True, 64)
    assert struct.pack("<d", float_value(found)) == struct.pack("<d", number)


def test_known_floats():
    assert float_value(immediate("0f3F800000")) == 1.0
    assert float_value(immediate("0fC0490FDB")) == struct.unpack("<f", struct.pack("<f", -math.pi))[0]
    assert float_value(immediate("0d7FF0000000000000")) == math.inf


def test_the_size_of_a_warp_is_a_number():
    assert immediate("WARP_SZ") == Immediate(32)


@pytest.mark.parametrize(
    "text", ["0f3F80000", "0f3F8000000", "0d3FF00000", "%r1", "x", "0x", "1.0", "0fG0000000", "", "+1", "--1"]
)
def test_what_is_no_number(text):
    assert immediate(text) is None


# --- operands ----------------------------------------------------------------------------------------------

NAMES = st.from_regex(r"[A-Za-z_$][A-Za-z0-9_$]{0,8}", fullmatch=True).filter(lambda name: name != "WARP_SZ")
REGISTERS = NAMES.map(lambda name: f"%q{name}")
PLAIN = st.one_of(
    REGISTERS.map(lambda name: (name, Register(name))),
    NAMES.map(lambda name: (name, Symbol(name))),
    st.integers(-(2**31), 2**32).map(lambda number: (str(number), Immediate(number))),
)


@st.composite
def addresses(draw):
    """An address as text, and as data."""
    text, base = draw(
        st.one_of(REGISTERS.map(lambda n: (n, Register(n))), NAMES.map(lambda n: (n, Symbol(n))))
    )
    offset, space = draw(st.integers(-4096, 4096)), draw(st.sampled_from(["", " "]))
    written = draw(st.sampled_from([f"{space}+{space}{offset}", f"{space}-{space}{-offset}"]))
    written = written if offset >= 0 or "+" in written else f"-{-offset}"
    if offset > 0 and "-" in written:
        written = f"+{offset}"
    return f"[{text}{written if offset else ''}]", Address(base, offset)


@st.composite
def vectors(draw):
    items = draw(st.lists(PLAIN, min_size=2, max_size=8))
    space = draw(st.sampled_from(["", " "]))
    return f"{{{f',{space}'.join(text for text, _ in items)}}}", Vector(tuple(item for _, item in items))


@given(st.lists(st.one_of(PLAIN, addresses(), vectors()), max_size=6), st.sampled_from([", ", ",", ",\n\t"]))
def test_lists_of_operands(operands, comma):
    instruction = read(f"op.b32\t{comma.join(text for text, _ in operands)}")
    assert instruction == Instruction(("op", "b32"), tuple(item for _, item in operands), None, 7)


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("[%rd1]", Address(Register("%rd1"))),
        ("[%rd1+-8]", Address(Register("%rd1"), -8)),
        ("[%rd1 + 0x10]", Address(Register("%rd1"), 16)),
        ("[%rd1-4]", Address(Register("%rd1"), -4)),
        ("[kernel_param_0]", Address(Symbol("kernel_param_0"))),
        ("[64]", Address(Immediate(64))),
        ("%tid.x", Symbol("%tid.x")),
        ("%laneid", Symbol("%laneid")),
        ("%lanemask_lt", Symbol("%lanemask_lt")),
        ("%clock64", Symbol("%clock64")),
        ("%cluster_ctarank", Symbol("%cluster_ctarank")),
        ("%dynamic_smem_size", Symbol("%dynamic_smem_size")),
        ("%tidy", Register("%tidy")),  # only whole names are special
        ("%nctaid2", Register("%nctaid2")),
        ("$L__BB0_2", Symbol("$L__BB0_2")),
        ("_", Symbol("_")),
        ("%p1|%p2", Vector((Register("%p1"), Register("%p2")))),
        ("(a, b)", Vector((Symbol("a"), Symbol("b")))),
        ("{%r1}", Vector((Register("%r1"),))),
    ],
)
def test_each_kind_of_operand(text, operand):
    assert read(f"op {text};".rstrip(";")).operands == (operand,)


def test_an_address_with_coordinates_is_two_operands():
    instruction = read("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}]")
    values, texture, coordinates = instruction.operands
    assert [item.name for item in values.items] == ["%f1", "%f2", "%f3", "%f4"]
    assert (texture, coordinates) == (Register("%rd1"), Vector((Register("%f5"), Register("%f6"))))


def test_a_texel_and_whether_it_is_resident():
    first = read("tex.2d.v4.s32.f32 {%r1, %r2, %r3, %r4}|%p1, [%rd1, {%f5, %f6}]").operands[0]
    assert first.items[1] == Register("%p1") and len(first.items[0].items) == 4


def test_a_part_of_a_register_is_refused():
    with pytest.raises(SimtError, match=r"line 7: .*%r2\.b0"):
        read("vadd.s32.s32.s32 %r1, %r2.b0, %r3")
    with pytest.raises(SimtError, match=r"%r1\.h1"):
        read_instruction("vadd.s32.s32.s32 %r1.h1, %r2, %r3, %r4", 0)


# --- guards and opcodes ------------------------------------------------------------------------------------


@given(REGISTERS, st.booleans(), st.sampled_from([" ", "\t", "\n  "]))
def test_guards(name, negated, space):
    instruction = read(f"@{'!' * negated}{name}{space}bra $L")
    assert instruction.guard == Guard(Register(name), negated)
    assert (instruction.parts, instruction.operands) == (("bra",), (Symbol("$L"),))


def test_an_instruction_without_operands():
    assert read("ret") == Instruction(("ret",), (), None, 7)
    assert read("@!%p3 exit") == Instruction(("exit",), (), Guard(Register("%p3"), True), 7)


@pytest.mark.parametrize(
    ("opcode", "parts"),
    [
        ("ld.shared::cta.b32", ("ld", "shared", "b32")),
        ("ld.param::entry.u64", ("ld", "param", "u64")),
        ("st.shared::cluster.u32", ("st", "shared", "u32")),  # plain accesses reach any block of a cluster
        ("atom.shared::cluster.add.u32", ("atom", "shared", "add", "u32")),
        ("st.async.shared::cluster.u32", ("st", "async", "shared::cluster", "u32")),
        (
            "cp.async.bulk.shared::cluster.global",
            ("cp", "async", "bulk", "shared::cluster", "global"),
        ),
        ("cvt.rn.f32.f64", ("cvt", "rn", "f32", "f64")),
    ],
)
def test_opcodes(opcode, parts):
    assert read(f"{opcode} %r1, [%r2]").parts == parts


@pytest.mark.parametrize(
    ("text", "results", "sources"),
    [
        ("add.s32 %r1, %r2, %r3", ["%r1"], ["%r2", "%r3"]),
        ("@%p1 add.s32 %r1, %r2, 5", ["%r1"], ["%p1", "%r2"]),
        ("ld.global.v2.f32 {%f1, %f2}, [%rd1+8]", ["%f1", "%f2"], ["%rd1"]),
        ("st.global.v2.f32 [%rd1], {%f1, %f2}", [], ["%rd1", "%f1", "%f2"]),
        ("setp.lt.s32 %p1|%p2, %r1, %r2", ["%p1", "%p2"], ["%r1", "%r2"]),
        ("atom.global.add.u32 _, [%rd1], %r1", [], ["%rd1", "%r1"]),
        ("bar.sync 0", [], []),
        ("barrier.red.popc.u32 %r1, 0, %p1", ["%r1"], ["%p1"]),
        ("mov.b64 {_, %r1}, %rd1", ["%r1"], ["%rd1"]),
        ("mov.u32 %r1, %tid.x", ["%r1"], []),
        ("@!%p2 bra $L", [], ["%p2"]),
    ],
)
def test_what_an_instruction_writes_and_reads(text, results, sources):
    instruction = read(text)
    assert [register.name for register in instruction.results] == results
    assert [register.name for register in instruction.sources] == sources


@pytest.mark.parametrize(
    ("text", "space", "type_", "moved"),
    [
        ("ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]", "global", "f32", 16),
        ("st.shared.u8 [%r1], %rs1", "shared", "u8", 1),
        ("ld.b64 %rd1, [%rd2]", "generic", "b64", 8),
        ("ld.const.v2.u16 {%rs1, %rs2}, [c]", "const", "u16", 4),
        ("st.local.b128 [%rd1], %rq1", "local", "b128", 16),
        ("ld.global.b32.L2::128B %r1, [%rd1]", "global", "b32", 4),
    ],
)
def test_what_an_access_moves(text, space, type_, moved):
    instruction = read(text)
    assert (instruction.space, instruction.type, instruction.moved_bytes) == (space, type_, moved)
    assert instruction.is_access


def test_parameters_are_no_memory():
    assert not read("ld.param.u64 %rd1, [p]").is_access


def test_a_conversions_type_is_its_sources():
    assert read("cvt.u64.u32 %rd1, %r1").type == "u32"


def test_which_instructions_end_a_block():
    ends = ["bra $L", "@%p1 ret", "exit", "bar.sync 0", "barrier.sync 1, 64", "trap", "yield"]
    assert all(read(text).ends_block for text in ends)
    goes_on = [
        "bar.warp.sync 255",
        "add.s32 %r1, %r1, 1",
        "membar.gl",
        "shfl.sync.idx.b32 %r1, %r2, 0, 31, -1",
    ]
    assert not any(read(text).ends_block for text in goes_on)


# --- the carry ---------------------------------------------------------------------------------------------


def test_the_carry_is_an_operand():
    first = read("add.cc.u32 %r1, %r2, %r3")
    middle, last = read("addc.cc.u32 %r4, %r5, %r6"), read("addc.u32 %r7, %r8, 0")
    assert first.results == (Register("%r1"), CARRY) and CARRY not in first.sources
    assert middle.results == (Register("%r4"), CARRY) and middle.sources[-1] == CARRY
    assert last.results == (Register("%r7"),) and last.operands[-2:] == (Immediate(0), CARRY)


def test_mapped_changes_every_register():
    instruction = read("@%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1+4]")

    def primed(operand):
        return Register(f"{operand.name}'") if isinstance(operand, Register) else operand

    changed = mapped(instruction, primed)
    assert changed.guard == Guard(Register("%p1'"), False)
    vector, address = changed.operands
    assert [item.name for item in vector.items] == ["%r1'", "%r2'"]
    assert address == Address(Register("%rd1'"), 4)
    assert (changed.parts, changed.line) == (instruction.parts, instruction.line)
