"""Arithmetic and conversions rounded down, up, towards zero: against exact rational numbers."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import simt


def run(source, *args, threads=32):
    simt.RawModule(code=source).get_function("f")(1, threads, args)
    return args


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(FLOATS, FLOATS, FLOATS), min_size=1, max_size=32))
def test_directed_rounding(rows):
    """Against exact rational arithmetic: rounded down is the largest float32 not above the exact result."""
    source = """extern "C" __global__ void f(const float* in, float* out, int n) {
        int i = threadIdx.x; if (i >= n) return;
        float a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2]; float* o = out + 12 * i;
        o[0] = __fadd_rd(a, b); o[1] = __fadd_ru(a, b); o[2] = __fmul_rd(a, b); o[3] = __fmul_ru(a, b);
        o[4] = __fmaf_rd(a, b, c); o[5] = __fmaf_ru(a, b, c); o[6] = __fmaf_rz(a, b, c);
        o[7] = __fsub_rz(a, b);
        o[8] = __fdiv_rd(a, b); o[9] = __fdiv_ru(a, b); o[10] = __frcp_rz(b); o[11] = __fsqrt_rd(fabsf(c));
    }"""
    values = np.array(rows, np.float32)
    _, out, _ = run(source, values, np.zeros((len(rows), 12), np.float32), np.int32(len(rows)))
    for row, got in zip(values.tolist(), out, strict=True):
        _check_directed(row, got)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(DOUBLES, DOUBLES, DOUBLES), min_size=1, max_size=32))
def test_directed_rounding_in_double_precision(rows):
    source = """extern "C" __global__ void f(const double* in, double* out, int n) {
        int i = threadIdx.x; if (i >= n) return;
        double a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2]; double* o = out + 12 * i;
        o[0] = __dadd_rd(a, b); o[1] = __dadd_ru(a, b); o[2] = __dmul_rd(a, b); o[3] = __dmul_ru(a, b);
        o[4] = __fma_rd(a, b, c); o[5] = __fma_ru(a, b, c); o[6] = __fma_rz(a, b, c); o[7] = __dsub_rz(a, b);
        o[8] = __ddiv_rd(a, b); o[9] = __ddiv_ru(a, b); o[10] = __drcp_rz(b); o[11] = __dsqrt_rd(fabs(c));
    }"""
    values = np.array(rows)
    _, out, _ = run(source, values, np.zeros((len(rows), 12)), np.int32(len(rows)))
    for row, got in zip(values.tolist(), out, strict=True):
        _check_directed(row, got)


def _check_directed(row, got):
    a, b, c = (Fraction(number) for number in row)
    fused = a * b + c
    pairs = [(a + b, got[0], got[1]), (a * b, got[2], got[3]), (fused, got[4], got[5])]
    if b:
        pairs.append((a / b, got[8], got[9]))
        assert _towards_zero(got[10], 1 / b)
    for exact, low, high in pairs:
        assert _below(low, exact) and _below(-high, -exact)
    assert _towards_zero(got[6], fused) and _towards_zero(got[7], a - b)
    root, above = got[11], np.nextafter(got[11], got.dtype.type(np.inf))
    assert Fraction(float(root)) ** 2 <= abs(c) < Fraction(float(above)) ** 2


def _below(got, exact):
    """Say whether `got` is the largest float of its type that is not above `exact`."""
    with np.errstate(over="ignore", under="ignore"):
        above = np.nextafter(got, got.dtype.type(np.inf))
    at_most = got == -np.inf or (np.isfinite(got) and Fraction(float(got)) <= exact)
    return bool(at_most and (above == np.inf or Fraction(float(above)) > exact))


def _towards_zero(got, exact):
    sign = 1 if exact >= 0 else -1
    return _below(sign * got, sign * exact)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(DOUBLES, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=32))
def test_conversions_in_every_direction(rows):
    names = ("__double2float", "__ll2float", "__ull2float", "__ll2double", "__ull2double", "__int2float")
    lines = "".join(
        f"{'op'[name.endswith('double')]}[{4 * i + m} * 32 + t] = {name}_{mode}({'xk'[i > 0]}[t]);"
        for i, name in enumerate(names)
        for m, mode in enumerate(("rd", "ru", "rz", "rn"))
    )
    source = f"""extern "C" __global__ void f(const double* x, const long long* k, float* o, double* p,
                                  int n) {{
        int t = threadIdx.x; if (t < n) {{ {lines} }}
    }}"""
    n = len(rows)
    x, k = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], np.int64)
    o, p = np.zeros((24, 32), np.float32), np.zeros((24, 32))
    run(source, x, k, o, p, np.int32(n))
    given_values = [x, k, k.view(np.uint64), k, k.view(np.uint64), k.astype(np.int32)]
    for i, (name, numbers) in enumerate(zip(names, given_values, strict=True)):
        results = (o if name.endswith("float") else p)[4 * i : 4 * i + 4, :n]
        for number, (down, up, zero, nearest) in zip(numbers.tolist(), results.T, strict=True):
            exact = Fraction(number)
            assert _below(down, exact) and _below(-up, -exact) and _towards_zero(zero, exact)
            with np.errstate(over="ignore"):
                assert nearest == (
                    np.float32(number) if name == "__double2float" else results.dtype.type(number)
                )
