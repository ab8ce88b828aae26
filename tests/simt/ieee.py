"""Floating-point numbers of every width by exact rational arithmetic: the reference for PTX's instructions.

Operands and results are bits. A format has a number of digits and the exponent of its lowest digit.
"""

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """An IEEE format of `bits` bits with `digits` binary digits, the last of which is at least 2^lowest."""

    bits: int
    digits: int
    lowest: int

    @property
    def infinity(self):
        return (1 << self.bits - 1) - (1 << self.digits - 1)

    @property
    def sign(self):
        return 1 << self.bits - 1

    @property
    def nan(self):
        """The bits of a NaN: of the 16-bit formats, the one that the hardware gives."""
        return self.sign - 1 if self.bits == 16 else self.infinity | 1 << self.digits - 2

    @property
    def least_normal(self):
        return math.ldexp(1.0, self.lowest + self.digits - 1)


FORMATS = {
    "f16": Format(16, 11, -24),
    "bf16": Format(16, 8, -133),
    "f32": Format(32, 24, -149),
    "f64": Format(64, 53, -1074),
}


def value(type_, bits):
    """The number that the bits stand for; every format fits into Python's."""
    form = FORMATS[type_]
    size, sign = bits & form.sign - 1, -1.0 if bits & form.sign else 1.0
    if size > form.infinity:
        return math.copysign(math.nan, sign)
    if size == form.infinity:
        return sign * math.inf
    exponent, fraction = divmod(size, 1 << form.digits - 1)
    whole = fraction + (1 << form.digits - 1 if exponent else 0)
    return sign * math.ldexp(float(whole), form.lowest + max(exponent, 1) - 1)


def bits_of(type_, number, mode="rn"):
    """The bits of a number, a zero, an infinity or a NaN."""
    form = FORMATS[type_]
    if math.isnan(number):
        return form.nan
    sign = form.sign if math.copysign(1.0, number) < 0 else 0
    if math.isinf(number) or not number:
        return sign | (form.infinity if number else 0)
    return rounded(type_, Fraction(number), mode)


def rounded(type_, exact, mode="rn"):
    """The bits of an exact number other than 0, rounded once: rn, rna, rz, rm or rp."""
    form = FORMATS[type_]
    size, negative = abs(exact), exact < 0
    exponent = max(form.lowest, _magnitude(size) - form.digits)
    steps = size / Fraction(2) ** exponent
    below = steps.numerator // steps.denominator
    rest, half = steps - below, Fraction(1, 2)
    up = {
        "rn": rest > half or (rest == half and below % 2 == 1),
        "rna": rest >= half,
        "rz": False,
        "rm": rest > 0 and negative,
        "rp": rest > 0 and not negative,
    }[mode]
    bits = (exponent - form.lowest) * (1 << form.digits - 1) + below + up
    stays = {"rz": True, "rm": not negative, "rp": negative}.get(mode, False)  # below infinity
    return (form.sign if negative else 0) | min(bits, form.infinity - stays)


def _magnitude(size):
    """The least n with size < 2^n."""
    n = size.numerator.bit_length() - size.denominator.bit_length()
    return n + (size >= Fraction(2) ** n)


def total(type_, x, y, mode="rn"):
    """Return x + y."""
    return fused(type_, 1.0, x, y, mode)


def fused(type_, x, y, z, mode="rn"):
    """Return x y + z, rounded once."""
    if not all(map(math.isfinite, (x, y, z))):
        return bits_of(type_, z if math.isfinite(x) and math.isfinite(y) else x * y + z)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact:
        return rounded(type_, exact, mode)
    negative = math.copysign(1.0, x) * math.copysign(1.0, y) < 0, math.copysign(1.0, z) < 0
    if Fraction(z) or negative[0] != negative[1]:
        return FORMATS[type_].sign if mode == "rm" else 0
    return FORMATS[type_].sign if negative[0] else 0


def product(type_, x, y, mode="rn"):
    """Return x y."""
    if x and y and math.isfinite(x) and math.isfinite(y):
        return rounded(type_, Fraction(x) * Fraction(y), mode)
    return bits_of(type_, x * y)


def quotient(type_, x, y, mode="rn"):
    """Return x / y."""
    sign = math.copysign(1.0, x) * math.copysign(1.0, y)
    if math.isnan(x) or math.isnan(y) or (x == y == 0) or (math.isinf(x) and math.isinf(y)):
        return FORMATS[type_].nan
    if math.isinf(x) or y == 0:
        return bits_of(type_, math.copysign(math.inf, sign))
    if x == 0 or math.isinf(y):
        return bits_of(type_, math.copysign(0.0, sign))
    return rounded(type_, Fraction(x) / Fraction(y), mode)


def root(type_, x, mode="rn"):
    """The square root of x."""
    if x == 0 or math.isnan(x) or x == math.inf:
        return bits_of(type_, x)
    if x < 0:
        return FORMATS[type_].nan
    scale = 400  # the integer root has far more digits than any format, and its last one tells of the rest
    exact = Fraction(x)
    shift = 2 * scale + 2 * 1100
    whole = exact.numerator * (1 << shift) // exact.denominator
    near = math.isqrt(whole)
    inexact = near * near * exact.denominator != exact.numerator << shift
    return rounded(type_, Fraction(2 * near + inexact, 1 << shift // 2 + 1), mode)


def flushed(type_, bits):
    """The bits, with a subnormal number as a zero of its sign."""
    form = FORMATS[type_]
    return bits & form.sign if abs(value(type_, bits)) < form.least_normal else bits


def smallest(type_, x, y, nan=False, sign=1):
    """The lesser of two numbers, or the greater if `sign` is -1; -0 is below +0."""
    if math.isnan(x) or math.isnan(y):
        both = math.isnan(x) and math.isnan(y)
        return FORMATS[type_].nan if nan or both else bits_of(type_, y if math.isnan(x) else x)
    ordered = sorted((x, y), key=lambda each: (each, math.copysign(1.0, each)))
    return bits_of(type_, ordered[0 if sign > 0 else 1])


def to_integer(x, mode):
    """A finite number as an integer: rzi, rni, rmi or rpi."""
    exact = Fraction(x)
    if mode == "rni":
        return round(exact)
    return {"rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode](exact)
