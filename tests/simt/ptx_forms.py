"""Instructions that compute, each with its operands' types and a reference in plain Python.

The references follow the PTX ISA, chapter 9.7. Operands and results are bits; integers of signed types come
as negative numbers, too.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from inspect import signature

import ieee

BITS = {f"{sign}{bits}": bits for sign in "sub" for bits in (8, 16, 32, 64)}
BITS |= {"f16": 16, "bf16": 16, "f16x2": 32, "bf16x2": 32, "s16x2": 32, "u16x2": 32, "f32": 32, "f64": 64}
BITS |= {"p": 1, "n": 32, "unit": 32, "turn": 32}  # n: a count of bits; unit, turn: f32 of moderate size
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@dataclass(frozen=True)
class Form:
    """One or more lines of PTX with places {0}, {1}, ... for operands and {d}, {e}, {f} for results."""

    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    reference: Callable[..., object]
    text: str
    tolerance: float = 0.0  # relative and absolute, of results that PTX only approximates

    def __str__(self):
        return self.name

    @property
    def family(self):
        """The first word of its name."""
        return re.match(r"\w+", self.name)[0]


FORMS: list[Form] = []


def form(opcode, types, reference, text="", tolerance=0.0):
    """Add a form: `types` is such as "s32 s32 -> s32"; `text` has all but the simplest operand lists."""
    operands, results = (tuple(side.split()) for side in types.split("->"))
    places = ", ".join(["{d}", *(f"{{{number}}}" for number in range(len(operands)))])
    FORMS.append(Form(opcode, operands, results, reference, f"{text or f'{opcode} {places}'};", tolerance))


def signed(bits, x):
    """The signed number with the lowest `bits` of x."""
    x &= (1 << bits) - 1
    return x - (1 << bits) * (x >> bits - 1)


def as_type(type_, x):
    """The integer of a type that has the lowest bits of x."""
    return signed(BITS[type_], x) if type_[0] == "s" else x & (1 << BITS[type_]) - 1


def clamped(type_, x):
    """The integer of a type that is nearest to x."""
    bits, low = BITS[type_], -(1 << BITS[type_] - 1) if type_[0] == "s" else 0
    return min(max(x, low), low + (1 << bits) - 1)


def parts(word, bits, type_="u"):
    """The bytes or half words of a word, the lowest first."""
    values = [word >> i & (1 << bits) - 1 for i in range(0, 32, bits)]
    return [signed(bits, each) for each in values] if type_[0] == "s" else values


def packed(values, bits):
    """The word with these bytes or half words."""
    return sum((each & (1 << bits) - 1) << i * bits for i, each in enumerate(values))


def shifted(x, amount):
    return x << amount if amount >= 0 else x >> -amount


# --- integers ----------------------------------------------------------------------------------------------

INTEGERS = [f"{sign}{bits}" for bits in (16, 32, 64) for sign in "su"]


def towards_zero(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


for t in INTEGERS:
    n = BITS[t]
    form(f"add.{t}", f"{t} {t} -> {t}", lambda x, y: x + y)
    form(f"sub.{t}", f"{t} {t} -> {t}", lambda x, y: x - y)
    form(f"mul.lo.{t}", f"{t} {t} -> {t}", lambda x, y: x * y)
    form(f"mul.hi.{t}", f"{t} {t} -> {t}", lambda x, y, n=n: x * y >> n)
    form(f"mad.lo.{t}", f"{t} {t} {t} -> {t}", lambda x, y, z: x * y + z)
    form(f"mad.hi.{t}", f"{t} {t} {t} -> {t}", lambda x, y, z, n=n: (x * y >> n) + z)
    form(f"sad.{t}", f"{t} {t} {t} -> {t}", lambda x, y, z: abs(x - y) + z)
    form(f"div.{t}", f"{t} {t} -> {t}", lambda x, y: towards_zero(x, y) if y else None)
    form(f"rem.{t}", f"{t} {t} -> {t}", lambda x, y: x - towards_zero(x, y) * y if y else None)
    form(f"min.{t}", f"{t} {t} -> {t}", min)
    form(f"max.{t}", f"{t} {t} -> {t}", max)
    form(f"shr.{t}", f"{t} n -> {t}", lambda x, k: x >> k if k < 64 else -(x < 0))
    if t[0] == "s":
        form(f"neg.{t}", f"{t} -> {t}", lambda x: -x)
        form(f"abs.{t}", f"{t} -> {t}", abs)
    if n < 64:
        w = f"{t[0]}{2 * n}"
        form(f"mul.wide.{t}", f"{t} {t} -> {w}", lambda x, y: x * y)
        form(f"mad.wide.{t}", f"{t} {t} {w} -> {w}", lambda x, y, z: x * y + z)
    if n > 16:

        def highest(x, n=n):
            return (x if x >= 0 else ~x).bit_length() - 1

        def to_top(x, n=n):
            place = (x if x >= 0 else ~x).bit_length() - 1
            return n - 1 - place if place >= 0 else -1

        form(f"bfind.{t}", f"{t} -> u32", highest)
        form(f"bfind.shiftamt.{t}", f"{t} -> u32", to_top)

        def field(x, start, length, n=n, sign=t[0]):
            start, length = start & 255, length & 255
            if not length:
                return 0
            word = x & (1 << n) - 1
            top = word >> min(start + length - 1, n - 1) & 1 if sign == "s" else 0
            got = [word >> i & 1 if i < n else top for i in range(start, start + length)][:n]
            return sum(bit << i for i, bit in enumerate(got + [top] * (n - len(got))))

        form(f"bfe.{t}", f"{t} n n -> {t}", field)

for t in ("s32", "u32"):
    form(f"mul24.lo.{t}", f"{t} {t} -> {t}", lambda x, y, t=t: low_24(t, x) * low_24(t, y))
    form(f"mul24.hi.{t}", f"{t} {t} -> {t}", lambda x, y, t=t: low_24(t, x) * low_24(t, y) >> 16)
    form(f"mad24.lo.{t}", f"{t} {t} {t} -> {t}", lambda x, y, z, t=t: low_24(t, x) * low_24(t, y) + z)
    form(f"mad24.hi.{t}", f"{t} {t} {t} -> {t}", lambda x, y, z, t=t: (low_24(t, x) * low_24(t, y) >> 16) + z)


def low_24(type_, x):
    return signed(24, x) if type_[0] == "s" else x & 0xFFFFFF


form("add.sat.s32", "s32 s32 -> s32", lambda x, y: clamped("s32", x + y))
form("sub.sat.s32", "s32 s32 -> s32", lambda x, y: clamped("s32", x - y))
form("mad.hi.sat.s32", "s32 s32 s32 -> s32", lambda x, y, z: clamped("s32", (x * y >> 32) + z))
form(
    "mad24.hi.sat.s32",
    "s32 s32 s32 -> s32",
    lambda x, y, z: clamped("s32", signed(32, low_24("s", x) * low_24("s", y) >> 16) + z),
)
form("min.relu.s32", "s32 s32 -> s32", lambda x, y: max(min(x, y), 0))
form("max.relu.s32", "s32 s32 -> s32", lambda x, y: max(x, y, 0))
for t in ("s16x2", "u16x2"):
    for name, of in {"add": lambda x, y: x + y, "min": min, "max": max}.items():
        form(
            f"{name}.{t}",
            f"{t} {t} -> {t}",
            lambda x, y, of=of, t=t: packed(map(of, parts(x, 16, t), parts(y, 16, t)), 16),
        )
for name, of in {"min": min, "max": max}.items():
    form(
        f"{name}.relu.s16x2",
        "s16x2 s16x2 -> s16x2",
        lambda x, y, of=of: packed(
            (max(of(p), 0) for p in zip(parts(x, 16, "s"), parts(y, 16, "s"), strict=True)), 16
        ),
    )

# --- bits --------------------------------------------------------------------------------------------------

for t in ("b16", "b32", "b64"):
    n = BITS[t]
    form(f"and.{t}", f"{t} {t} -> {t}", lambda x, y: x & y)
    form(f"or.{t}", f"{t} {t} -> {t}", lambda x, y: x | y)
    form(f"xor.{t}", f"{t} {t} -> {t}", lambda x, y: x ^ y)
    form(f"not.{t}", f"{t} -> {t}", lambda x: ~x)
    form(f"cnot.{t}", f"{t} -> {t}", lambda x: int(x == 0))
    form(f"mov.{t}", f"{t} -> {t}", lambda x: x)
    form(f"shl.{t}", f"{t} n -> {t}", lambda x, k, n=n: x << k if k < n else 0)
    form(f"shr.{t}", f"{t} n -> {t}", lambda x, k, n=n: x >> k if k < n else 0)
    form(f"selp.{t}", f"{t} {t} p -> {t}", lambda x, y, p: x if p else y)
    if n > 16:
        form(f"popc.{t}", f"{t} -> u32", lambda x: x.bit_count())
        form(f"clz.{t}", f"{t} -> u32", lambda x, n=n: n - x.bit_length())
        form(f"brev.{t}", f"{t} -> {t}", lambda x, n=n: int(f"{x:0{n}b}"[::-1], 2))

        def inserted(x, y, start, length, n=n):
            start, length = start & 255, length & 255
            mask = ((1 << length) - 1 << start) & (1 << n) - 1
            return x << start & mask | y & ~mask

        form(f"bfi.{t}", f"{t} {t} n n -> {t}", inserted)
form("and.pred", "p p -> p", lambda x, y: x & y)
form("or.pred", "p p -> p", lambda x, y: x | y)
form("xor.pred", "p p -> p", lambda x, y: x ^ y)
form("not.pred", "p -> p", lambda x: 1 - x)
form("mov.pred", "p -> p", lambda x: x)
form("cvta.to.global.u64", "u64 -> u64", lambda x: x)
form("shf.l.clamp.b32", "b32 b32 n -> b32", lambda x, y, k: (y << 32 | x) << min(k, 32) >> 32)
form("shf.r.clamp.b32", "b32 b32 n -> b32", lambda x, y, k: (y << 32 | x) >> min(k, 32))
form("shf.l.wrap.b32", "b32 b32 n -> b32", lambda x, y, k: (y << 32 | x) << (k & 31) >> 32)
form("shf.r.wrap.b32", "b32 b32 n -> b32", lambda x, y, k: (y << 32 | x) >> (k & 31))
for table in (0xE8, 0x96, 0x1B, 0x40, 0x00, 0xFF):
    form(
        f"lop3.b32 {table:#x}",
        "b32 b32 b32 -> b32",
        lambda x, y, z, table=table: sum(
            (table >> (x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1) & 1) << i for i in range(32)
        ),
        f"lop3.b32 {{d}}, {{0}}, {{1}}, {{2}}, {table:#x}",
    )


def permuted(x, y, nibbles):
    """`prmt`: each nibble picks one of eight bytes, or copies of its sign."""
    eight, got = parts(x, 8) + parts(y, 8), []
    for pick in nibbles:
        byte = eight[pick & 7]
        got.append((255 if byte & 128 else 0) if pick & 8 else byte)
    return packed(got, 8)


form("prmt.b32", "b32 b32 b32 -> b32", lambda x, y, c: permuted(x, y, [c >> 4 * i & 15 for i in range(4)]))
for mode, pick in {
    "f4e": lambda i, c: i + c,
    "b4e": lambda i, c: (c - i) & 7,
    "rc8": lambda i, c: c,
    "ecl": lambda i, c: max(i, c),
    "ecr": lambda i, c: min(i, c),
    "rc16": lambda i, c: 2 * (c & 1) + i % 2,
}.items():
    form(
        f"prmt.b32.{mode}",
        "b32 b32 n -> b32",
        lambda x, y, c, pick=pick: permuted(x, y, [pick(i, c & 3) for i in range(4)]),
    )


def mask(start, length, wraps):
    start, length = (start & 31, length & 31) if wraps else (min(start, 32), min(length, 32))
    return (1 << length) - 1 << start


def extended(type_, x, length, wraps):
    length = length & 31 if wraps else min(length, 32)
    return (
        as_type(type_, x)
        if length == 32
        else (signed(length, x) if length and type_ == "s32" else 0) or (x & (1 << length) - 1)
    )


form("bmsk.clamp.b32", "n n -> b32", lambda x, y: mask(x, y, False))
form("bmsk.wrap.b32", "n n -> b32", lambda x, y: mask(x, y, True))
for t in ("s32", "u32"):
    form(f"szext.clamp.{t}", f"{t} n -> {t}", lambda x, k, t=t: extended(t, x, k, False))
    form(f"szext.wrap.{t}", f"{t} n -> {t}", lambda x, k, t=t: extended(t, x, k, True))


def nth_set(word, base, offset):
    """`fns`: where the offset-th one is, counted from `base` upwards, or downwards if negative."""
    if offset == 0:
        return base if word >> base & 1 else -1
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [place for place in places if word >> place & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else -1


form("fns.b32", "b32 n n -> b32", lambda x, base, k: nth_set(x, base, signed(32, k)) if base < 32 else None)

# --- carries -----------------------------------------------------------------------------------------------


def words(total, bits=32):
    """The two words of a number, the lower first."""
    return total & (1 << bits) - 1, total >> bits & (1 << bits) - 1


for t in ("u32", "s32", "u64", "s64"):
    n, u = BITS[t], f"u{BITS[t]}"
    form(
        f"add.cc.{t} addc.{t}",
        f"{u} {u} {u} {u} -> {u} {u}",
        lambda x, y, z, w, n=n: words((y << n | x) + (w << n | z), n),
        f"add.cc.{t} {{d}}, {{0}}, {{2}}; addc.{t} {{e}}, {{1}}, {{3}}",
    )
    form(
        f"sub.cc.{t} subc.{t}",
        f"{u} {u} {u} {u} -> {u} {u}",
        lambda x, y, z, w, n=n: words((y << n | x) - (w << n | z), n),
        f"sub.cc.{t} {{d}}, {{0}}, {{2}}; subc.{t} {{e}}, {{1}}, {{3}}",
    )
    form(
        f"mad.lo.cc.{t} madc.hi.{t}",
        f"{u} {u} {u} {u} -> {t} {t}",
        lambda x, y, z, w, n=n, t=t: words(as_type(t, x) * as_type(t, y) + (w << n | z), n),
        f"mad.lo.cc.{t} {{d}}, {{0}}, {{1}}, {{2}}; madc.hi.{t} {{e}}, {{0}}, {{1}}, {{3}}",
    )
for name, combine in {"add": lambda x, y: x + y, "sub": lambda x, y: x - y}.items():
    form(
        f"{name}c.cc.u32",
        "u32 u32 u32 u32 -> u32 u32 u32",
        lambda x, y, z, w, combine=combine: (
            *words(combine(y << 32 | x, w << 32 | z)),
            combine(0, int(not 0 <= combine(y << 32 | x, w << 32 | z) < 1 << 64)),
        ),
        f"{name}.cc.u32 {{d}}, {{0}}, {{2}}; {name}c.cc.u32 {{e}}, {{1}}, {{3}}; {name}c.u32 {{f}}, 0, 0",
    )
form(
    "madc.lo.cc.u32",
    "u32 u32 u32 u32 -> u32 u32 u32",
    # x y as it is, and once more one word higher
    lambda x, y, z, w: (
        *words(first := (w << 32 | z) + (x * y & 0xFFFFFFFF) + ((x * y & 0xFFFFFFFF) << 32)),
        first >> 64,
    ),
    "mad.lo.cc.u32 {d}, {0}, {1}, {2}; madc.lo.cc.u32 {e}, {0}, {1}, {3}; addc.u32 {f}, 0, 0",
)
form(
    "mad.hi.cc.u32",
    "u32 u32 u32 -> u32 u32",
    lambda x, y, z: words((x * y >> 32) + z),
    "mad.hi.cc.u32 {d}, {0}, {1}, {2}; addc.u32 {e}, 0, 0",
)

# --- dots --------------------------------------------------------------------------------------------------

for t in ("s32", "u32"):
    for u in ("s32", "u32"):
        result = "s32" if "s32" in (t, u) else "u32"
        form(
            f"dp4a.{t}.{u}",
            f"b32 b32 {result} -> {result}",
            lambda x, y, z, t=t, u=u: (
                z + sum(p * q for p, q in zip(parts(x, 8, t), parts(y, 8, u), strict=True))
            ),
        )
        for half in ("lo", "hi"):
            form(
                f"dp2a.{half}.{t}.{u}",
                f"b32 b32 {result} -> {result}",
                lambda x, y, z, t=t, u=u, first=2 * (half == "hi"): (
                    z
                    + sum(
                        p * q for p, q in zip(parts(x, 16, t), parts(y, 8, u)[first : first + 2], strict=True)
                    )
                ),
            )

# --- video -------------------------------------------------------------------------------------------------


VIDEO = {
    "vadd": lambda x, y: x + y,
    "vsub": lambda x, y: x - y,
    "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min,
    "vmax": max,
}
SECOND = {"": lambda x, c: x, ".add": lambda x, c: x + c, ".min": min, ".max": max}
COMPARE = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


def video(name, result, types, sat, second, compute):
    """A scalar video instruction, with or without a second operation."""
    given = "{d}, {0}, {1}" + (", {2}" if second else "")

    def reference(*operands):
        value = compute(*(as_type(t, each) for t, each in zip(types, operands[:2], strict=True)))
        value = clamped(result, value) if sat else as_type(result, value)
        return SECOND[second](value, as_type(result, operands[2])) if second else value

    text = f"{name}{second} {given}"
    operands = f"{types[0]} {types[1]}" + (f" {result}" if second else "")
    form(f"{name}{second}", f"{operands} -> {result}", reference, text)


number = 0  # gives each name some of the many combinations of types, and all of them together
for name, compute in VIDEO.items():
    for second in SECOND:
        for sat in ("", ".sat"):
            for result in ("s32", "u32"):
                types = [("s32", "s32"), ("u32", "s32"), ("s32", "u32"), ("u32", "u32")][number % 4]
                number += 1
                video(f"{name}.{result}.{types[0]}.{types[1]}{sat}", result, types, sat, second, compute)
        number += 1
for second in SECOND:
    for name, compute in COMPARE.items():
        types = [("s32", "s32"), ("u32", "s32"), ("s32", "u32"), ("u32", "u32")][number % 4]
        number += 1
        video(
            f"vset.{types[0]}.{types[1]}.{name}",
            "u32",
            types,
            "",
            second,
            lambda x, y, compute=compute: int(compute(x, y)),
        )
    for name, sign in {"vshl": 1, "vshr": -1}.items():
        for mode in ("clamp", "wrap"):
            for result, first, sat in (("s32", "s32", ".sat"), ("u32", "u32", ".sat"), ("s32", "u32", "")):
                video(
                    f"{name}.{result}.{first}.u32{sat}.{mode}",
                    result,
                    (first, "n"),
                    sat,
                    second,
                    lambda x, k, sign=sign, wraps=mode == "wrap": shifted(
                        x, sign * (k & 31 if wraps else min(k & 0xFFFFFFFF, 32))
                    ),
                )
for types in (("s32", "s32"), ("u32", "u32"), ("u32", "s32"), ("s32", "u32")):
    result = "s32" if "s32" in types else "u32"
    for scale in ("", ".shr7", ".shr15"):
        for sat in ("", ".sat"):
            form(
                f"vmad.{result}.{types[0]}.{types[1]}{sat}{scale}",
                f"{types[0]} {types[1]} {result} -> {result}",
                lambda x, y, z, sat=sat, result=result, k=int(scale[4:] or 0): (
                    clamped(result, x * y + z >> k) if sat else x * y + z >> k
                ),
            )

form(
    "vmad.u32.u32.u32.po",
    "u32 u32 u32 -> u32",
    lambda x, y, z: x * y + z + 1,
    "vmad.u32.u32.u32.po {d}, {0}, {1}, {2}",
)

SIMD = VIDEO | {"vavrg": lambda x, y: x + y + (x + y >= 0) >> 1}
SIMD |= {
    f"vset {name}": lambda x, y, compute=compute: int(compute(x, y)) for name, compute in COMPARE.items()
}
for count in (2, 4):
    width = 32 // count
    for spaced, compute in SIMD.items():
        for mode in ("", ".sat", ".add"):
            name, _, compared = spaced.partition(" ")
            if name == "vset" and mode == ".sat":
                continue
            types = [("s32", "s32"), ("u32", "s32"), ("s32", "u32"), ("u32", "u32")][number % 4]
            result = "u32" if name == "vset" else ("s32", "u32")[number // 4 % 2]
            number += 1
            listed = (*types, compared) if compared else (result, *types)
            opcode = f"{name}{count}.{'.'.join(listed)}{mode}"

            def of_parts(x, y, c, compute=compute, types=types, result=result, width=width, mode=mode):
                pairs = zip(parts(x, width, types[0]), parts(y, width, types[1]), strict=True)
                got = [compute(p, q) for p, q in pairs]
                if mode == ".sat":
                    got = [clamped(f"{result[0]}{width}", each) for each in got]
                return c + sum(got) if mode == ".add" else packed(got, width)

            form(opcode, "b32 b32 b32 -> b32", of_parts)

# --- comparisons -------------------------------------------------------------------------------------------


def compare(name, x, y):
    """PTX's comparison of numbers: `lt` is false where one is a NaN, `ltu` true."""
    unordered = x != x or y != y
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if unordered:
        return len(name) == 3
    return COMPARE[{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(name, name[:2])](x, y)


JOIN = {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}
OF_FLOATS = (*COMPARISONS, *(f"{name}u" for name in COMPARISONS), "num", "nan")


def number_of(type_, bits):
    """The number that an operand's bits stand for."""
    return ieee.value(type_, bits) if type_ in ieee.FORMATS else bits


def halves(type_, word):
    """The two numbers of a pair, the lower first."""
    return [ieee.value(type_.removesuffix("x2"), each) for each in parts(word, 16)]


for t in (*INTEGERS, "f32", "f64", "f16", "bf16", "b32", "b64"):
    names = OF_FLOATS if t[0] == "f" or t == "bf16" else ("eq", "ne") if t[0] == "b" else COMPARISONS
    names = (*names, "lo", "ls", "hi", "hs") if t[0] == "u" else names
    for i, name in enumerate(names):
        form(
            f"setp.{name}.{t}",
            f"{t} {t} -> p",
            lambda x, y, name=name, t=t: int(compare(name, number_of(t, x), number_of(t, y))),
        )
        for join in list(JOIN)[i : i + 1]:
            form(
                f"setp.{name}.{join}.{t}",
                f"{t} {t} p -> p",
                lambda x, y, p, name=name, t=t, join=join: JOIN[join](
                    int(compare(name, number_of(t, x), number_of(t, y))), p
                ),
            )
        to = ("u32", "s32", "f32")[i % 3]
        if t in ("f16", "bf16"):
            to = ("u32", t, "u16", "f32", "s32")[i % 5]
        yes = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(to, -1)
        form(
            f"set.{name}.{to}.{t}",
            f"{t} {t} -> {to}",
            lambda x, y, name=name, t=t, yes=yes: (
                yes if compare(name, number_of(t, x), number_of(t, y)) else 0
            ),
        )
for name, join in (("lt", "and"), ("geu", "or"), ("ne", "xor")):
    form(
        f"setp.{name}.f32 p|q",
        "f32 f32 -> p p",
        lambda x, y, name=name: (
            int(compare(name, number_of("f32", x), number_of("f32", y))),
            int(not compare(name, number_of("f32", x), number_of("f32", y))),
        ),
        f"setp.{name}.f32 {{d}}|{{e}}, {{0}}, {{1}}",
    )
    form(
        f"setp.{name[:2]}.{join}.s32 p|q",
        "s32 s32 p -> p p",
        lambda x, y, p, name=name[:2], join=join: (
            JOIN[join](int(compare(name, x, y)), p),
            JOIN[join](int(not compare(name, x, y)), p),
        ),
        f"setp.{name[:2]}.{join}.s32 {{d}}|{{e}}, {{0}}, {{1}}, {{2}}",
    )
for t in ("f16x2", "bf16x2"):
    for i, name in enumerate(OF_FLOATS):

        def two(x, y, p=None, name=name, t=t, join=None):
            got = [int(compare(name, u, v)) for u, v in zip(halves(t, x), halves(t, y), strict=True)]
            return tuple(got if p is None else (JOIN[join](each, p) for each in got))

        form(f"setp.{name}.{t}", f"{t} {t} -> p p", two, f"setp.{name}.{t} {{d}}|{{e}}, {{0}}, {{1}}")
        for join in list(JOIN)[i : i + 1]:
            form(
                f"setp.{name}.{join}.{t}",
                f"{t} {t} p -> p p",
                lambda x, y, p, two=two, join=join: two(x, y, p, join=join),
                f"setp.{name}.{join}.{t} {{d}}|{{e}}, {{0}}, {{1}}, {{2}}",
            )
        to = (t, "u32")[i % 2]
        yes = {"f16x2": 0x3C00, "bf16x2": 0x3F80, "u32": 0xFFFF}[to]
        form(
            f"set.{name}.{to}.{t}",
            f"{t} {t} -> {to}",
            lambda x, y, two=two, yes=yes: packed([yes * each for each in two(x, y)], 16),
        )
for t in ("b32", "f32", "s64", "f64", "s16"):
    form(f"slct.{t}.s32", f"{t} {t} s32 -> {t}", lambda x, y, z: x if z >= 0 else y)
    form(f"slct.{t}.f32", f"{t} {t} f32 -> {t}", lambda x, y, z: x if ieee.value("f32", z) >= 0 else y)
for t in ("f32", "f64"):
    least = ieee.FORMATS[t].least_normal
    for name, holds in {
        "finite": math.isfinite,
        "infinite": math.isinf,
        "number": lambda v: not math.isnan(v),
        "notanumber": math.isnan,
        "normal": lambda v, least=least: math.isfinite(v) and abs(v) >= least,
        "subnormal": lambda v, least=least: 0 < abs(v) < least,
    }.items():
        form(f"testp.{name}.{t}", f"{t} -> p", lambda x, holds=holds, t=t: int(holds(ieee.value(t, x))))

# --- floats ------------------------------------------------------------------------------------------------


def limited(type_, bits, opcode):
    """What `.sat`, `.relu` and `.ftz` make of a result."""
    bits = ieee.flushed(type_, bits) if ".ftz" in opcode else bits
    x = ieee.value(type_, bits)
    if ".sat" in opcode and ".satfinite" not in opcode:
        return ieee.bits_of(type_, 0.0 if math.isnan(x) else min(max(x, 0.0), 1.0))
    if ".relu" in opcode:
        return ieee.FORMATS[type_].nan if math.isnan(x) else ieee.bits_of(type_, max(x, 0.0))
    return bits


def floats(opcode, type_, count, compute):
    """A form whose reference gets numbers, and gives bits of the same type."""
    one = type_.removesuffix("x2")

    def of_numbers(*bits):
        if ".ftz" in opcode:
            bits = [ieee.flushed(one, each) for each in bits]
        return limited(one, compute(*(ieee.value(one, each) for each in bits)), opcode)

    def of_pairs(*operands):
        lower, upper = zip(*(parts(each, 16) for each in operands), strict=True)
        return packed([of_numbers(*lower), of_numbers(*upper)], 16)

    form(opcode, f"{' '.join([type_] * count)} -> {type_}", of_pairs if one != type_ else of_numbers)


def sized(type_, x, y, nan, sign):
    """`min.xorsign.abs`: the extreme of the sizes, with the product's sign."""
    got = ieee.smallest(type_, abs(x), abs(y), nan, sign)
    negative = (math.copysign(1, x) < 0) != (math.copysign(1, y) < 0)
    return got | ieee.FORMATS[type_].sign if negative and not math.isnan(ieee.value(type_, got)) else got


ADD = {
    "add": lambda t, m, x, y: ieee.total(t, x, y, m),
    "sub": lambda t, m, x, y: ieee.total(t, x, -y, m),
    "mul": lambda t, m, x, y: ieee.product(t, x, y, m),
}
for t in ("f32", "f64"):
    for mode in ("", "rn", "rz", "rm", "rp"):
        dotted, m = f".{mode}" if mode else "", mode or "rn"
        endings = ["", ".ftz", ".sat", ".ftz.sat"] if t == "f32" and mode in ("", "rz") else [""]
        for name, compute in ADD.items():
            for ending in endings:
                floats(f"{name}{dotted}{ending}.{t}", t, 2, lambda *x, c=compute, t=t, m=m: c(t, m, *x))
        if not mode:
            continue
        floats(f"fma.{mode}.{t}", t, 3, lambda *x, t=t, m=m: ieee.fused(t, *x, m))
        floats(f"mad.{mode}.{t}", t, 3, lambda *x, t=t, m=m: ieee.fused(t, *x, m))
        floats(f"div.{mode}.{t}", t, 2, lambda *x, t=t, m=m: ieee.quotient(t, *x, m))
        floats(f"rcp.{mode}.{t}", t, 1, lambda x, t=t, m=m: ieee.quotient(t, 1.0, x, m))
        floats(f"sqrt.{mode}.{t}", t, 1, lambda x, t=t, m=m: ieee.root(t, x, m))
    ends = ("", ".NaN", ".ftz", ".ftz.NaN") if t == "f32" else ("",)
    for name, sign in {"min": 1, "max": -1}.items():
        for end in ends:
            nan = "NaN" in end
            floats(f"{name}{end}.{t}", t, 2, lambda *x, t=t, n=nan, s=sign: ieee.smallest(t, *x, n, s))
            if t == "f32" and "ftz" not in end:
                floats(
                    f"{name}{end}.xorsign.abs.{t}", t, 2, lambda *x, t=t, n=nan, s=sign: sized(t, *x, n, s)
                )
    floats(f"neg.{t}", t, 1, lambda x, t=t: ieee.bits_of(t, -x))
    floats(f"abs.{t}", t, 1, lambda x, t=t: ieee.bits_of(t, abs(x)))
    floats(f"copysign.{t}", t, 2, lambda x, y, t=t: ieee.bits_of(t, math.copysign(y, x)))
    form(f"mov.{t}", f"{t} -> {t}", lambda x: x)
    form(f"selp.{t}", f"{t} {t} p -> {t}", lambda x, y, p: x if p else y)
floats("fma.rn.sat.f32", "f32", 3, lambda *x: ieee.fused("f32", *x))
floats("fma.rn.ftz.f32", "f32", 3, lambda *x: ieee.fused("f32", *x))
floats("neg.ftz.f32", "f32", 1, lambda x: ieee.bits_of("f32", -x))
floats("abs.ftz.f32", "f32", 1, lambda x: ieee.bits_of("f32", abs(x)))
for t in ("f16", "f16x2", "bf16", "bf16x2"):
    one, dotted = t.removesuffix("x2"), ".rn" if t[0] == "b" else ""
    for name, compute in ADD.items():
        for ending in ("", ".ftz", ".sat", ".ftz.sat") if t[0] == "f" else ("",):
            floats(f"{name}{dotted}{ending}.{t}", t, 2, lambda *x, c=compute, t=one: c(t, "rn", *x))
    for ending in ("", ".ftz", ".sat", ".relu") if t[0] == "f" else ("", ".relu"):
        floats(f"fma.rn{ending}.{t}", t, 3, lambda *x, t=one: ieee.fused(t, *x))
    for name, sign in {"min": 1, "max": -1}.items():
        for end in ("", ".NaN") if t[0] == "b" else ("", ".NaN", ".ftz"):
            nan = "NaN" in end
            floats(f"{name}{end}.{t}", t, 2, lambda *x, t=one, n=nan, s=sign: ieee.smallest(t, *x, n, s))
        floats(f"{name}.xorsign.abs.{t}", t, 2, lambda *x, t=one, s=sign: sized(t, *x, False, s))
    floats(f"neg.{t}", t, 1, lambda x, t=one: ieee.bits_of(t, -x))
    floats(f"abs.{t}", t, 1, lambda x, t=one: ieee.bits_of(t, abs(x)))


# --- functions that PTX approximates -----------------------------------------------------------------------


def roughly(opcode, type_, compute, tolerance, domain=""):
    """A form whose reference gets and gives numbers; None where PTX promises nothing."""
    one = type_.removesuffix("x2")

    def of_numbers(*bits):
        try:
            return compute(*(ieee.value(one, each) for each in bits))
        except (ValueError, ZeroDivisionError, OverflowError):
            return None

    def of_pairs(*operands):
        return tuple(of_numbers(*each) for each in zip(*(parts(each, 16) for each in operands), strict=True))

    count = len(signature(compute).parameters)
    operands = " ".join([domain or type_] * count)
    form(opcode, f"{operands} -> {type_}", of_pairs if one != type_ else of_numbers, "", tolerance)


def inverse(x):
    return 1 / x if x else math.copysign(math.inf, x)


def power_of_two(x):
    return 0.0 if x < -126 else math.inf if x >= 128 else 2.0**x


def logarithm(x):
    return math.nan if x < 0 else -math.inf if x == 0 else math.log2(x)


def inverse_root(x):
    return math.nan if x < 0 else inverse(x) if x == 0 else 1 / math.sqrt(x)


def square_root(x):
    return math.nan if x < 0 else math.sqrt(x)


for ending in ("", ".ftz"):
    roughly(f"rcp.approx{ending}.f32", "f32", lambda x: inverse(x) if abs(x) >= 2**-126 else None, 2**-22)
    roughly(
        f"rsqrt.approx{ending}.f32", "f32", lambda x: inverse_root(x) if abs(x) >= 2**-126 else None, 2**-21
    )
    roughly(
        f"sqrt.approx{ending}.f32", "f32", lambda x: square_root(x) if abs(x) >= 2**-126 else None, 2**-21
    )
    roughly(f"lg2.approx{ending}.f32", "f32", lambda x: logarithm(x) if abs(x) >= 2**-126 else None, 2**-20)
    roughly(f"ex2.approx{ending}.f32", "f32", power_of_two, 2**-20, "unit")
    roughly(f"sin.approx{ending}.f32", "f32", math.sin, 2**-19, "unit")
    roughly(f"cos.approx{ending}.f32", "f32", math.cos, 2**-19, "unit")
    roughly(f"div.full{ending}.f32", "f32", lambda x, y: x / y, 2**-21, "unit")
roughly("tanh.approx.f32", "f32", math.tanh, 2**-10)
roughly("rsqrt.approx.f64", "f64", lambda x: inverse_root(x) if abs(x) >= 2.0**-1022 else None, 2**-21)
roughly("rcp.approx.ftz.f64", "f64", lambda x: inverse(x) if 2**-1000 < abs(x) < 2**1000 else None, 2**-19)
# our own, of machine code: the argument counts whole turns
roughly("sin.2pi.f32", "f32", lambda x: math.sin(2 * math.pi * x), 2**-19, "turn")
roughly("cos.2pi.f32", "f32", lambda x: math.cos(2 * math.pi * x), 2**-19, "turn")


def rough_quotient(x, y):
    if 2.0**126 < abs(y) < math.inf:
        return math.nan if math.isinf(x) else 0.0
    return x / y if 2.0**-126 <= abs(y) <= 2.0**126 and abs(x) < 2.0**127 * min(abs(y), 1) else None


roughly("div.approx.f32", "f32", rough_quotient, 2**-21)
for t in ("f16", "f16x2", "bf16", "bf16x2"):
    tolerance = 2**-9 if t[0] == "f" else 2**-7
    roughly(f"tanh.approx.{t}", t, math.tanh, tolerance)
    # between the powers that the narrower format holds as ordinary numbers
    roughly(
        f"ex2.approx{'.ftz' if t[0] == 'b' else ''}.{t}",
        t,
        lambda x: 2.0**x if -14 <= x < 15 else math.inf if x > 200 else None,
        tolerance,
    )

# --- conversions -------------------------------------------------------------------------------------------

WIDTHS = [f"{sign}{bits}" for bits in (8, 16, 32, 64) for sign in "su"]
for to in WIDTHS:
    for t in WIDTHS:
        if to != t:
            form(f"cvt.{to}.{t}", f"{t} -> {to}", lambda x: x)
        form(f"cvt.sat.{to}.{t}", f"{t} -> {to}", lambda x, to=to: clamped(to, x))


def from_float(to, from_, mode, bits):
    """An integer of a float; beyond the type it saturates, and a NaN gives 0.

    For a NaN of 64 bits, on either side, an H200 sets the top bit of at least 32.
    """
    x = ieee.value(from_, bits)
    if math.isnan(x):
        return 1 << max(BITS[to], 32) - 1 if max(BITS[to], BITS[from_]) == 64 else 0
    if math.isinf(x):
        return clamped(to, (1 << 70) * (1 if x > 0 else -1))
    return clamped(to, ieee.to_integer(x, mode))


def widths(type_, is_common):
    """The integers that floats become, and that become floats; few of them in less common directions."""
    all_widths = WIDTHS if type_ in ("f32", "f64") else INTEGERS
    return all_widths if is_common else ("s32", "u32", "s64", "u64")


for t in ("f16", "bf16", "f32", "f64"):
    for mode in ("rni", "rzi", "rmi", "rpi"):
        for to in widths(t, mode == "rzi"):
            form(
                f"cvt.{mode}.{to}.{t}", f"{t} -> {to}", lambda x, to=to, t=t, m=mode: from_float(to, t, m, x)
            )

        def whole(x, t=t, mode=mode):
            number = ieee.value(t, x)
            if not math.isfinite(number) or not number:
                return ieee.bits_of(t, number)
            return ieee.bits_of(t, math.copysign(float(ieee.to_integer(number, mode)), number))

        if t != "bf16":
            form(f"cvt.{mode}.{t}.{t}", f"{t} -> {t}", whole)
    for mode in ("rn", "rz", "rm", "rp"):
        for from_ in widths(t, mode == "rn"):
            form(
                f"cvt.{mode}.{t}.{from_}",
                f"{from_} -> {t}",
                lambda x, t=t, m=mode: ieee.rounded(t, Fraction(x), m) if x else 0,
            )


OF_64_BITS = {"f16": 0x7E00, "bf16": 0x7FC0}  # the NaN that an H200 makes of one of 64 bits


def converted(to, from_, mode, opcode):
    def reference(x):
        x = ieee.flushed(from_, x) if ".ftz" in opcode else x
        if from_ == "f64" and to in OF_64_BITS and math.isnan(ieee.value(from_, x)):
            return OF_64_BITS[to]
        return limited(to, ieee.bits_of(to, ieee.value(from_, x), mode), opcode)

    return reference


for mode in ("rn", "rz", "rm", "rp"):
    for to, from_ in (("f32", "f64"), ("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64")):
        if not (from_ == "f64" and to != "f32" and mode != "rn"):
            opcode = f"cvt.{mode}.{to}.{from_}"
            form(opcode, f"{from_} -> {to}", converted(to, from_, mode, opcode))
for to, from_, middle in (
    ("f64", "f32", ""),
    ("f32", "f16", ""),
    ("f64", "f16", ""),
    ("f32", "bf16", ""),
    ("f64", "bf16", ""),
    ("f32", "f32", ".sat"),
    ("f32", "f64", ".rn.sat"),
    ("f32", "f32", ".ftz"),
    ("f16", "f32", ".rn.sat"),
    ("f16", "f32", ".rn.relu"),
    ("bf16", "f32", ".rn.relu"),
):
    opcode = f"cvt{middle}.{to}.{from_}"
    form(opcode, f"{from_} -> {to}", converted(to, from_, "rn", opcode))


def finite(type_, bits):
    form_ = ieee.FORMATS[type_]
    is_infinite = bits & form_.sign - 1 == form_.infinity
    return bits & form_.sign | form_.infinity - 1 if is_infinite else bits


for t in ("f16x2", "bf16x2"):
    one = t.removesuffix("x2")
    for middle in (".rn", ".rz", ".rn.relu", ".rz.relu", ".rn.satfinite"):

        def both(x, y, one=one, opcode=middle):
            each = [
                limited(one, ieee.bits_of(one, ieee.value("f32", v), opcode[1:3]), opcode) for v in (y, x)
            ]
            return packed([finite(one, v) if "satfinite" in opcode else v for v in each], 16)

        form(f"cvt{middle}.{t}.f32", f"f32 f32 -> {t}", both)


def to_tf32(mode, opcode, bits):
    """A float32 with 10 bits of fraction; of an infinity and a NaN, the bits that the hardware gives."""
    x = ieee.value("f32", bits)
    if math.isnan(x):
        return 0x7FFFFFFF
    if ".relu" in opcode and x <= 0:
        return 0
    if not x:
        return bits
    negative, size = bits & 0x80000000, bits & 0x7FFFFFFF
    rest, below = size & 0x1FFF, size >> 13
    up = {"rn": rest > 0x1000 or (rest == 0x1000 and below & 1), "rna": rest >= 0x1000, "rz": False}[mode]
    if "satfinite" in opcode and below + up >= 0x7F800000 >> 13:
        return negative | 0x7F7FE000
    return negative | (below + up if math.isfinite(x) else below) << 13


for middle in (
    ".rna",
    ".rn",
    ".rz",
    ".rn.relu",
    ".rz.relu",
    ".rna.satfinite",
    ".rn.satfinite",
    ".rz.satfinite",
):
    mode = middle.split(".")[1]
    form(f"cvt{middle}.tf32.f32", "f32 -> b32", lambda x, o=middle, m=mode: to_tf32(m, o, x))
for to in ("s16", "u16"):
    form(
        f"cvt.pack.sat.{to}.s32",
        "s32 s32 -> b32",
        lambda x, y, to=to: packed([clamped(to, y), clamped(to, x)], 16),
    )
for to in ("s8", "u8"):
    form(
        f"cvt.pack.sat.{to}.s32.b32",
        "s32 s32 b32 -> b32",
        lambda x, y, c, to=to: packed([clamped(to, y), clamped(to, x), c & 255, c >> 8], 8),
    )


FORMS.sort(key=lambda each: each.family)
