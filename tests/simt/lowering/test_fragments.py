"""How lanes hold matrices, and wmma's loads and stores run by a plain interpreter, against the PTX ISA."""

import numpy as np
import pytest
from ptx_kernels import kernel, opcodes
from ptx_machine import LANES, Machine

from simt.lowering.fragments import BITS, Matrices, matrices
from simt.lowering.lower import lower

WHOLE = [
    Matrices(16, 8, 16, ("f32", "f16", "f16", "f32")),
    Matrices(16, 8, 8, ("f32", "tf32", "tf32", "f32")),
    Matrices(16, 8, 32, ("s32", "s8", "s8", "s32")),
    Matrices(16, 8, 64, ("s32", "u4", "u4", "s32")),
    Matrices(8, 8, 4, ("f64", "f64", "f64", "f64")),
    Matrices(16, 16, 16, ("f16", "f16", "f16", "f16")),
    Matrices(32, 8, 16, ("f32", "bf16", "bf16", "f32")),
    Matrices(8, 32, 16, ("f32", "f16", "f16", "f32")),
]


def held(found, role):
    """List the (row, column) of each number that each lane holds, register by register."""
    per = 2 if role in "cd" else found.per_register(role)
    for lane in range(LANES):
        group, index = divmod(lane, 4)
        for row, column in found.blocks(role):
            for i in range(per):
                along = per * index + i
                yield (
                    lane,
                    (row + along, column + group) if found.is_turned(role) else (row + group, column + along),
                )


@pytest.mark.parametrize("found", WHOLE, ids=str)
@pytest.mark.parametrize("role", "abcd")
def test_the_lanes_hold_each_number_once(found, role):
    rows, columns = {"a": (found.m, found.k), "b": (found.k, found.n)}.get(role, (found.m, found.n))
    places = [place for _, place in held(found, role)]
    assert sorted(places) == [(row, column) for row in range(rows) for column in range(columns)]


def test_the_isas_figures_of_m16n8k16():
    """PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"."""
    found = WHOLE[0]
    for lane in range(LANES):
        group, thread = lane >> 2, lane % 4
        a = [place for holder, place in held(found, "a") if holder == lane]
        assert a == [
            (group if i < 2 or 4 <= i < 6 else group + 8, thread * 2 + (i & 1) + (8 if i >= 4 else 0))
            for i in range(8)
        ]
        b = [place for holder, place in held(found, "b") if holder == lane]
        assert b == [(thread * 2 + (i & 1) + (8 if i >= 2 else 0), group) for i in range(4)]
        c = [place for holder, place in held(found, "c") if holder == lane]
        assert c == [(group + (8 if i >= 2 else 0), thread * 2 + (i & 1)) for i in range(4)]


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", (16, 8, 16, ("f32", "bf16", "bf16", "f32"))),
        ("wmma.mma.sync.aligned.row.col.m32n8k16.f16.f32", (32, 8, 16, ("f16", "f16", "f16", "f32"))),
        ("wmma.load.a.sync.aligned.row.m16n16k8.tf32", (16, 16, 8, ("tf32",) * 4)),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", (64, 8, 16, ("f32", "f16", "f16", "f32"))),
        ("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", None),  # Volta's
        ("mma.sync.aligned.m16n7k16.row.col.f32.f16.f16.f32", None),
        ("wmma.load.a.sync.aligned.row.m8n8k32.s4", None),
        ("mma.sync.aligned.row.col.f32.f16.f16.f32", None),
    ],
)
def test_matrices_of_an_opcode(opcode, expected):
    assert matrices(tuple(opcode.split("."))) == (expected and Matrices(*expected))


# --- loads and stores --------------------------------------------------------------------------------------

TYPES = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
MOVES = [
    ("a", "m16n16k16", "f16", 8, 16, 16),
    ("b", "m16n16k16", "bf16", 4, 16, 16),
    ("b", "m16n16k16", "f16", 8, 16, 16),
    ("a", "m16n16k8", "tf32", 4, 16, 8),
    ("b", "m16n16k8", "tf32", 4, 8, 16),
    ("a", "m16n16k16", "s8", 2, 16, 16),
    ("b", "m16n16k16", "u8", 2, 16, 16),
    ("a", "m32n8k16", "f16", 8, 32, 16),
    ("b", "m8n32k16", "f16", 8, 16, 32),
    ("c", "m16n16k16", "f32", 8, 16, 16),
    ("d", "m16n16k16", "f16", 4, 16, 16),
    ("c", "m8n32k16", "f32", 8, 8, 32),
    ("a", "m8n8k4", "f64", 1, 8, 4),
    ("d", "m8n8k4", "f64", 2, 8, 8),
]
RNG = np.random.default_rng(4)


@pytest.mark.parametrize(("role", "shape", "type_", "count", "rows", "columns"), MOVES, ids=str)
@pytest.mark.parametrize("major", ["row", "col"])
@pytest.mark.parametrize("stride", ["number", "register", "none"])
def test_wmma_moves_each_number_to_its_lane(role, shape, type_, count, rows, columns, major, stride):
    bits, name = BITS[type_], "%rd" if type_ == "f64" else "%r"
    along = columns if major == "row" else rows
    width = along if stride == "none" else along + 8
    matrix = RNG.integers(0, 1 << min(bits, 62), (rows, columns)).astype(TYPES[bits])
    memory = np.zeros((rows + columns, width), TYPES[bits])
    lines = memory[:rows, :columns] if major == "row" else memory[:columns, :rows].T
    registers = ", ".join(f"{name}{n + 10}" for n in range(count))
    given = {"number": f", {width}", "register": ", %r1", "none": ""}[stride]
    verb, operands = "load", f"{{{registers}}}, [%rd1+64]"
    if role == "d":
        verb, operands = "store", f"[%rd1+64], {{{registers}}}"
    made = kernel(f"wmma.{verb}.{role}.sync.aligned.{major}.{shape}.global.{type_} {operands}{given}; ret;")
    lower(made)
    found = matrices(("wmma", verb, role, shape, type_))
    values = [[] for _ in range(LANES)]
    for lane, (row, column) in held(found, role):
        values[lane].append(int(matrix[row, column]))
    per = 64 // bits if bits == 64 else 32 // bits
    packed = [
        [sum(v << bits * i for i, v in enumerate(each[n : n + per])) for n in range(0, len(each), per)]
        for each in values
    ]

    def start(lane):
        stored = {f"{name}{n + 10}": word for n, word in enumerate(packed[lane])} if role == "d" else {}
        return {"%rd1": 512, "%r1": width, **stored}

    machine = Machine(made, memory=1 << 14, registers=start)
    if role == "d":
        machine.run()
        got = np.frombuffer(machine.memory["global"], TYPES[bits], rows * columns * 4, 512 + 64)
        got = got[: memory.size] if got.size >= memory.size else np.pad(got, (0, memory.size - got.size))
        got = got.reshape(memory.shape)
        np.testing.assert_array_equal(
            got[:rows, :columns] if major == "row" else got[:columns, :rows].T, matrix
        )
        return
    lines[:] = matrix
    data = memory.tobytes()
    machine.memory["global"][576 : 576 + len(data)] = data
    machine.run()
    for lane in range(LANES):
        got = [machine.registers[lane][f"{name}{n + 10}"] for n in range(count)]
        assert got == (packed[lane] * 2)[:count]  # some shapes hold each block twice


def test_a_product_becomes_mma():
    made = kernel(
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite {%f1}, {%r1}, {%r2}, {%f2}; ret;"
    )
    lower(made)
    assert opcodes(made.code)[0] == "mma.sync.m16n16k16.f32.f16.f16.f32.satfinite"
