"""`mma.sync` in every dense shape and type, against NumPy in float64.

Fragments are laid out as the PTX ISA has them (9.7.14.5, "Matrix fragments for mma..."): one statement holds
for all shapes, with as many neighbours along K in a register as it has room for.
"""

import itertools

import numpy as np
import pytest

import simt

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "e4m3": 8, "e5m2": 8}
BITS |= {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
LANE = np.arange(32)


def shapes():
    """Return all (m, n, k, types of D A B C, the rest of the opcode)."""
    half = [("f16",) * 4, ("f32", "f16", "f16", "f32")]
    found = [(16, 8, k, types, "") for k in (8, 16) for types in [*half, ("f32", "bf16", "bf16", "f32")]]
    found += [(16, 8, k, ("f32", "tf32", "tf32", "f32"), "") for k in (4, 8)]
    found += [(8, 8, 4, ("f64",) * 4, ""), *((16, 8, k, ("f64",) * 4, "") for k in (4, 8, 16))]
    for (m, k), (a, b) in itertools.product(
        [(16, 16), (16, 32)], itertools.product(("e4m3", "e5m2"), repeat=2)
    ):
        found += [(m, 8, k, (d, a, b, d), "") for d in ("f16", "f32")]
    for kinds, ks in (
        (("s8", "u8"), [(8, 16), (16, 16), (16, 32)]),
        (("s4", "u4"), [(8, 32), (16, 32), (16, 64)]),
    ):
        for (a, b), (m, k) in itertools.product(itertools.product(kinds, repeat=2), ks):
            found += [(m, 8, k, ("s32", a, b, "s32"), end) for end in ("", ".satfinite")]
    for (m, k), op in itertools.product([(8, 128), (16, 128), (16, 256)], ("and", "xor")):
        found.append((m, 8, k, ("s32", "b1", "b1", "s32"), f".{op}.popc"))
    return found


def opcode(m, n, k, types, end):
    d, a, b, c = types
    satfinite = ".satfinite" if end == ".satfinite" else ""
    return f"mma.sync.aligned.m{m}n{n}k{k}.row.col{satfinite}.{d}.{a}.{b}.{c}{end.removeprefix('.satfinite')}"


def source(m, n, k, types, end):
    """Return a kernel that loads fragments register by register, multiplies, and stores D likewise."""
    is_double = types[0] == "f64"
    word, letter = ("double", "d") if is_double else ("unsigned", "r")
    sizes = [m * n * {"f16": 16, "f64": 64}.get(types[0], 32), m * k * BITS[types[1]], k * n * BITS[types[2]]]
    d, a, b = (size // (64 if is_double else 32) // 32 for size in sizes)
    numbers = iter(range(2 * d + a + b))
    names = ["{" + ", ".join(f"%{next(numbers)}" for _ in range(count)) + "}" for count in (d, a, b, d)]
    out = ", ".join(f'"={letter}"(d[{i}])' for i in range(d))
    given = ", ".join(
        f'"{letter}"({name}[{i} * 32 + t])'
        for name, count in zip("abc", (a, b, d), strict=True)
        for i in range(count)
    )
    return f"""extern "C" __global__ void f(const {word}* a, const {word}* b, const {word}* c, {word}* out) {{
        int t = threadIdx.x;
        {word} d[{d}];
        asm volatile("{opcode(m, n, k, types, end)} {", ".join(names)};" : {out} : {given});
        for (int i = 0; i < {d}; i++) out[i * 32 + t] = d[i];
    }}"""


def packed(numbers: np.ndarray, type_: str) -> np.ndarray:
    """Return numbers (rows, k) as bits (rows, words), neighbours along K from the lowest bit on."""
    if type_ == "f64":
        return numbers.astype(np.float64)
    if type_ in ("tf32", "bf16"):
        bits = numbers.astype(np.float32).view(np.uint32)
        return bits | 0x1FFF if type_ == "tf32" else (bits >> 16).astype(np.uint16).view(np.uint32)
    if type_ == "f16":
        return numbers.astype(np.float16).view(np.uint32)
    if type_ in ("e4m3", "e5m2"):  # small integers: of an f16, e5m2 is the upper half; e4m3 has another bias
        bits = numbers.astype(np.float16).view(np.uint16).astype(int)
        size = (bits & 0x7FFF) >> (8 if type_ == "e5m2" else 7)
        size = np.where((type_ == "e4m3") & (numbers != 0), size - (8 << 3), size)
        return (size | bits >> 8 & 0x80).astype(np.uint8).view(np.uint32)
    bits = BITS[type_]
    fields = numbers.astype(np.int64) & (1 << bits) - 1
    words = fields.reshape(len(fields), -1, 32 // bits) << np.arange(0, 32, bits)
    return words.sum(-1).astype(np.uint32)


def fragment(numbers: np.ndarray, type_: str) -> np.ndarray:
    """Return A (m, k), or B as (n, k), as words [register][lane]: rows g and g + 8, then further along K."""
    words = np.ascontiguousarray(packed(numbers, type_))
    rows = 2 if len(words) == 16 else 1
    return np.stack(
        [
            words[LANE // 4 + 8 * row, LANE % 4 + 4 * block]
            for block, row in itertools.product(range(words.shape[1] // 4), range(rows))
        ]
    )


def accumulator(numbers: np.ndarray, type_: str) -> np.ndarray:
    """Return C or D (m, 8) as words [register][lane]: columns 2 t and 2 t + 1 of rows g and g + 8."""
    dtype = {"f16": np.float16, "f32": np.float32, "s32": np.int32, "f64": np.float64}[type_]
    pairs = [
        np.stack([numbers[LANE // 4 + 8 * row, 2 * (LANE % 4) + i] for i in range(2)])
        for row in range(len(numbers) // 8)
    ]
    if type_ == "f16":
        return np.stack([np.ascontiguousarray(pair.T).astype(dtype).view(np.uint32)[:, 0] for pair in pairs])
    return np.concatenate(pairs).astype(dtype)


@pytest.mark.parametrize("shape", shapes(), ids=lambda shape: opcode(*shape)[17:])
def test_every_shape_and_type(shape):
    m, n, k, types, end = shape
    rng = np.random.default_rng(k)
    low = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}
    a, b = (
        rng.integers(*low.get(type_, (-4, 5)), size)
        for type_, size in zip(types[1:3], ((m, k), (n, k)), strict=True)
    )
    c = rng.integers(-9, 10, (m, n))
    if end == ".satfinite":
        c = np.where(c < 0, -(2**31), 2**31 - 1)
    product = a.astype(float) @ b.astype(float).T
    if end == ".xor.popc":
        product = (a[:, None] != b).sum(-1)
    exact = product + c
    if types[0] == "s32":
        exact = exact.clip(-(2**31), 2**31 - 1)
    given = fragment(a, types[1]), fragment(b, types[2]), accumulator(c, types[3])
    out = np.full_like(given[2], 0x7FFF if types[0] != "f64" else np.nan)
    simt.RawModule(code=source(*shape)).get_function("f")(1, 32, (*given, out))
    np.testing.assert_array_equal(out, accumulator(exact, types[0]))


def test_doubles_are_added_one_by_one():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(16, 16)), rng.normal(size=(8, 16)), rng.normal(size=(16, 8))
    out = np.full((4, 32), np.nan)
    args = fragment(a, "f64"), fragment(b, "f64"), accumulator(c, "f64"), out
    simt.RawModule(code=source(16, 8, 16, ("f64",) * 4, "")).get_function("f")(1, 32, args)
    bound = 17 * 2.0**-53 * (abs(a) @ abs(b).T + abs(c))
    assert (abs(out - accumulator(a @ b.T + c, "f64")) <= accumulator(bound, "f64")).all()


@pytest.mark.parametrize("space", ["shared", "shared::cta", ""])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_matrices_are_moved_between_registers_and_shared_memory(count, trans, space):
    """`ldmatrix` reads row i of matrix j where lane 8 j + i says; `stmatrix` writes it back elsewhere."""
    registers = ", ".join(f"%{i}" for i in range(count))
    results = ", ".join(f'"=r"(r[{i}])' for i in range(count))
    given = ", ".join(f'"r"(r[{i}])' for i in range(count))
    form = f"sync.aligned.m8n8.x{count}{trans}{space and '.'}{space}.b16"
    letter, place = ("r", "(unsigned)__cvta_generic_to_shared({})") if space else ("l", "{}")
    code = f"""
    extern "C" __global__ void f(const unsigned* in, const int* rows, unsigned* loaded, unsigned* out) {{
        __shared__ __align__(16) unsigned from[32 * 4], to[32 * 4];
        int t = threadIdx.x;
        for (int i = t; i < 128; i += 32) {{ from[i] = in[i]; to[i] = 0; }}
        __syncwarp();
        unsigned r[{count}];
        unsigned *p = from + 4 * rows[t], *q = to + 4 * rows[t];
        asm volatile("ldmatrix.{form} {{{registers}}}, [%{count}];"
            : {results} : "{letter}"({place.format("p")}));
        asm volatile("stmatrix.{form} [%{count}], {{{registers}}};"
            :: {given}, "{letter}"({place.format("q")}));
        __syncwarp();
        for (int i = 0; i < {count}; i++) loaded[32 * i + t] = r[i];
        for (int i = t; i < 128; i += 32) out[i] = to[i];
    }}"""
    rng = np.random.default_rng(count)
    numbers, rows = rng.integers(0, 1 << 16, (32, 8)).astype(np.uint16), rng.permutation(32).astype(np.int32)
    loaded, out = np.zeros((count, 32), np.uint32), np.zeros((32, 8), np.uint16)
    simt.RawModule(code=code).get_function("f")(1, 32, (numbers, rows, loaded, out))
    matrices = numbers[rows[: 8 * count]].reshape(count, 8, 8)
    if trans:
        matrices = matrices.transpose(0, 2, 1)
    held = matrices.reshape(count, 32, 2).astype(np.uint32)
    np.testing.assert_array_equal(loaded, held[..., 0] | held[..., 1] << 16)
    written = np.zeros_like(numbers)
    written[rows[: 8 * count]] = numbers[rows[: 8 * count]]
    np.testing.assert_array_equal(out, written)
