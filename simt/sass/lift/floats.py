"""Rules for floating point: sums and products, comparisons, conversions, special functions.

FTZ flushes subnormal numbers. The results of MUFU are approximate on a GPU, and exactly rounded here.
"""

from __future__ import annotations

from simt.sass.lift.integers import combined, compare
from simt.sass.lift.table import Lift, Refused, rule
from simt.sass.operands import float_bits

_ROUNDING = {"RM": ".rm", "RP": ".rp", "RZ": ".rz"}
_INTEGER_ROUNDING = {"TRUNC": ".rzi", "FLOOR": ".rmi", "CEIL": ".rpi"}
_ORDERS = (
    "LT",
    "LE",
    "GT",
    "GE",
    "EQ",
    "NE",
    "LTU",
    "LEU",
    "GTU",
    "GEU",
    "EQU",
    "NEU",
    "NUM",
    "NAN",
)
_FUNCTIONS = {"RCP": "rcp", "RSQ": "rsqrt", "SQRT": "sqrt", "SIN": "sin", "COS": "cos", "EX2": "ex2"}
_FUNCTIONS |= {"LG2": "lg2", "TANH": "tanh"}
_INTEGERS = ("U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64")


def _modes(x: Lift) -> str:
    """Return how a sum or product rounds, flushes and saturates, as PTX writes it."""
    rounding = next((_ROUNDING[part] for part in x.parts if part in _ROUNDING), ".rn")
    return rounding + (".ftz" if "FTZ" in x.parts else "") + (".sat" if "SAT" in x.parts else "")


@rule("FADD")
def _add(x: Lift) -> None:
    x.to(0, f"add{_modes(x)}.f32 {x.real(1)}, {x.real(2)}")


@rule("FMUL")
def _multiply(x: Lift) -> None:
    if any(part[0] in "DM" and part[1:].isdigit() for part in x.parts):
        raise Refused  # a factor of two on the way
    x.to(0, f"mul{_modes(x)}.f32 {x.real(1)}, {x.real(2)}")


@rule("FFMA")
def _multiply_add(x: Lift) -> None:
    x.to(0, f"fma{_modes(x)}.f32 {x.real(1)}, {x.real(2)}, {x.real(3)}")


@rule("DADD")
def _add_doubles(x: Lift) -> None:
    x.pair_to(0, x.let(f"add{_modes(x)}.f64 {x.double(1)}, {x.double(2)}", "g"))


@rule("DMUL")
def _multiply_doubles(x: Lift) -> None:
    x.pair_to(0, x.let(f"mul{_modes(x)}.f64 {x.double(1)}, {x.double(2)}", "g"))


@rule("DFMA")
def _multiply_add_doubles(x: Lift) -> None:
    x.pair_to(0, x.let(f"fma{_modes(x)}.f64 {x.double(1)}, {x.double(2)}, {x.double(3)}", "g"))


@rule("FMNMX FMNMX3")
def _least_or_most(x: Lift) -> None:
    flags = "".join(f".{part.lower()}" for part in ("FTZ", "NAN") if part in x.parts)
    predicates = x.predicates()
    values = [x.real(i) for i in range(1, len(x.operands)) if i not in predicates]
    chosen = x.predicate(predicates[-1])
    results = []
    for name in ("min", "max"):
        if chosen == {"min": "%PF", "max": "%PT"}[name]:
            continue
        text = values[0]
        for value in values[1:]:
            text = x.let(f"{name}{flags}.f32 {text}, {value}", "f")
        results.append(text)
    if len(results) == 1:
        x.to(0, f"mov.f32 {results[0]}")
    else:
        x.to(0, f"selp.f32 {results[0]}, {results[1]}, {chosen}")


def _order(x: Lift) -> str:
    found = next((part for part in x.parts if part in _ORDERS), "")
    if not found:
        raise Refused
    return found.lower()


@rule("FSETP")
def _compare(x: Lift) -> None:
    flush = ".ftz" if "FTZ" in x.parts else ""
    compare(x, x.let(f"setp.{_order(x)}{flush}.f32 {x.real(2)}, {x.real(3)}", "q"))


@rule("DSETP")
def _compare_doubles(x: Lift) -> None:
    if {"MIN", "MAX"} & set(x.parts):
        _choose_double(x)
    else:
        compare(x, x.let(f"setp.{_order(x)}.f64 {x.double(2)}, {x.double(3)}", "q"))


def _choose_double(x: Lift) -> None:
    """Write the two predicates that fmin and fmax are made with.

    The first says whether the first number is the one: a NaN is not, if the other is a number. The second
    says that both are NaN.
    """
    if x.predicate(4) != "%PT":
        raise Refused
    a, b = x.double(2), x.double(3)
    is_nan = [x.let(f"setp.nan.f64 {each}, {each}", "q") for each in (a, b)]
    order = "lt" if "MIN" in x.parts else "gt"
    first = x.let(f"setp.{order}u.f64 {a}, {b}", "q")  # or one of them is NaN
    x.predicate_to(0, x.let(f"and.pred {first}, {x.let(f'not.pred {is_nan[0]}', 'q')}", "q"))
    x.predicate_to(1, x.let(f"and.pred {is_nan[0]}, {is_nan[1]}", "q"))


@rule("FSEL")
def _select(x: Lift) -> None:
    x.to(0, f"selp.f32 {x.real(1)}, {x.real(2)}, {x.predicate(3)}")


@rule("FCHK")
def _check_quotient(x: Lift) -> None:
    """Say whether a quotient needs the slow path: exponents at the ends of the range, or far apart."""
    exponents = []
    for index in (1, 2):
        text = x.real(index)
        if text.startswith("0f"):
            text = "0x" + text[2:]
        exponents.append(x.let(f"bfe.u32 {text}, 23, 8"))
    above = x.let(f"sub.s32 {exponents[0]}, {exponents[1]}")
    tests = [x.let(f"setp.ge.u32 {x.let(f'sub.u32 {e}, 1')}, 253", "q") for e in exponents]
    low = x.let(f"setp.lt.u32 {exponents[0]}, 25", "q")
    far = x.let(f"setp.gt.u32 {x.let(f'add.s32 {above}, 125')}, 250", "q")
    found = tests[0]
    for test in (tests[1], low, far):
        found = x.let(f"or.pred {found}, {test}", "q")
    x.predicate_to(0, found)


@rule("MUFU")
def _special_function(x: Lift) -> None:
    name = x.parts[0]
    if name in ("RCP64H", "RSQ64H"):  # of a double's high word
        high = x.value(1)
        number = x.let(f"mov.b64 {{0, {high}}}", "d")
        opcode = "rcp.approx.ftz.f64" if name == "RCP64H" else "rsqrt.approx.ftz.f64"
        result = x.let(f"{opcode} {number}", "g")
        x.to(0, f"cvt.u32.u64 {x.let(f'shr.u64 {result}, 32', 'd')}")
        return
    value = x.real(1)
    if name in ("SIN", "COS"):  # of turns
        value = x.let(f"mul.rn.f32 {value}, 0f{float_bits(6.283185307179586, 'f'):08X}", "f")
    if name not in _FUNCTIONS or "F16" in x.parts:
        raise Refused
    x.to(0, f"{_FUNCTIONS[name]}.approx.f32 {value}")


def _types(x: Lift, *defaults: str) -> list[str]:
    """Return the types that the opcode names, in order, without what else it says."""
    found = [part for part in x.parts if part in (*_INTEGERS, "F16", "F32", "F64", "BF16")]
    return found or list(defaults)


def _bits(kind: str) -> int:
    return int(kind.lstrip("USBF"))


def _source(x: Lift, kind: str) -> str:
    """Return the operand of a conversion: an integer or a float of this type."""
    what = x.at(1)
    if kind in ("F64",):
        return x.double(1)
    if kind == "F32":
        return x.real(1)
    if _bits(kind) == 64:
        return x.wide(1)
    if kind == "F16":
        text = x.plain(what)
        text = x.let(f"shr.u32 {text}, 16") if what.parts[:1] in (("H1",), ("H1_H1",)) else text
        text = x.let(f"cvt.f32.f16 {text}", "f")
        text = x.let(f"abs.f32 {text}", "f") if what.absolute else text
        return x.let(f"neg.f32 {text}", "f") if what.sign == "-" else text
    if what.parts:
        half = {"B0": 0, "B1": 8, "B2": 16, "B3": 24, "H0": 0, "H1": 16, "H0_H0": 0, "H1_H1": 16}[
            what.parts[0]
        ]
        return x.let(f"shr.u32 {x.plain(what)}, {half}") if half else x.plain(what)
    return x.value(1)


def _convert(x: Lift, to: str, source: str, how: str) -> None:
    value = _source(x, source)
    bits = _bits(source)
    source = "F32" if source == "F16" else source  # made wider
    if source[0] in "US" and bits < 32:
        value = x.let(f"bfe.{'u' if source[0] == 'U' else 's'}32 {value}, 0, {bits}")
        source = f"{source[0]}32"
    kind = "g" if to == "F64" else "f" if to == "F32" else "d" if _bits(to) == 64 else "t"
    result = x.let(f"cvt{how}.{to.lower()}.{source.lower()} {value}", kind)
    if _bits(to) == 64:
        x.pair_to(0, result)
    else:
        x.to(0, f"mov.b32 {result}")


@rule("F2I")
def _to_integer(x: Lift) -> None:
    types = _types(x)
    to = next((kind for kind in types if kind[0] in "US"), "S32")
    source = next((kind for kind in types if kind[0] == "F"), "F32")
    how = next((_INTEGER_ROUNDING[part] for part in x.parts if part in _INTEGER_ROUNDING), ".rni")
    how += ".ftz" if "FTZ" in x.parts else ""
    _convert(x, to, source, how)


@rule("I2F I2FP")
def _to_float(x: Lift) -> None:
    types = _types(x)
    to = next((kind for kind in types if kind[0] == "F"), "F32")
    source = next((kind for kind in types if kind[0] in "US"), "S32")
    if to == "F16":
        _to_half(x, x.let(f"cvt.rn.f32.{source.lower()} {_source(x, source)}", "f"))
        return
    _convert(x, to, source, next((_ROUNDING[part] for part in x.parts if part in _ROUNDING), ".rn"))


@rule("F2F")
def _to_other_float(x: Lift) -> None:
    to, source = _types(x)
    if to in ("F16", "BF16") and source == "F32" and not _ROUNDING.keys() & set(x.parts):
        _to_half(x, x.real(1))
        return
    if "16" in to or "BF16" in source:
        raise Refused
    rounding = next((_ROUNDING[part] for part in x.parts if part in _ROUNDING), ".rn")
    _convert(x, to, source, "" if to == "F64" else rounding)


@rule("FRND")
def _round(x: Lift) -> None:
    how = next((_INTEGER_ROUNDING[part] for part in x.parts if part in _INTEGER_ROUNDING), ".rni")
    if "F16" in x.parts:
        raise Refused
    kind = "F64" if "F64" in x.parts else "F32"
    _convert(x, kind, kind, how + (".ftz" if "FTZ" in x.parts else ""))


@rule("F2FP")
def _packed_halves(x: Lift) -> None:
    kind = "bf16x2" if "BF16" in x.parts else "f16x2"
    if set(x.parts) - {"F16", "BF16", "F32", "PACK_AB"} or "PACK_AB" not in x.parts:
        raise Refused
    x.to(0, f"cvt.rn.{kind}.f32 {x.real(1)}, {x.real(2)}")


def _to_half(x: Lift, value: str) -> None:
    """Round a float to a half, in the lower half of the result."""
    kind = "bf16x2" if "BF16" in x.parts else "f16x2"
    x.to(0, f"cvt.rn.{kind}.f32 0f00000000, {value}")


def _halves(x: Lift, index: int) -> tuple[str, int]:
    """Return a pair of halves, as they are or one of them twice, and the index of the next operand.

    Numbers take two operands: the upper half and the lower one.
    """
    what = x.at(index)
    if not what.register and what.bank < 0:
        is_short = "BF16_V2" in x.parts
        bits = [float_bits(x.at(i).float_value, "f" if is_short else "e") for i in (index, index + 1)]
        high, low = (each >> 16 for each in bits) if is_short else bits
        return hex(high << 16 | low), index + 2
    text = x.plain(what)
    if what.parts[:1] == ("H0_H0",):
        text = x.let(f"prmt.b32 {text}, 0, 0x1010")
    elif what.parts[:1] == ("H1_H1",):
        text = x.let(f"prmt.b32 {text}, 0, 0x3232")
    elif what.parts:
        raise Refused
    if what.absolute:
        text = x.let(f"and.b32 {text}, 0x7fff7fff")
    return x.let(f"xor.b32 {text}, 0x80008000") if what.sign == "-" else text, index + 1


def _pairs(x: Lift, index: int, count: int) -> tuple[list[str], int]:
    """Return this many pairs of halves from `index` on, and the index of the next operand."""
    found = []
    for _ in range(count):
        text, index = _halves(x, index)
        found.append(text)
    return found, index


def _kind_of_halves(x: Lift, *known: str) -> str:
    """Return the PTX type of pairs of halves. Raises Refused for a modifier that is not in `known`."""
    if set(x.parts) - {"BF16_V2", "MMA", *known}:
        raise Refused
    return "bf16x2" if "BF16_V2" in x.parts else "f16x2"


def _of_halves(x: Lift, name: str, count: int) -> None:
    kind = _kind_of_halves(x)
    texts, _ = _pairs(x, 1, count)
    x.to(0, f"{name}.{kind} {', '.join(texts)}")


def _compared_halves(x: Lift, first: int) -> tuple[list[str], int]:
    """Compare two pairs of halves: return the predicates of the lower and the upper halves."""
    kind = _kind_of_halves(x, "AND", "OR", "XOR", "BF", *_ORDERS)
    (a, b), following = _pairs(x, first, 2)
    low, high = x.temporary("q"), x.temporary("q")
    x.emit(f"setp.{_order(x)}.{kind} {low}|{high}, {a}, {b}")
    how = next((part for part in x.parts if part in ("AND", "OR", "XOR")), "AND")
    return [combined(x, how, each, following) for each in (low, high)], following


@rule("HSETP2")
def _compare_halves(x: Lift) -> None:
    for index, value in enumerate(_compared_halves(x, 2)[0]):
        x.predicate_to(index, value)


@rule("HSET2")
def _compare_halves_to_words(x: Lift) -> None:
    """Write 1.0 (.BF) or all ones where a comparison of halves holds, else 0."""
    yes = 0xFFFF if "BF" not in x.parts else 0x3F80 if "BF16_V2" in x.parts else 0x3C00
    (low, high), _ = _compared_halves(x, 1)
    words = [x.let(f"selp.b32 {yes << shift}, 0, {each}") for shift, each in ((0, low), (16, high))]
    x.to(0, f"or.b32 {words[0]}, {words[1]}")


@rule("HMNMX2 VHMNMX")
def _least_or_most_halves(x: Lift) -> None:
    kind = _kind_of_halves(x, "NAN", "F16_V2")
    texts, index = _pairs(x, 1, 3 if x.op == "VHMNMX" else 2)
    how = {"%PT": "min", "%PF": "max"}.get(x.predicate(index))
    if how is None:
        raise Refused
    text = texts[0]
    for each in texts[1:]:
        text = x.let(f"{how}{'.NaN' if 'NAN' in x.parts else ''}.{kind} {text}, {each}")
    x.to(0, f"mov.b32 {text}")


@rule("HMUL2")
def _multiply_halves(x: Lift) -> None:
    _of_halves(x, "mul.rn", 2)


@rule("HFMA2")
def _multiply_add_halves(x: Lift) -> None:
    """Multiply and add halves. As 0 · 0 + c it is how the assembler makes some constants."""
    if x.at(1).is_zero and x.at(2).is_zero and not x.at(3).register:
        high, low = (0 if x.at(i).is_zero else float_bits(x.at(i).float_value, "e") for i in (3, 4))
        x.to(0, f"mov.b32 {hex(high << 16 | low)}")
    else:
        _of_halves(x, "fma.rn", 3)


@rule("HADD2")
def _add_halves(x: Lift) -> None:
    """Add halves, widen one to float, or narrow a float: the assembler writes both as a sum with zero."""
    if "F32" in x.at(1).parts and x.at(2).is_zero:
        _to_half(x, x.real(1))
        return
    if "F32" not in x.parts:
        _of_halves(x, "add.rn", 2)
        return
    zero, other = (1, 2) if x.at(1).is_zero else (2, 1)
    what = x.at(other)
    if not x.at(zero).is_zero or what.sign or what.absolute or "BF16" in " ".join(x.parts):
        raise Refused
    value = x.plain(what)
    if what.parts and what.parts[0].startswith("H1"):
        value = x.let(f"shr.u32 {value}, 16")
    x.to(0, f"cvt.f32.f16 {value}")
