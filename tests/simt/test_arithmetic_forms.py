"""Every instruction that computes, on edge cases and random numbers, against a reference in plain Python.

Many instructions share a kernel of PTX. Each runs on values that differ between lanes, and on values that are
the same in all of them, since the simulator computes those once.
"""

import math
import random
import re
from functools import cache
from itertools import chain, groupby

import ieee
import numpy as np
import pytest
from ptx_forms import BITS, FORMS, as_type

import simt
from simt.code.instructions.table import OPERATIONS, find
from simt.compiler.origin import PtxText

CASES = 128
PER_KERNEL = 60  # forms; a kernel of much more than 400 instructions would share code between them
EDGES = {
    "n": [0, 1, 4, 7, 8, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 127, 128, 255, 256, 2**31, 2**32 - 1],
    "p": [0, 1],
    "f16": [
        0,
        1,
        0x3FF,
        0x400,
        0x401,
        0x3800,
        0x3BFF,
        0x3C00,
        0x3C01,
        0x4000,
        0x5BFF,
        0x7BFF,
        0x7C00,
        0x7E00,
    ],
    "bf16": [0, 1, 0x7F, 0x80, 0x81, 0x3F00, 0x3F7F, 0x3F80, 0x3F81, 0x4000, 0x4300, 0x7F7F, 0x7F80, 0x7FC0],
}
EDGES["f32"] = [0, 1, 0x7FFFFF, 0x800000, 0x800001, 0x33800000, 0x3F000000, 0x3F800000, 0x3F800001]
EDGES["f32"] += [
    0x3FC00000,
    0x40200000,
    0x4AFFFFFF,
    0x4EFFFFFF,
    0x4F000000,
    0x4F7FFFFF,
    0x5F000000,
    0x477FF000,
]
EDGES["f32"] += [0x38800000, 0x3F801000, 0x3F803000, 0x3F801001, 0x7F7FFFFF, 0x7F800000, 0x7FC00000]
EDGES["f32"] += [0x33000000, 0x477FEFFF]
EDGES["f64"] = [ieee.bits_of("f64", ieee.value("f32", bits)) for bits in EDGES["f32"]]
EDGES["f64"] += [1, 2**52 - 1, 2**52, 0x3FF0000000000001, 0x7FEFFFFFFFFFFFFF, 0x47EFFFFFF0000000]
EDGES["f64"] += [0x41DFFFFFFFC00000, 0x43E0000000000000, 0x3FF0000010000001, 0x40F0000000000000]
for _type in ("f16", "bf16", "f32", "f64"):
    EDGES[_type] += [bits | ieee.FORMATS[_type].sign for bits in EDGES[_type]]


def drawn(type_, rng):
    """Return the bits of one value: an edge case as often as not."""
    bits = BITS[type_]
    if type_.endswith("x2") and "f" in type_:
        return drawn(type_[:-2], rng) << 16 | drawn(type_[:-2], rng)
    if type_ in ("n", "p"):
        return rng.choice(EDGES[type_]) if type_ == "p" or rng.random() < 0.6 else rng.randrange(48)
    kind = rng.random()
    if type_ in ORDINARY:
        if kind < 0.45 and type_ in EDGES:
            return rng.choice(EDGES[type_])
        return rng.getrandbits(bits) if kind < 0.55 and type_ in EDGES else rng.choice(ORDINARY[type_])
    if kind < 0.5:
        middle = 1 << bits - 1
        near = rng.choice([0, 1, 2, 3, middle - 1, middle, middle + 1, (1 << bits) - 1, (1 << bits) - 2])
        return rng.choice([near, 1 << rng.randrange(bits), 0x7FFF8000 & (1 << bits) - 1])
    return rng.getrandbits(bits) >> (rng.randrange(bits) if kind < 0.75 else 0)


def ordinary():
    """Return the bits of ordinary numbers, by type."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=1000) * 2.0 ** rng.integers(-3, 12, 1000)
    turns = rng.uniform(-math.pi, math.pi, 1000).astype(np.float32).view(np.uint32)
    single = numbers.astype(np.float32).view(np.uint32)
    all_bits = {
        "f16": numbers.astype(np.float16).view(np.uint16),
        "bf16": single >> 16,
        "f32": single,
        "f64": numbers.view(np.uint64),
        "unit": turns,
        "turn": turns,
    }
    return {type_: bits.tolist() for type_, bits in all_bits.items()}


ORDINARY = ordinary()


@cache
def operands_of(form):
    """Return a row of values per case; some have equal or neighbouring operands."""
    rng = random.Random(str(form))
    rows = []
    for case in range(CASES):
        row = [drawn(type_, rng) for type_ in form.operands]
        if case % 8 == 0 and len(row) > 1 and form.operands[0] == form.operands[1]:
            row[1] = row[0]
        if case % 16 == 1 and len(row) > 1 and form.operands[0] == form.operands[1]:
            row[1] = row[0] ^ 1
        rows.append(row)
    return rows


def register(type_):
    return "pred" if type_ == "p" else f"b{max(16, BITS[type_])}"


def kernel_text(forms, index):
    """Return a kernel that runs each form on row `index` of its operands, words of 8 bytes."""
    registers, code, slot, result = [], [], 0, 0
    for n, form in enumerate(forms):
        names = {}
        for i, type_ in enumerate(form.operands):
            name, bits = f"%x{n}_{i}", max(16, BITS[type_])
            place = f"[%in + {8 * CASES * slot}]"
            slot += 1
            registers.append(f".reg .{register(type_)} {name};")
            if type_ == "p":
                code += [f"ld.global.b32 %word, {place};", f"setp.ne.u32 {name}, %word, 0;"]
            else:
                code.append(f"ld.global.b{bits} {name}, {place};")
            names[str(i)] = name
        for letter, type_ in zip("def", form.results, strict=False):
            names[letter] = f"%y{n}_{letter}"
            registers.append(f".reg .{register(type_)} {names[letter]};")
        code.append(re.sub(r"\{(\w)\}", lambda match, names=names: names[match[1]], form.text))
        for letter, type_ in zip("def", form.results, strict=False):
            name, bits = names[letter], max(16, BITS[type_])
            if type_ == "p":
                code.append(f"selp.u32 %word, 1, 0, {name};")
                name, bits = "%word", 32
            code.append(f"st.global.b{bits} [%out + {8 * CASES * result}], {name};")
            result += 1
    lines = "\n    ".join([*registers, *(line.replace("; ", ";\n    ") for line in code)])
    return f""".version 8.8
.target sm_90a
.address_size 64
.visible .entry f(.param .u64 p0, .param .u64 p1)
{{
    .reg .b32 %i;
    .reg .b32 %word;
    .reg .b64 %in;
    .reg .b64 %out;
    .reg .b64 %far;
    mov.u32 %i, {index};
    mul.wide.u32 %far, %i, 8;
    ld.param.u64 %in, [p0];
    ld.param.u64 %out, [p1];
    add.s64 %in, %in, %far;
    add.s64 %out, %out, %far;
    {lines}
    ret;
}}
"""


def function(forms, index):
    text = kernel_text(forms, index)
    return simt.RawModule.from_ptx(PtxText(text, "", {})).get_function("f")


def results(forms, index):
    """Return by form the bits of its results, a row per case."""
    kernel = function(forms, index)
    columns = chain.from_iterable(zip(*operands_of(form), strict=True) for form in forms)
    given = np.array([list(column) for column in columns], np.uint64)
    out = np.zeros((sum(len(form.results) for form in forms), CASES), np.uint64)
    grid, block = (1, CASES) if index == "%tid.x" else (CASES, 1)
    kernel(grid, block, (given, out))
    rows, first = {}, 0
    for form in forms:
        rows[form] = list(zip(*out[first : first + len(form.results)].tolist(), strict=True))
        first += len(form.results)
    return rows


KERNELS = [tuple(FORMS[i : i + PER_KERNEL]) for i in range(0, len(FORMS), PER_KERNEL)]
KERNEL_OF = {form: forms for forms in KERNELS for form in forms}
cached_results = cache(results)


def agrees(form, type_, got, want):
    """Say whether bits are what the reference gives: bits, or a number that they are close to."""
    if want is None:
        return True
    type_ = {"unit": "f32", "turn": "f32"}.get(type_, type_)
    if form.tolerance:
        number = ieee.value(type_, got)
        if math.isnan(want) or math.isinf(want):
            return number == want or (math.isnan(number) and math.isnan(want))
        return abs(number - want) <= form.tolerance * max(1.0, abs(want))
    want &= (1 << BITS[type_]) - 1
    if type_ in ("f32", "f64") and math.isnan(ieee.value(type_, want)):
        return math.isnan(ieee.value(type_, got))
    clamps = ".sat." in f"{form}." or ".relu" in str(form)
    if clamps and type_ in ieee.FORMATS and not ieee.value(type_, want):
        return not ieee.value(type_, got)  # PTX does not say which zero
    if clamps and type_ in ("f16x2", "bf16x2"):
        return all(
            agrees(form, type_[:-2], got >> shift & 0xFFFF, want >> shift & 0xFFFF) for shift in (0, 16)
        )
    return got == want


def wrong(form, row, got):
    """Say whether a form's results on one row are not those of its reference."""
    given = [
        as_type(type_, bits) if type_[0] == "s" else bits
        for type_, bits in zip(form.operands, row, strict=True)
    ]
    want = form.reference(*given)
    want = want if isinstance(want, tuple) else (want,)
    if form.tolerance and len(want) > len(form.results):  # the two numbers of a pair
        type_ = form.results[0][:-2]
        triples = [(type_, got[0] >> 16 * i & 0xFFFF, want[i]) for i in (0, 1)]
    else:
        triples = zip(form.results, got, want, strict=True)
    return not all(
        agrees(form, type_, bits & (1 << BITS[type_]) - 1, expected) for type_, bits, expected in triples
    )


FAMILIES = {family: list(forms) for family, forms in groupby(FORMS, lambda form: form.family)}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("index", ["%tid.x", "%ctaid.x"], ids=["lanes", "uniform"])
def test_family(family, index):
    failures = {}
    for form in FAMILIES[family]:
        got_rows = cached_results(KERNEL_OF[form], index)[form]
        for row, got in zip(operands_of(form), got_rows, strict=True):
            if wrong(form, row, got):
                failures[str(form)] = [*map(hex, row)], [*map(hex, got)]
    assert not failures


def test_each_entry_of_the_table_runs():
    code = [i for forms in KERNELS for i in function(forms, "%tid.x").parsed.code]
    found = {id(find(instruction)) for instruction in code}
    missing = {name for name, entry in OPERATIONS.items() if id(entry) not in found}
    assert not missing
