"""Rules for floating point: sums and products, comparisons, conversions, special functions.

FTZ flushes subnormal numbers. The results of MUFU are approximate on a GPU, and exactly rounded here.
"""

from __future__ import annotations

from labkit.simt.sass.lift.integers import compare
from labkit.simt.sass.lift.table import Lift, Refused, rule
from labkit.simt.sass.operands import float_bits

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
    "MIN",
    "MAX",
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
    if found in ("", "MIN", "MAX"):
        raise Refused
    return found.lower()


@rule("FSETP")
def _compare(x: Lift) -> None:
    flush = ".ftz" if "FTZ" in x.parts else ""
    compare(x, x.let(f"setp.{_order(x)}{flush}.f32 {x.real(2)}, {x.real(3)}", "q"))


@rule("DSETP")
def _compare_doubles(x: Lift) -> None:
    compare(x, x.let(f"setp.{_order(x)}.f64 {x.double(2)}, {x.double(3)}", "q"))


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
    if what.parts:
        half = {"B0": 0, "B1": 8, "B2": 16, "B3": 24, "H0": 0, "H1": 16, "H0_H0": 0, "H1_H1": 16}[
            what.parts[0]
        ]
        return x.let(f"shr.u32 {x.plain(what)}, {half}") if half else x.plain(what)
    return x.value(1)


def _convert(x: Lift, to: str, source: str, how: str) -> None:
    value = _source(x, source)
    bits = _bits(source)
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
    if source == "F16":
        raise Refused
    how = next((_INTEGER_ROUNDING[part] for part in x.parts if part in _INTEGER_ROUNDING), ".rni")
    how += ".ftz" if "FTZ" in x.parts else ""
    _convert(x, to, source, how)


@rule("I2F I2FP")
def _to_float(x: Lift) -> None:
    types = _types(x)
    to = next((kind for kind in types if kind[0] == "F"), "F32")
    source = next((kind for kind in types if kind[0] in "US"), "S32")
    if to == "F16":
        raise Refused
    _convert(x, to, source, next((_ROUNDING[part] for part in x.parts if part in _ROUNDING), ".rn"))


@rule("F2F")
def _to_other_float(x: Lift) -> None:
    to, source = _types(x)
    if "16" in to + source:
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
    if "PACK_AB" not in x.parts or "F32" not in x.parts or set(x.parts) & {"RELU", "SATFINITE", "E4M3"}:
        raise Refused
    x.to(0, f"cvt.rn.{kind}.f32 {x.real(1)}, {x.real(2)}")


def _halves(x: Lift, index: int, kind: str) -> str:
    """Return a pair of halves: as they are, or one of them twice."""
    what = x.at(index)
    if what.text and not what.register:
        raise Refused
    text = x.plain(what)
    if what.parts[:1] == ("H0_H0",):
        text = x.let(f"prmt.b32 {text}, 0, 0x1010")
    elif what.parts[:1] == ("H1_H1",):
        text = x.let(f"prmt.b32 {text}, 0, 0x3232")
    elif what.parts:
        raise Refused
    if what.absolute:
        text = x.let(f"and.b32 {text}, 0x7fff7fff")
    return x.let(f"xor.b32 {text}, 0x80008000") if what.sign == "-" else text


def _of_halves(x: Lift, name: str, count: int) -> None:
    if set(x.parts) - {"BF16_V2", "MMA"}:
        raise Refused
    kind = "bf16x2" if "BF16_V2" in x.parts else "f16x2"
    x.to(0, f"{name}.{kind} {', '.join(_halves(x, i, kind) for i in range(1, count + 1))}")


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
    """Add halves, or widen one to float: the assembler writes that as a sum with zero."""
    if "F32" not in x.parts:
        _of_halves(x, "add.rn", 2)
        return
    if not x.at(1).is_zero:
        raise Refused
    what = x.at(2)
    if what.sign or what.absolute or "BF16" in " ".join(x.parts):
        raise Refused
    value = x.plain(what)
    if what.parts and what.parts[0].startswith("H1"):
        value = x.let(f"shr.u32 {value}, 16")
    x.to(0, f"cvt.f32.f16 {value}")
