"""Half precision bit for bit: float16 against NumPy, fused and bfloat16 against exact rational numbers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt

N = 256
SPECIAL = {
    "f16": [0, 0x8000, 0x7C00, 0xFC00, 0x7E00, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0xFBFF, 0x3C00, 0xBC00],
    "bf16": [0, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 1, 0x8001, 0x7F, 0x80, 0x7F7F, 0xFF7F, 0x3F80, 0xBF80],
}
FORMATS = {"f16": (11, -24, 0x7C00), "bf16": (8, -133, 0x7F80)}  # digits, lowest exponent, infinity


def run(source, *args, threads=N, name="f"):
    simt.RawModule(code=source).get_function(name)(1, threads, args)
    return args


def numbers(format_, seed, count=N):
    """Bits: any at all, ordinary numbers, and special ones."""
    rng = np.random.default_rng(seed)
    ordinary = (rng.normal(size=count) * np.exp(rng.normal(size=count))).astype(np.float32)
    bits = ordinary.astype(np.float16).view(np.uint16)
    if format_ == "bf16":
        bits = (ordinary.view(np.uint32) >> 16).astype(np.uint16)
    anything = rng.integers(0, 1 << 16, count).astype(np.uint16)
    special = rng.choice(np.array(SPECIAL[format_], np.uint16), count)
    return np.choose(rng.choice(3, count, p=[0.4, 0.4, 0.2]), [anything, bits, special])


def value(format_, bits):
    """The number that the bits stand for, or None where they stand for none."""
    digits, lowest, infinity = FORMATS[format_]
    size = int(bits) & 0x7FFF
    if size >= infinity:
        return None
    exponent, mantissa = divmod(size, 1 << digits - 1)
    whole = mantissa + (1 << digits - 1 if exponent else 0)
    return (-1 if bits >> 15 else 1) * Fraction(whole) * Fraction(2) ** (lowest + max(exponent, 1) - 1)


def rounded(format_, exact, mode="rn"):
    """Bits of the exact number (not 0), rounded once."""
    digits, lowest, infinity = FORMATS[format_]
    size, sign = abs(exact), 0x8000 if exact < 0 else 0
    exponent = lowest
    while size >= Fraction(2) ** (exponent + digits):
        exponent += 1
    steps = size / Fraction(2) ** exponent
    below = steps.numerator // steps.denominator
    rest = steps - below
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1),
        "rz": False,
        "rm": rest > 0 and sign != 0,
        "rp": rest > 0 and sign == 0,
    }[mode]
    bits = (exponent - lowest) * (1 << digits - 1) + below + up
    stays = {"rz": True, "rm": not sign, "rp": bool(sign), "rn": False}[mode]
    return sign | min(bits, infinity - stays)


@pytest.mark.parametrize("width", [1, 2])
def test_float16_arithmetic_is_numpys(width):
    type_, suffix = ("half", "") if width == 1 else ("half2", "2")
    source = f"""#include <cuda_fp16.h>
    extern "C" __global__ void f(const {type_}* x, const {type_}* y, {type_}* out, int n) {{
        int i = threadIdx.x; {type_} a = x[i], b = y[i];
        out[i] = __hadd{suffix}(a, b); out[n + i] = __hsub{suffix}(a, b);
        out[2 * n + i] = __hmul{suffix}(a, b);
        out[3 * n + i] = __hmax{suffix}(a, b); out[4 * n + i] = __hmin{suffix}(a, b);
    }}"""
    x, y = (numbers("f16", seed, width * N).view(np.float16) for seed in (1, 2))
    *_, out, _ = run(source, x, y, np.zeros((5, width * N), np.float16), np.int32(N))
    with np.errstate(all="ignore"):
        expected = [x + y, x - y, x * y, np.fmax(x, y), np.fmin(x, y)]
    for got, want in zip(out, expected, strict=True):
        np.testing.assert_array_equal(got, want)
        same_sign = (np.signbit(got) == np.signbit(want)) | np.isnan(want) | (x == 0) & (y == 0)
        assert same_sign.all()
    assert (out.view(np.uint16)[np.isnan(out)] == 0x7FFF).all()


@pytest.mark.parametrize("format_", ["f16", "bf16"])
@pytest.mark.parametrize("width", [1, 2])
def test_fused_multiply_add_rounds_once(format_, width):
    type_ = {"f16": "half", "bf16": "__nv_bfloat16"}[format_] + "2" * (width == 2)
    source = f"""#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void f(const {type_.replace("162", "162")}* x, {type_}* out, int n) {{
        int i = threadIdx.x;
        out[i] = __hfma{"2" * (width == 2)}(x[i], x[n + i], x[2 * n + i]);
    }}"""
    x = np.stack([numbers(format_, seed, width * N) for seed in (3, 4, 5)])
    # halfway cases that a tiny addend decides: 1 + 2^-d times itself, and the smallest numbers
    one = SPECIAL[format_][11]
    x[:, :4] = [[one + 1] * 4, [one + 1] * 4, [1, 0x8001, 2, 0x8002]]
    _, out, _ = run(source, x, np.zeros(width * N, np.uint16), np.int32(N))
    for a, b, c, got in zip(*x.tolist(), out.tolist(), strict=True):
        values = [value(format_, bits) for bits in (a, b, c)]
        if None in values:
            continue
        exact = values[0] * values[1] + values[2]
        if exact == 0:
            assert got & 0x7FFF == 0
        else:
            assert got == rounded(format_, exact), (hex(a), hex(b), hex(c))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 65535), st.integers(0, 65535)), min_size=1, max_size=64))
def test_bfloat16_sums_and_products(pairs):
    source = """#include <cuda_bf16.h>
    extern "C" __global__ void f(const __nv_bfloat16* x, __nv_bfloat16* out, int n) {
        int i = threadIdx.x; if (i >= n) return;
        out[2 * i] = x[2 * i] + x[2 * i + 1]; out[2 * i + 1] = x[2 * i] * x[2 * i + 1];
    }"""
    x = np.array(pairs, np.uint16)
    _, out, _ = run(source, x, np.zeros_like(x), np.int32(len(pairs)), threads=64)
    for (a, b), got in zip(pairs, out.tolist(), strict=True):
        a, b = value("bf16", a), value("bf16", b)
        if a is None or b is None:
            continue
        for exact, bits in ((a + b, got[0]), (a * b, got[1])):
            assert bits == rounded("bf16", exact) if exact else bits & 0x7FFF == 0


def test_comparisons_and_choices():
    source = """#include <cuda_fp16.h>
    extern "C" __global__ void f(const half2* x, const half2* y, unsigned* out) {
        int i = threadIdx.x, n = blockDim.x; half2 a = x[i], b = y[i];
        out[i] = (a.x < b.x) | (a.x >= b.x) << 1 | (a.x == b.x) << 2 | (a.x != b.x) << 3 | __hisnan(a.x) << 4
            | __hltu(a.x, b.x) << 5;
        half2 holds = __hle2(a, b); out[n + i] = *(unsigned*)&holds; out[2 * n + i] = __hgt2_mask(a, b);
        out[3 * n + i] = __hbeq2(a, b);
    }"""
    x, y = (numbers("f16", seed, 2 * N).view(np.float16).reshape(N, 2) for seed in (6, 7))
    y[::7] = x[::7]
    *_, out = run(source, x, y, np.zeros((4, N), np.uint32))
    a, b = x[:, 0], y[:, 0]
    unordered = np.isnan(a) | np.isnan(b)
    bits = [a < b, a >= b, a == b, (a != b), np.isnan(a), (a < b) | unordered]
    np.testing.assert_array_equal(out[0], sum(bit.astype(int) << i for i, bit in enumerate(bits)))
    np.testing.assert_array_equal(out[1].view(np.float16).reshape(N, 2), (x <= y).astype(np.float16))
    np.testing.assert_array_equal(out[2].view(np.uint16).reshape(N, 2), np.where(x > y, 0xFFFF, 0))
    np.testing.assert_array_equal(out[3], (x == y).all(1))


MODES = ("rn", "rz", "rm", "rp")
SUFFIX = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}


@pytest.mark.parametrize("format_", ["f16", "bf16"])
def test_conversions_round_once_in_every_direction(format_):
    type_, name = {"f16": ("half", "half"), "bf16": ("__nv_bfloat16", "bfloat16")}[format_]
    lines = "".join(
        f"out[{4 * i + m} * n + t] = __{source}2{name}_{SUFFIX[mode]}(({ctype}){array}[t]);"
        for i, (source, ctype, array) in enumerate(
            [("float", "float", "x"), ("int", "int", "k"), ("ll", "long long", "k")]
        )
        for m, mode in enumerate(MODES)
    )
    source = f"""#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void f(const float* x, const double* d, const long long* k, {type_}* out, int n) {{
        int t = threadIdx.x; {lines} out[12 * n + t] = __double2{name}(d[t]);
    }}"""
    rng = np.random.default_rng(8)
    near = np.array([value(format_, b) or 1 for b in numbers(format_, 9).tolist()], dtype=object)
    x = np.array([float(v) for v in near], np.float32)
    x = (x * (1 + rng.choice([0, 2.0**-12, 2.0**-9, -(2.0**-20), 2.0**-11], N))).astype(np.float32)
    # a double just off a halfway case: rounded to float first it would be one
    d = np.array([float(v) for v in near]) * (1 + 2.0**-9 + 2.0**-12) * (1 + rng.choice([0, 2.0**-40], N))
    k = rng.integers(-(2**62), 2**62, N) >> rng.integers(0, 62, N)
    bits = np.zeros((13, N), np.uint16)
    run(source, x, d, k, bits, np.int32(N))
    narrow = k.astype(np.int32)
    for mode, row in zip(MODES, range(4), strict=True):
        for first, given_values in ((0, x), (4, narrow), (8, k)):
            for number, got in zip(given_values.tolist(), bits[first + row].tolist(), strict=True):
                exact = Fraction(number)
                assert got == rounded(format_, exact, mode) if exact else got & 0x7FFF == 0, (number, mode)
    for number, got in zip(d.tolist(), bits[12].tolist(), strict=True):
        assert got == rounded(format_, Fraction(number)) if number else got & 0x7FFF == 0


def test_from_half_to_other_types():
    source = """#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void f(const half* x, const __nv_bfloat16* y, float* a, float* b, int* c, half* d) {
        int i = threadIdx.x, n = blockDim.x;
        a[i] = __half2float(x[i]); b[i] = __bfloat162float(y[i]);
        c[i] = __half2int_rz(x[i]); c[n + i] = __half2int_rn(x[i]); c[2 * n + i] = __half2uint_ru(x[i]);
        d[i] = hrint(x[i]); d[n + i] = hfloor(x[i]); d[2 * n + i] = hceil(x[i]); d[3 * n + i] = htrunc(x[i]);
        d[4 * n + i] = -x[i]; d[5 * n + i] = __habs(x[i]);
    }"""
    x, y = numbers("f16", 10).view(np.float16), numbers("bf16", 11)
    x[np.isnan(x) | np.isinf(x)] = 2.5
    a, b, c, d = np.zeros(N, "f4"), np.zeros(N, "f4"), np.zeros((3, N), "i4"), np.zeros((6, N), np.float16)
    run(source, x, y, a, b, c, d)
    np.testing.assert_array_equal(a, x.astype(np.float32))
    np.testing.assert_array_equal(b, (y.astype(np.uint32) << 16).view(np.float32))
    np.testing.assert_array_equal(c[0], np.trunc(x).astype(np.int32))
    np.testing.assert_array_equal(c[1], np.rint(x).astype(np.int32))
    np.testing.assert_array_equal(c[2], np.ceil(np.maximum(x, 0)).astype(np.int32))
    np.testing.assert_array_equal(d, [np.rint(x), np.floor(x), np.ceil(x), np.trunc(x), -x, np.abs(x)])


def test_functions_of_half_precision():
    source = """#include <cuda_fp16.h>
    extern "C" __global__ void f(const half* x, half* out) {
        int i = threadIdx.x, n = blockDim.x; half a = x[i];
        out[i] = hexp(a); out[n + i] = hsin(a); out[2 * n + i] = hlog(__habs(a));
        out[3 * n + i] = hsqrt(__habs(a));
        out[4 * n + i] = hrsqrt(__habs(a)); out[5 * n + i] = hrcp(a); out[6 * n + i] = a / x[(i + 1) % n];
        out[7 * n + i] = htanh_approx(a);
    }"""
    x = np.linspace(-4, 4, N).astype(np.float16)
    _, out = run(source, x, np.zeros((8, N), np.float16))
    w = x.astype(np.float64)
    size = np.abs(w)
    expected = [
        np.exp(w),
        np.sin(w),
        np.log(size),
        np.sqrt(size),
        1 / np.sqrt(size),
        1 / w,
        w / np.roll(w, -1),
    ]
    np.testing.assert_allclose(out[:7], expected, rtol=2.0**-10, atol=2.0**-12)
    np.testing.assert_allclose(out[7], np.tanh(w), rtol=2.0**-10, atol=2.0**-12)


def test_atomic_sums():
    source = """#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void f(half* a, half2* b, __nv_bfloat16* c, __nv_bfloat162* d) {
        __shared__ half mine;
        if (threadIdx.x == 0) mine = 0;
        __syncthreads();
        atomicAdd(&mine, __float2half(0.5f)); atomicAdd(a, __float2half(1.f));
        atomicAdd(b, __floats2half2_rn(1.f, -2.f)); atomicAdd(c, __float2bfloat16(1.f));
        atomicAdd(d, __floats2bfloat162_rn(0.5f, 2.f));
        __syncthreads();
        if (threadIdx.x == 0) a[1] = mine;
    }"""
    a, b = np.zeros(2, np.float16), np.zeros(2, np.float16)
    c, d = np.zeros(1, np.uint16), np.zeros(2, np.uint16)
    run(source, a, b, c, d, threads=100)
    assert a.tolist() == [100, 50] and b.tolist() == [100, -200]
    assert float(value("bf16", c[0])) == 100
    assert [float(value("bf16", bits)) for bits in d.tolist()] == [50, 200]


@pytest.mark.parametrize(
    ("instruction", "format_", "least", "most", "error"),
    # PTX ISA, ex2: the largest relative errors. The exponents are those of ordinary numbers of each format.
    [("ex2.approx.f16", "f16", -14, 15, 2**-9.9), ("ex2.approx.ftz.bf16", "bf16", -126, 127, 2**-7)],
)
def test_small_powers_of_two_have_their_relative_error(instruction, format_, least, most, error):
    exponents = list(range(least, most + 1))
    x = np.array([rounded(format_, Fraction(n)) if n else 0 for n in exponents], np.uint16)
    source = f"""extern "C" __global__ void f(const unsigned short* x, unsigned short* y) {{
        int i = threadIdx.x;
        asm("{instruction} %0, %1;" : "=h"(y[i]) : "h"(x[i]));
    }}"""
    _, y = run(source, x, np.zeros_like(x), threads=x.size)
    for n, bits in zip(exponents, y, strict=True):
        assert value(format_, bits) == pytest.approx(2.0**n, rel=error, abs=0)
