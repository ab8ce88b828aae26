"""What the clean kernels must leave in their outputs: one function per file, from its arguments by name.

A short one is said in the file itself, as `// expect: out = a + b`.

Each returns {output: expected}, where expected is an array, to be met exactly, or a pair (array, bound): the
largest error allowed, a number or an array (gallery/bounds.py). Those of workloads.py, kernels of the kinds
that other people write, belong here, too.
"""

import math
from itertools import pairwise

import numpy as np

from gallery.bounds import EPS, EPS16, EPS64, blocks, close, product, summed, wide
from gallery.workloads import *  # noqa: F403


def reduce_interleaved(values, **_):
    return {"sums": summed(blocks(values, 128), 1)}


reduce_sequential = reduce_interleaved


def reduce_atomic(values, **_):
    return {"sum": values.sum(keepdims=True)}


reduce_last_block = reduce_atomic


def block_votes(values, **_):
    positive = values.reshape(4, 96) > 0
    block = np.arange(4)
    return {
        "count": positive.sum(1),
        "all": positive.all(1) | (block == 1),
        "any": positive.any(1) & (block != 2),
    }


def warp_votes(values, **_):
    rows, warp = values.reshape(4, 32), np.arange(4)[:, None]
    return {
        "any": (rows == 42 + warp).any(1),
        "all": (rows < 90 + 10 * (warp == 3)).all(1),
        "bits": ((rows & 1).astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1),
    }


def scan_hillis_steele(**args):
    return {"out": args["in"].reshape(2, 128).cumsum(1).ravel()}


def scan_blelloch(**args):
    rows = args["in"].reshape(2, 128)
    return {"out": (rows.cumsum(1) - rows).ravel()}


def scan_warp(**args):
    return {"out": args["in"].reshape(4, 32).cumsum(1).ravel()}


def histogram_global(data, counts, **_):
    return {"counts": np.bincount(data, minlength=len(counts))}


histogram_shared = histogram_match_any = histogram_global


def matmul_naive(A, B, **_):
    return {"C": product(A, B)}


matmul_uncoalesced = matmul_tiled = matmul_register_1d = matmul_register_2d = matmul_naive
matmul_float4 = matmul_double_buffered = matmul_size_t = matmul_naive


def matmul_double(A, B, **_):
    A, B = A.astype(np.longdouble), B.astype(np.longdouble)
    return {"C": close(A @ B, A.shape[1] + 1, np.abs(A) @ np.abs(B), EPS64)}


def matmul_half(A, B, **_):
    expected, bound = product(A, B)
    return {"C": (expected, bound + EPS16 * np.abs(expected))}


def transpose_naive(**args):
    return {"out": args["in"].T}


transpose_write_rows = transpose_shared = transpose_padded = transpose_swizzled = transpose_naive
transpose_unrolled = transpose_float4 = transpose_types = transpose_diagonal = transpose_naive


def stencil_1d(**args):
    values = wide(args["in"])
    expected = values.copy()
    expected[1:-1] = (values[:-2] + values[1:-1] + values[2:]) / 3
    return {"out": (expected, 3 * EPS)}


def stencil_1d_shared(**args):
    return {"out": np.convolve(args["in"], np.ones(7, np.int32), "same")}


def stencil_2d_shared(**args):
    p = np.pad(wide(args["in"]), 1)
    middle = p[1:-1, 1:-1]
    return {"out": (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * middle, 5 * 8 * EPS)}


def convolution_constant(**args):
    weights = [0.0625, 0.25, 0.375, 0.25, 0.0625]
    return {"out": (np.convolve(wide(args["in"]), weights, "same"), 5 * EPS)}


def softmax(**args):
    values = wide(args["in"])
    e = np.exp(values - values.max(1, keepdims=True))
    # a rounded exponent x costs x * EPS; expf itself 2 units, the sum 100, the quotient 2
    return {"out": close(e / e.sum(1, keepdims=True), 110 + 2 * np.abs(values).max())}


def layernorm(gain, bias, **args):
    values = wide(args["in"])
    centred = values - values.mean(1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    return {"out": (normal * gain + bias, 100 * EPS * (1 + np.abs(normal)))}


def bitonic_sort(**args):
    return {"out": np.sort(args["in"].reshape(2, 128), 1).ravel()}


def compact_ballot(**args):
    out, rows = np.zeros((3, 32), np.int32), args["in"].reshape(3, 32)
    for packed, row in zip(out, rows, strict=True):
        kept = row[row > 0]
        packed[: len(kept)] = kept
    return {"out": out.ravel(), "counts": (rows > 0).sum(1)}


def struct_by_value(line, **args):
    return {"out": (float(line["f0"]) * wide(args["in"]) + float(line["f1"]), 2 * 4 * EPS)}


def particles_aos(particles, dt, **_):
    expected = wide(particles)
    expected[:, 0] += float(dt) * expected[:, 1]
    return {"particles": (expected, np.array([2 * EPS, 0, 0, 0]))}


def vector_float2(a, b, **_):
    u, v = (wide(pair) @ [1, 1j] for pair in (a, b))
    return {"out": (np.stack([(u * v).real, (u * v).imag], 1), 4 * EPS)}


def vector_uchar4(**args):
    return {"out": (args["in"][:, :3].astype(int) @ [77, 150, 29]) >> 8}


def vector_int4(**args):
    return {"out": args["in"][:, ::-1]}


def vector_double2(**args):
    return {"out": close(np.hypot(*args["in"].T), 3, eps=EPS64)}


def copy_strided(stride, **args):
    return {"out": args["in"][: 64 * stride : stride]}


def copy_offset(offset, **args):
    out = np.zeros(300, np.float32)
    out[offset : offset + 256] = args["in"][offset : offset + 256]
    return {"out": out}


def copy_bytes(**args):
    return {"out": args["in"]}


def recursion_fibonacci(**_):
    numbers = [0, 1]
    while len(numbers) < 12:
        numbers.append(sum(numbers[-2:]))
    return {"out": np.array([numbers[t % 12] for t in range(40)])}


def recursion_mutual(**_):
    t = np.arange(32)
    return {"out": (t % 2 == 0) + 2 * (t // 2 % 2)}


def noinline_function(**args):
    windows = [args["in"][t : t + 1 + t % 7] for t in range(64)]
    return {"out": np.array([window.max() - window.min() for window in windows])}


def function_pointer(**args):
    x, t = args["in"], np.arange(48)
    return {"out": np.choose(t % 3, [2 * x, x * x, -x])}


def local_array(**args):
    return {"out": np.sort(args["in"], 1)}


def launch_bounds(**args):
    x, y = wide(args["in"]), 0.0
    for k in range(8, 0, -1):
        y = y * x + 1 / k
    return {"out": (y, 8 * 3 * EPS)}


def switch_cases(**args):
    t = np.arange(64)
    found = [t, -t, t * t + 100, 100 + 0 * t, 7 + 0 * t, t // 3, t % 5, 7 + 0 * t]
    return {"out": np.choose(args["in"], found)}


def divergent_branches(**args):
    out = []
    for i, value in enumerate(args["in"].tolist()):
        if i % 2:
            out.append(3 * value + 1 if value > 0 else -value)
        elif value < -10:
            out.append(-(-value // 2))
        else:
            for k in range(i & 7):
                value ^= k << 2
            out.append(value)
    return {"out": np.array(out)}


def collatz(n, **_):
    def steps(value):
        return 0 if value == 1 else 1 + steps(3 * value + 1 if value % 2 else value // 2)

    return {"out": np.array([steps(i + 1) if i < n else 0 for i in range(128)])}


def mandelbrot(rows, cols, most, **_):
    y, x = np.mgrid[:rows, :cols]
    c, z, count = (-2 + 3 * x / cols) + 1j * (-1.5 + 3 * y / rows), 0, np.zeros((rows, cols), int)
    inside = np.ones((rows, cols), bool)
    for _ in range(most):
        z = np.where(inside, z, 0)
        inside &= z.real**2 + z.imag**2 <= 4
        count += inside
        z = z * z + c
    return {"out": count}


def early_return(**args):
    def left(value):
        if value < 5:
            return 0
        return -1 if value >= 29 else 1 + sum(range(value + 1))

    return {"out": np.array([left(value) for value in args["in"].tolist()])}


def three_dimensions(**_):
    z, y, x = np.mgrid[:6, :15, :8]
    return {"out": x + 100 * y + 10000 * z}


def odd_blocks(out, _threads, **_):
    t, expected = np.arange(_threads), out.copy()
    rows = t * t + np.arange(3)[:, None]
    expected[: rows.size] = rows[:, ::-1].ravel()
    return {"out": expected, "sum": rows.sum(1)}


def dynamic_shared(**args):
    return {"out": args["in"].reshape(2, 96)[:, ::-1].ravel()}


def several_shared(**args):
    values, t = args["in"], np.arange(64)
    return {"out": np.where(values[63 - t] > 0, values[(t + 5) % 64], -values[63 - (63 - t)])}


def bank_broadcast(**_):
    t = np.arange(32)
    return {"out": 7 + 10000 * (t // 16)}


def integer_intrinsics(a, b, **_):
    def reverse(x):
        return int(f"{x:032b}"[::-1], 2)

    def signed(x):
        return x - (x >> 31 << 32)

    rows = []
    for t, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        shifted, by, both = (x << t % 32) & 0xFFFFFFFF, t % 32, (y << 32) | x
        rows.append(
            [
                x.bit_count(),
                32 - (x >> t % 32).bit_length(),
                (shifted & -shifted).bit_length(),
                reverse(x),
                x * y >> 32,
                sum((both >> 8 * pick & 0xFF) << 8 * at for at, pick in enumerate((5, 1, 7, 3))),
                ((y << 32 | x) << by) >> 32 & 0xFFFFFFFF,
                abs(x - y) + 5 & 0xFFFFFFFF,
                signed(x) * signed(y) >> 32 & 0xFFFFFFFF,
                x.bit_count() + y.bit_count() + 64 - y.bit_length(),
            ]
        )
    return {"out": np.array(rows).T}


def integer_arithmetic(a, b, **_):
    def quotient(x, y):
        return -(-x // y) if x < 0 else x // y

    rows = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        ux, m = x & 0xFFFFFFFF, y * 77777
        rest = x * 1000000007 - quotient(x * 1000000007, m) * m
        rows.append(
            [
                quotient(x, y),
                x - quotient(x, y) * y,
                ux // y,
                x * x * y,
                (x >> y % 20) + (ux >> y % 32) + (x << y % 8) & 0xFFFFFFFF,
                rest - quotient(x * y, 13),
            ]
        )
    return {"out": np.array(rows).T}


def math_float(**args):
    x = wide(args["in"])
    p = wide(np.abs(args["in"]) + np.float32(0.125))
    small = args["in"] * np.float32(0.4)
    exact = np.floor(x) + 10 * np.ceil(x) + 100 * np.trunc(x) + 1000 * np.rint(x)
    erf = np.vectorize(math.erf)(x)
    parts = [np.exp(x), np.log(p), np.sin(x), np.cos(x), np.tan(wide(small)), np.sqrt(p), p**-0.5, p**x]
    parts += [np.tanh(x), np.arctan2(x, p), erf, exact, np.fmod(x, 0.75), x / p]
    # units in the last place, from the programming guide's table; 0 for what is exact
    units = np.array([2, 1, 2, 2, 4, 1, 2, 4, 2, 3, 2, 0, 0, 1])[:, None]
    expected = np.array(parts)
    bound = units * EPS * np.maximum(np.abs(expected), np.where(units == 1, 0.125, 0))
    return {"out": (expected, bound + 1e-30)}


def math_double(**args):
    x = args["in"].astype(np.longdouble)
    p = np.abs(x) + 0.125
    parts = [np.exp(x), np.sin(x), np.sqrt(p), p**x, 1 / p]
    units = np.array([1, 2, 0.5, 2, 0.5])[:, None]
    return {"out": (np.array(parts), units * EPS64 * np.abs(np.array(parts)))}


def math_fast(**args):
    x = wide(args["in"])
    p = wide(np.abs(args["in"]) + np.float32(0.125))
    last = np.sqrt(p) + (x * p + x) + np.clip(x, 0, 1)
    expected = np.array([np.exp(x), np.log(p), np.sin(x), np.cos(x), x / p, p**x, 1 / p, last])
    # the guide's bounds: 2 + floor(|1.173 x|) units; absolute 2**-21.4; the same for sine and cosine;
    # the power is exp2(x log2 p), with the errors of both
    bounds = [
        (2 + np.floor(np.abs(1.173 * x))) * EPS * np.exp(x),
        2**-21.4 + 3 * EPS * np.abs(np.log(p)),
        np.full_like(x, 2**-20.9),
        np.full_like(x, 2**-20.9),
        2 * EPS * np.abs(x / p),
        p**x * (4 * EPS + np.abs(x) * (2**-21 + 4 * EPS * np.abs(np.log2(p)))),
        EPS / p,
        4 * EPS * (np.sqrt(p) + np.abs(x * p) + np.abs(x) + 1),
    ]
    return {"out": (expected, np.array(bounds))}


def conversions(**args):
    values = args["in"]
    x = wide(values)
    whole = np.trunc(x).astype(np.int64)
    thousand = np.trunc(wide(values * np.float32(1000))).astype(np.int64)
    large = 16777217 + np.arange(64)
    down = (large - large % 2).astype(np.float32).view(np.int32).astype(np.int64)
    rows = [
        whole,
        np.rint(x),
        np.ceil(x) + 1000 * np.floor(x),
        values.view(np.int32),
        whole.astype(np.uint8).astype(np.int64) + 1000 * whole.astype(np.int8).astype(np.int64),
        np.trunc(x * 1e4).astype(np.int64) + thousand.astype(np.int16),
        down - np.trunc((x * 3).astype(np.float32)).astype(np.int64),
    ]
    return {"out": np.array(rows, np.int64)}


def cp_async(**args):
    return {"out": 2 * args["in"][:, :, ::-1]}


def cooperative_groups_tile(**args):
    tiles = args["in"].reshape(2, 8, 8).sum(2)
    return {"out": tiles[:, ::-1], "last": tiles[:, 0]}


def cooperative_groups_coalesced(**args):
    chosen = args["in"].reshape(3, 32) % 3 == 0
    return {
        "kept": (chosen * chosen.cumsum(1)).ravel(),
        "total": args["in"][chosen.ravel()].sum(keepdims=True),
    }


def wmma_tf32(A, B, **_):
    expected, bound = product(A, B, extra=32)
    return {"C": (expected, bound + 2 * 2.0**-11 * (np.abs(wide(A)) @ np.abs(wide(B))))}


def half2_arithmetic(a, b, **_):
    x, y = wide(a), wide(b)
    square = wide((b * b).astype(np.float16))
    fused, added = (x * y + 1).astype(np.float16), (x + square).astype(np.float16)
    # hadd2 of hmul2 may be contracted
    bound = np.array([np.zeros(128), EPS16 * (y * y) + EPS16 * np.abs(x + y * y), np.zeros(128)])
    return {"out": (np.array([fused, added, a > b], np.float64), bound)}


def atomics_integers(**args):
    values = args["in"]
    unsigned = values.astype(np.int64)
    words = [
        values.sum(),
        min(1000, values.min()),
        max(-1000, values.max()),
        np.bitwise_and.reduce(values | 0xFFFF00),
        np.bitwise_or.reduce(values & 0xFF),
        0 ^ np.bitwise_xor.reduce(values),
        (5 + len(values)) % 21,
        -values.sum(),
    ]
    wide_words = [1 + 5000000000 * len(values) + unsigned.sum(), (int(values.max()) + 500) << 33]
    return {"words": np.array(words), "wide": np.array(wide_words)}


def atomics_float(**args):
    values = args["in"]
    total = wide(values).sum(keepdims=True)
    return {
        "single": close(total, len(values), np.abs(values).sum()),
        "wide": close(total, len(values), np.abs(values).sum(), EPS64),
        "largest": values.max(keepdims=True),
    }


def game_of_life(**args):
    cells = args["in"].astype(int)
    near = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
    alive = sum(np.roll(cells, shift, (0, 1)) for shift in near)
    return {"out": (alive == 3) | ((alive == 2) & (cells == 1))}


def nbody_tile(body, **_):
    body = wide(body)
    d = body[None, :, :3] - body[:, None, :3]
    pull = body[None, :, 3:] * ((d**2).sum(2, keepdims=True) + 0.01) ** -1.5
    # a difference of positions may cancel; its square is at least 0.01 with the softening
    return {"acceleration": ((pull * d).sum(1), 100 * EPS * (np.abs(pull) * (np.abs(d) + 0.1)).sum(1))}


def random_lcg(throws, **_):
    hits = []
    for i in range(128):
        state, inside = (12345 + 6789 * i) & 0xFFFFFFFF, 0
        for _throw in range(throws):
            point = []
            for _axis in range(2):
                state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
                point.append((state >> 8) / 16777216)
            inside += point[0] ** 2 + point[1] ** 2 < 1
        hits.append(inside)
    return {"hits": np.array(hits)}


def floyd_warshall(d, **_):
    d = d.copy()
    for k in range(len(d)):
        through = d[:, k, None] + d[k]
        through[k], through[:, k] = d[k], d[:, k]
        d = np.minimum(d, through)
    return {"d": d}


def spmv_csr(start, column, value, x, **_):
    terms = wide(value) * wide(x)[column]
    rows = [terms[first:end] for first, end in pairwise(start)]
    return {
        "y": (np.array([row.sum() for row in rows]), 6 * EPS * np.array([np.abs(row).sum() for row in rows]))
    }


def gather_scatter(order, **args):
    scattered = np.empty(128, np.float32)
    scattered[order] = args["in"]
    return {"gathered": args["in"][order], "scattered": scattered}


def pointer_chase(steps, **args):
    at = np.arange(40)
    for _step in range(steps):
        at = args["next"][at]
    return {"out": at}


def monte_carlo_xorshift(**_):
    x = np.uint64(88172645463325252) + np.arange(64, dtype=np.uint64)
    for _step in range(10):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
    return {"out": x, "sums": x.reshape(2, 32).sum(1)}


def device_variables(**_):
    i = np.arange(64)
    return {"out": 100 * (1 + i % 4) + i}


def shuffle_widths(**args):
    values, t = args["in"], np.arange(32)
    up = np.where(t % 16 >= 2, t - 2, t)
    down = np.where(t % 8 + 5 < 8, t + 5, t)
    return {"out": values[np.array([t // 8 * 8 + 3, up, down, t ^ 6])]}


def warp_reduce_intrinsic(**args):
    rows = args["in"].reshape(2, 32)
    return {"out": np.array([rows.sum(1), rows.min(1), rows.max(1), np.bitwise_xor.reduce(rows, 1)])}


def dot_product(a, b, **_):
    a, b = wide(a), wide(b)
    return {"sum": close((a * b).sum(keepdims=True), 20, np.abs(a * b).sum())}


def options_define(_options, **_):
    values = dict(option.removeprefix("-D").split("=") for option in _options)
    return {"out": int(values["VALUE"]) * (np.arange(64) % 32 % int(values.get("TILE", 8)))}


def active_mask(**_):
    lane, warp = np.arange(48) % 32, np.arange(48) // 32
    here = np.where(warp == 0, 0xFFFFFFFF, 0xFFFF)
    return {"out": np.array([here, np.where(lane < 8 + warp, 8 + warp, 100), np.full(48, 32)])}


def union_bitfield(**args):
    bits = args["in"].view(np.uint32).astype(np.int64)
    return {"out": np.stack([bits >> 31, (bits >> 23 & 0xFF) - 127, bits & 0x7FFFFF], 1)}


def class_and_lambda(**args):
    u, v = (wide(pairs) @ [1, 1j] for pairs in (args["in"], np.roll(args["in"], -1, 0)))
    return {"out": np.stack([(u * v).real, (u * v).imag], 1)}


def uniform_barrier(**args):
    rows = args["in"].reshape(4, 96)
    return {"out": np.array([np.roll(rows[0], -1), rows[1][::-1], np.roll(rows[2], -3), rows[3][::-1]])}


def memory_functions(**args):
    out = np.zeros((32, 6), np.int32)
    for t in range(32):
        out[t, t % 4 : t % 4 + 2] = args["in"][t, :2]
    return {"out": out}


def cache_hints(**args):
    return {"out": args["in"]}


def state_machine(**args):
    def run(value):
        steps = 1
        while value > 40:
            value, steps = value - 7, steps + 1
        while True:
            value += steps
            if value % 9 == 0:
                return 1000 * steps + value
            if value >= 50:
                return 1000 * steps - value

    return {"out": np.array([run(value) for value in args["in"].tolist()])}


def bfloat16(a, b, **_):
    def rounded(values):
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)

    return {"out": rounded(rounded(a) * rounded(b))}


def atomic_cas_double(**args):
    total = args["in"].sum(keepdims=True)
    return {"sum": close(total, 128, np.abs(args["in"]).sum(), EPS64)}


def device_counter(**args):
    return {"total": args["in"].sum(keepdims=True)}


def shared_structures(**args):
    other = 63 - np.arange(64)
    return {"out": np.where(other % 3 == 1, 1, -1) * args["in"][other]}


def inline_assembly(a, b, **_):
    t = np.arange(64)
    return {"out": np.array([t % 32, a ^ b ^ t, 7 * a + b])}


def tail_bytes(**args):
    return {"out": ~args["in"]}


def copy_reinterpreted(**args):
    values = args["in"].copy()
    values[128:] = np.abs(values[128:])
    return {"out": values}


def expected(case):
    """{output: (array, bound)} of a clean case; the bound is None where the result must be exact."""
    if case.expectations:
        pairs = (text.split(" = ", 1) for text in case.expectations)
        found = {name: eval(text, globals() | case.args()) for name, text in pairs}
    else:
        threads = math.prod(case.block)
        found = globals()[case.file](**case.args(), _threads=threads, _options=case.options)
    return {name: value if isinstance(value, tuple) else (value, None) for name, value in found.items()}


def wrong(case, got):
    """What is wrong with the outputs in `got`, an array by name, in words; "" where all is right."""
    references, words = expected(case), []
    if set(references) != set(case.named("out")):
        return f"the reference has {sorted(references)}, the kernel writes {sorted(case.named('out'))}"
    for name, (reference, bound) in references.items():
        words += differences(name, got[name], reference, bound)
    return "; ".join(words)


def differences(name, got, reference, bound=None):
    """One line on where `got` is not `reference`: the first index, both values, how many; or none."""
    if bound is None:
        reference = np.broadcast_to(np.asarray(reference), np.shape(reference)).astype(got.dtype)
        reference = np.reshape(reference, got.shape) if np.size(reference) == got.size else reference
        bad = ~(got == reference)
    else:
        reference = np.reshape(np.asarray(reference, np.longdouble), got.shape)
        bad = ~(np.abs(got.astype(np.longdouble) - reference) <= np.broadcast_to(bound, got.shape))
    if not bad.any():
        return []
    first = tuple(map(int, np.argwhere(bad)[0]))
    return [
        f"{name}{list(first)} is {got[first]}, not {reference[first]} ({bad.sum()} of {got.size} are wrong)"
    ]
