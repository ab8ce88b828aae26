"""Integer intrinsics: dot products, bytes and half words of a register, fields of bits, against Python."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import simt


def run(source, *args, threads=32):
    simt.RawModule(code=source).get_function("f")(1, threads, args)
    return args


WORDS = st.integers(0, 2**32 - 1)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=32))
def test_integer_intrinsics(rows):
    source = """extern "C" __global__ void f(const unsigned* in, unsigned* out, int n) {
        int i = threadIdx.x; if (i >= n) return;
        unsigned a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2]; unsigned* o = out + 20 * i;
        o[0] = __dp4a((int)a, (int)b, (int)c); o[1] = __dp4a(a, b, c);
        o[2] = __dp2a_lo((int)a, (int)b, (int)c);
        o[3] = __dp2a_hi(a, b, c); o[4] = __vadd4(a, b); o[5] = __vabsdiffu4(a, b); o[6] = __vmaxs2(a, b);
        o[7] = __vsadu4(a, b); o[8] = __mul24(a, b); o[9] = __umul24(a, b); o[10] = __byte_perm(a, b, c);
        o[11] = __funnelshift_rc(a, b, c & 63); o[12] = __uhadd(a, b); o[13] = __usad(a, b, c);
        o[14] = __brev(a);
        o[15] = __vcmpgts4(a, b); o[16] = __umulhi(a, b); o[17] = __ffs(a); o[18] = __vaddss2(a, b);
        asm("vavrg4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(o[19]) : "r"(a), "r"(b), "r"(c));
    }"""
    values = np.array(rows, np.uint32)
    _, out, _ = run(source, values, np.zeros((len(rows), 20), np.uint32), np.int32(len(rows)))
    for (a, b, c), got in zip(rows, out.tolist(), strict=True):
        assert got == [number % 2**32 for number in _integer_intrinsics(a, b, c)]


def _parts(word, bits, signed=False):
    """Bytes or half words of a word, the lowest first."""
    values = [word >> i & (1 << bits) - 1 for i in range(0, 32, bits)]
    return [v - (1 << bits) * (signed and v >> bits - 1) for v in values]


def _packed(values, bits):
    return sum((v % (1 << bits)) << i * bits for i, v in enumerate(values))


def _integer_intrinsics(a, b, c):
    bytes_a, bytes_b, signed_a, signed_b = _parts(a, 8), _parts(b, 8), _parts(a, 8, True), _parts(b, 8, True)
    halves, signed_halves = _parts(a, 16), (_parts(a, 16, True), _parts(b, 16, True))
    low_24 = [((word & 0xFFFFFF) ^ 0x800000) - 0x800000 for word in (a, b)]
    both, pick = bytes_a + bytes_b, [c >> 4 * i & 7 for i in range(4)]
    shift = min(c & 63, 32)
    return [
        c + sum(x * y for x, y in zip(signed_a, signed_b, strict=True)),
        c + sum(x * y for x, y in zip(bytes_a, bytes_b, strict=True)),
        c + signed_halves[0][0] * signed_b[0] + signed_halves[0][1] * signed_b[1],
        c + halves[0] * bytes_b[2] + halves[1] * bytes_b[3],
        _packed([x + y for x, y in zip(bytes_a, bytes_b, strict=True)], 8),
        _packed([abs(x - y) for x, y in zip(bytes_a, bytes_b, strict=True)], 8),
        _packed([max(x, y) for x, y in zip(*signed_halves, strict=True)], 16),
        sum(abs(x - y) for x, y in zip(bytes_a, bytes_b, strict=True)),
        low_24[0] * low_24[1],
        (a & 0xFFFFFF) * (b & 0xFFFFFF),
        _packed([both[i] for i in pick], 8),
        (b << 32 | a) >> shift,
        (a + b) >> 1,
        abs(a - b) + c,
        int(f"{a:032b}"[::-1], 2),
        _packed([-(x > y) for x, y in zip(signed_a, signed_b, strict=True)], 8),
        a * b >> 32,
        (a & -a).bit_length(),
        _packed([min(max(x + y, -(2**15)), 2**15 - 1) for x, y in zip(*signed_halves, strict=True)], 16),
        _packed([(x + y + 1) >> 1 for x, y in zip(bytes_a, bytes_b, strict=True)], 8),
    ]


def test_fields_of_bits():
    source = """extern "C" __global__ void f(const unsigned* in, unsigned* out) {
        int i = threadIdx.x; unsigned a = in[4 * i], b = in[4 * i + 1], c = in[4 * i + 2];
        int d = in[4 * i + 3];
        unsigned* o = out + 14 * i;
        asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(o[0]) : "r"(b), "r"(c));
        asm("bmsk.wrap.b32 %0, %1, %2;" : "=r"(o[1]) : "r"(b), "r"(c));
        asm("szext.clamp.s32 %0, %1, %2;" : "=r"(o[2]) : "r"(a), "r"(b));
        asm("szext.wrap.u32 %0, %1, %2;" : "=r"(o[3]) : "r"(a), "r"(b));
        o[4] = __fns(a, b & 31, d);
        asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(o[5]) : "r"(a), "r"(c), "r"(b));
        asm("prmt.b32.b4e %0, %1, %2, %3;" : "=r"(o[6]) : "r"(a), "r"(c), "r"(b));
        asm("prmt.b32.rc8 %0, %1, %2, %3;" : "=r"(o[7]) : "r"(a), "r"(c), "r"(b));
        asm("prmt.b32.ecl %0, %1, %2, %3;" : "=r"(o[8]) : "r"(a), "r"(c), "r"(b));
        asm("prmt.b32.ecr %0, %1, %2, %3;" : "=r"(o[9]) : "r"(a), "r"(c), "r"(b));
        asm("prmt.b32.rc16 %0, %1, %2, %3;" : "=r"(o[10]) : "r"(a), "r"(c), "r"(b));
        asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(o[11]) : "r"(a), "r"(b), "r"(c));
        asm("{ .reg .pred p; testp.subnormal.f32 p, %1; selp.u32 %0, 1, 0, p; }"
            : "=r"(o[12]) : "f"(__uint_as_float(b)));
        asm("{ .reg .pred p; testp.normal.f32 p, %1; selp.u32 %0, 1, 0, p; }"
            : "=r"(o[13]) : "f"(__uint_as_float(a)));
    }"""
    rng = np.random.default_rng(10)
    a, b, c = (rng.integers(0, limit, 64).astype(np.uint32) for limit in (2**32, 40, 40))
    d = rng.integers(-5, 6, 64).astype(np.int32)
    _, out = run(source, np.stack([a, b, c, d.view(np.uint32)], 1), np.zeros((64, 14), np.uint32), threads=64)
    ones = 2**32 - 1
    for w, start, length, offset, got in zip(
        a.tolist(), b.tolist(), c.tolist(), d.tolist(), out.tolist(), strict=True
    ):
        masked = ones >> 32 - min(length, 32) << min(start, 32) & ones if length else 0
        wrapped = ((1 << length % 32) - 1) << start % 32 & ones
        field = w & (1 << min(start, 32)) - 1
        negative = 0 < start < 33 and field >> min(start, 32) - 1
        extended = (field - (1 << min(start, 32)) * bool(negative)) % 2**32
        pairs = (length << 32 | w) << 64 | (length << 32 | w)
        by, k = _parts(w, 8), start % 4
        backwards = [(w | length << 32) >> 8 * ((k - i) % 8) & 255 for i in range(4)]
        assert got == [
            masked,
            wrapped,
            extended,
            w & (1 << start % 32) - 1,
            _nth_set(w, start % 32, offset) % 2**32,
            pairs >> 8 * k & ones,
            _packed(backwards, 8),
            by[k] * 0x01010101,
            _packed([by[max(i, k)] for i in range(4)], 8),
            _packed([by[min(i, k)] for i in range(4)], 8),
            (w >> 16 * (k & 1) & 0xFFFF) * 0x10001,
            w & start | w & length | start & length,
            int(0 < start < 2**23),
            int(0 < w >> 23 & 255 < 255),
        ]


def _nth_set(mask, base, offset):
    if offset == 0:
        return base if mask >> base & 1 else -1
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [place for place in places if mask >> place & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else -1
