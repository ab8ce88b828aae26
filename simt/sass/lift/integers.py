"""Rules for integers, bits, predicates and moves.

`.X` forms add a carry, a predicate. A funnel shift takes 64 bits as {c:a}. Where a result is 64 bits wide it
is a pair of registers.
"""

from __future__ import annotations

from simt.sass.lift.table import Lift, Refused, rule

_SPECIAL = {
    "SR_LANEID": "%laneid",
    "SR_EQMASK": "%lanemask_eq",
    "SR_LTMASK": "%lanemask_lt",
    "SR_LEMASK": "%lanemask_le",
    "SR_GTMASK": "%lanemask_gt",
    "SR_GEMASK": "%lanemask_ge",
    "SR_VIRTUALSMID": "%smid",
    "SR_SMEMSZ": "%total_smem_size",
    "SR_CLOCKLO": "%clock",
    "SR_CLOCKHI": "%clock_hi",
    "SR_GLOBALTIMERLO": "%globaltimer_lo",
    "SR_GLOBALTIMERHI": "%globaltimer_hi",
} | {f"SR_{name.upper()}.{axis.upper()}": f"%{name}.{axis}" for name in ("tid", "ctaid") for axis in "xyz"}
_ZERO = ("SRZ", "SR_CgaCtaId", "SR_CgaSize")


def _sum(x: Lift, terms: list[int]) -> str:
    """Write the sum of operands, 32 bits wide."""
    total = ""
    minus = []
    for index in terms:
        what = x.at(index)
        if what.is_zero and what.sign != "~":
            continue
        if what.sign == "-" and not what.absolute:
            minus.append(x.plain(what))
        else:
            text = x.value(index)
            total = x.let(f"add.s32 {total}, {text}") if total else text
    for text in minus:
        total = x.let(f"sub.s32 {total or '0'}, {text}")
    return total or "0"


def _extended(x: Lift, index: int) -> tuple[str, int]:
    """Return an operand as 64 bits without its sign, and what its negation adds."""
    what = x.at(index)
    text = x.plain(what)
    if what.sign in ("-", "~"):
        text = "0xffffffff" if text == "0" else x.let(f"not.b32 {text}")
    return _wide(x, text), int(what.sign == "-")


def _wide(x: Lift, text: str) -> str:
    return str(int(text, 0) & 0xFFFFFFFF) if text[0] != "%" else x.let(f"cvt.u64.u32 {text}", "d")


def _with_carries(x: Lift, parts: list[str], plus: int, ins: list[int], outs: list[int], to: int) -> None:
    """Write the sum of 64-bit values below 2^32, with carries in and out."""
    total = str(plus)
    for part in parts:
        total = x.let(f"add.u64 {total}, {part}", "d") if part != "0" else total
    for index in ins:
        bit = x.let(f"selp.u64 1, 0, {x.predicate(index)}", "d")
        total = x.let(f"add.u64 {total}, {bit}", "d")
    if total[0] != "%":
        total = x.let(f"mov.u64 {total}", "d")
    carry = x.let(f"shr.u64 {total}, 32", "d")
    low = x.let(f"cvt.u32.u64 {total}")
    for number, index in enumerate(outs):
        x.predicate_to(index, x.let(f"setp.gt.u64 {carry}, {number}", "q"))
    x.to(to, f"mov.b32 {low}")


@rule("IADD3 UIADD3 IADD UIADD VIADD")
def _add(x: Lift) -> None:
    predicates = x.predicates()
    terms = [i for i in range(1, len(x.operands)) if i not in predicates]
    if "64" in x.parts:
        if any(x.result(i) != "_" for i in predicates if i < terms[0]) or "X" in x.parts:
            raise Refused
        total = x.wide(terms[0])
        for index in terms[1:]:
            total = x.let(f"add.s64 {total}, {x.wide(index)}", "d")
        x.pair_to(0, total)
        return
    outs = [i for i in predicates if i < terms[0]]
    ins = [i for i in predicates if i > terms[-1] and x.predicate(i) != "%PF"]
    if not ins and all(x.result(i) == "_" for i in outs):
        x.to(0, f"mov.b32 {_sum(x, terms)}")
        return
    values = [_extended(x, i) for i in terms]
    _with_carries(x, [text for text, _ in values], sum(plus for _, plus in values), ins, outs, 0)


@rule("IMAD UIMAD")
def _multiply_add(x: Lift) -> None:
    predicates = x.predicates()
    terms = [i for i in range(1, len(x.operands)) if i not in predicates]
    a, b, c = terms
    signed = "u" if "U32" in x.parts else "s"
    if "WIDE" in x.parts or "HI" in x.parts:
        product = x.let(f"mul.wide.{signed}32 {x.value(a)}, {x.value(b)}", "d")
        added = x.wide(c)
        total = x.let(f"add.s64 {product}, {added}", "d")
        carries = [x.let(f"setp.lt.u64 {total}, {product}", "q")]
        for index in (i for i in predicates if i > c and x.predicate(i) != "%PF"):
            bit = x.let(f"selp.u64 1, 0, {x.predicate(index)}", "d")
            more = x.let(f"add.s64 {total}, {bit}", "d")
            carries.append(x.let(f"setp.lt.u64 {more}, {total}", "q"))
            total = more
        if any(x.result(i) != "_" for i in predicates if i < a):
            carry = carries[0] if len(carries) == 1 else x.let(f"or.pred {carries[0]}, {carries[1]}", "q")
            x.predicate_to(predicates[0], carry)
        if "WIDE" in x.parts:
            x.pair_to(0, total)
        else:
            x.to(0, f"cvt.u32.u64 {x.let(f'shr.u64 {total}, 32', 'd')}")
        return
    if x.at(a).is_zero or x.at(b).is_zero:
        product = ""
    elif x.at(b).number == 1:
        product = x.value(a)
    else:
        product = x.let(f"mul.lo.s32 {x.value(a)}, {x.value(b)}")
    ins = [i for i in predicates if i > c and x.predicate(i) != "%PF"]
    outs = [i for i in predicates if i < a]
    if ins or any(x.result(i) != "_" for i in outs):
        value, plus = _extended(x, c)
        _with_carries(x, [_wide(x, product) if product else "0", value], plus, ins, outs, 0)
        return
    if not product:
        x.to(0, f"mov.b32 {x.value(c)}")
    elif x.at(c).is_zero:
        x.to(0, f"mov.b32 {product}")
    elif x.at(c).sign == "-":
        x.to(0, f"sub.s32 {product}, {x.plain(x.at(c))}")
    else:
        x.to(0, f"add.s32 {product}, {x.value(c)}")


@rule("LEA ULEA")
def _load_effective_address(x: Lift) -> None:
    predicates = x.predicates()
    terms = [i for i in range(1, len(x.operands)) if i not in predicates]
    a, b, shift = terms[0], terms[1], terms[-1]
    by = x.at(shift).number
    if by is None:
        raise Refused
    outs = [i for i in predicates if i < a]
    ins = [i for i in predicates if i > b and x.predicate(i) != "%PF"]
    if "HI" in x.parts:
        low = x.value(a)
        if "SX32" in x.parts:
            shifted = x.let(f"shr.s32 {low}, {32 - by}")
        else:
            shifted = x.let(f"shf.l.clamp.b32 {low}, {x.value(terms[2])}, {by}")
    else:
        shifted = x.let(f"shl.b32 {x.value(a)}, {by}")
    if not ins and all(x.result(i) == "_" for i in outs):
        other = x.at(b)
        if other.sign == "-":
            x.to(0, f"sub.s32 {shifted}, {x.plain(other)}")
        else:
            x.to(0, f"add.s32 {shifted}, {x.value(b)}")
        return
    value, plus = _extended(x, b)
    _with_carries(x, [_wide(x, shifted), value], plus, ins, outs, 0)


@rule("SHF USHF")
def _shift(x: Lift) -> None:
    """Shift {c:a}, 64 bits, and take the low or (.HI) the high word."""
    low, by, high = x.value(1), x.value(2), x.value(3)
    wraps, is_high = "W" in x.parts, "HI" in x.parts
    signed = "s" if "S32" in x.parts or "S64" in x.parts else "u"
    if wraps:
        by = x.let(f"and.b32 {by}, 31")
    if "L" in x.parts:
        if not is_high:
            x.to(0, f"shl.b32 {low}, {by}")
        elif low == "0":
            x.to(0, f"shl.b32 {high}, {by}")
        elif "U64" in x.parts or "S64" in x.parts:
            x.to(0, f"mov.b32 {_word(x, _shifted(x, 'shl.b64', low, high, by), 1)}")
        else:
            x.to(0, f"shf.l.clamp.b32 {low}, {high}, {by}")
    elif is_high:
        x.to(0, f"shr.{signed}32 {high}, {by}")
    elif "U64" in x.parts or "S64" in x.parts:
        x.to(0, f"mov.b32 {_word(x, _shifted(x, f'shr.{signed}64', low, high, by), 0)}")
    else:
        x.to(0, f"shf.r.clamp.b32 {low}, {high}, {by}")


def _shifted(x: Lift, opcode: str, low: str, high: str, by: str) -> str:
    value = x.let(f"mov.b64 {{{low}, {high}}}", "d")
    return x.let(f"{opcode} {value}, {by}", "d")


def _word(x: Lift, value: str, number: int) -> str:
    return x.let(f"cvt.u32.u64 {x.let(f'shr.u64 {value}, 32', 'd') if number else value}")


@rule("LOP3 ULOP3")
def _logic(x: Lift) -> None:
    predicates = x.predicates()
    first = 1 if 0 in predicates else 0
    a, b, c, lut = (first + i for i in (1, 2, 3, 4))
    value = _lop3(x, x.value(a), x.value(b), x.value(c), x.at(lut).number or 0)
    x.to(first, f"mov.b32 {value}")
    if first and x.result(0) != "_":
        if value[0] != "%":
            value = x.let(f"mov.b32 {value}")
        test = x.let(f"setp.ne.u32 {value}, 0", "q")
        x.predicate_to(0, combined(x, "OR", test, lut + 1))


def _lop3(x: Lift, a: str, b: str, c: str, lut: int) -> str:
    """Write a function of three words. Those of two are written so that constants stay visible."""
    if c == "0":
        lut = (lut & 0x55) * 3
        plain = {0xC0: "and", 0xFC: "or", 0x3C: "xor"}.get((lut & 0x55) | (lut & 0x55) << 1)
        if plain:
            return x.let(f"{plain}.b32 {a}, {b}")
    return x.let(f"lop3.b32 {a}, {b}, {c}, {lut}")


@rule("PLOP3 UPLOP3")
def _logic_of_predicates(x: Lift) -> None:
    words = [x.let(f"selp.b32 0xffffffff, 0, {x.predicate(i)}") for i in (2, 3, 4)]
    for to, lut in ((0, x.at(5).number), (1, x.at(6).number)):
        if x.result(to) != "_":
            value = x.let(f"lop3.b32 {words[0]}, {words[1]}, {words[2]}, {lut}")
            x.predicate_to(to, x.let(f"setp.ne.u32 {value}, 0", "q"))


def combined(x: Lift, how: str, test: str, index: int) -> str:
    """Return a test combined with the predicate at `index`, if there is one: AND, OR or XOR."""
    if index >= len(x.operands):
        return test
    other = x.predicate(index)
    if other == {"AND": "%PT", "OR": "%PF", "XOR": "%PF"}[how]:
        return test
    return x.let(f"{how.lower()}.pred {test}, {other}", "q")


def compare(x: Lift, test: str) -> None:
    """Write a comparison's two results: the test, and its opposite, each combined with a predicate."""
    how = next((part for part in x.parts if part in ("AND", "OR", "XOR")), "AND")
    x_results = [i for i in (0, 1) if x.result(i) != "_"]
    values = {0: test}
    if 1 in x_results:
        values[1] = x.let(f"not.pred {test}", "q")
    done = {i: combined(x, how, values[i], 4) for i in x_results}
    for i, value in done.items():
        x.predicate_to(i, value)


@rule("ISETP UISETP")
def _compare_integers(x: Lift) -> None:
    kind = "u32" if "U32" in x.parts else "s32"
    order = x.parts[0].lower()
    a, b = x.value(2), x.value(3)
    if "EX" not in x.parts:
        compare(x, x.let(f"setp.{order}.{kind} {a}, {b}", "q"))
        return
    low = x.predicate(5)  # of the low words
    if order in ("eq", "ne"):
        test, how = x.let(f"setp.{order}.{kind} {a}, {b}", "q"), {"eq": "and", "ne": "or"}[order]
        compare(x, x.let(f"{how}.pred {test}, {low}", "q"))
        return
    strict = x.let(f"setp.{order[0]}t.{kind} {a}, {b}", "q")
    equal = x.let(f"and.pred {x.let(f'setp.eq.u32 {a}, {b}', 'q')}, {low}", "q")
    compare(x, x.let(f"or.pred {strict}, {equal}", "q"))


@rule("SEL USEL")
def _select(x: Lift) -> None:
    x.to(0, f"selp.b32 {x.value(1)}, {x.value(2)}, {x.predicate(3)}")


@rule("MOV UMOV")
def _move(x: Lift) -> None:
    what = x.at(1)
    if what.text.startswith("32@"):
        raise Refused(what.text)
    if "64" in x.parts:
        x.pair_to(0, x.let(f"mov.b64 {x.wide(1)}", "d"))
        return
    x.to(0, f"mov.b32 {x.value(1)}")


@rule("R2UR")
def _to_uniform(x: Lift) -> None:
    first = 1 if x.at(0).is_predicate else 0
    x.to(first, f"mov.b32 {x.value(len(x.operands) - 1)}")


@rule("S2R S2UR CS2R")
def _special(x: Lift) -> None:
    name = x.operands[1]
    source = "0" if name in _ZERO else _SPECIAL.get(name)
    if source is None:
        raise Refused(name)
    if x.op == "CS2R" and name == "SR_CLOCKLO" and "32" not in x.parts:
        x.pair_to(0, x.let("mov.u64 %clock64", "d"))
    elif x.op == "CS2R" and "32" not in x.parts:
        x.pair_to(0, x.let(f"mov.b64 {{{source}, 0}}", "d"))
    else:
        x.to(0, f"mov.u32 {source}")


@rule("PRMT UPRMT")
def _permute(x: Lift) -> None:
    x.to(0, f"prmt.b32 {x.value(1)}, {x.value(3)}, {x.value(2)}")


@rule("SGXT USGXT")
def _extend(x: Lift) -> None:
    kind = "u32" if "U32" in x.parts else "s32"
    bits = x.value(2)
    if "W" in x.parts:
        bits = x.let(f"and.b32 {bits}, 31")
    x.to(0, f"bfe.{kind} {x.value(1)}, 0, {bits}")


@rule("BMSK UBMSK")
def _mask(x: Lift) -> None:
    mode = "wrap" if "W" in x.parts else "clamp"
    x.to(0, f"bmsk.{mode}.b32 {x.value(1)}, {x.value(2)}")


@rule("POPC UPOPC")
def _population(x: Lift) -> None:
    x.to(0, f"popc.b32 {x.value(len(x.operands) - 1)}")


@rule("BREV UBREV")
def _reverse(x: Lift) -> None:
    x.to(0, f"brev.b32 {x.value(1)}")


@rule("FLO UFLO")
def _leading_one(x: Lift) -> None:
    amount = ".shiftamt" if "SH" in x.parts else ""
    x.to(0, f"bfind{amount}.{'u32' if 'U32' in x.parts else 's32'} {x.value(len(x.operands) - 1)}")


@rule("IABS")
def _absolute(x: Lift) -> None:
    x.to(0, f"abs.s32 {x.value(1)}")


@rule("VABSDIFF")
def _difference(x: Lift) -> None:
    x.to(0, f"sad.{'u32' if 'U32' in x.parts else 's32'} {x.value(1)}, {x.value(2)}, {x.value(3)}")


@rule("VABSDIFF4")
def _differences_of_bytes(x: Lift) -> None:
    """Write the differences of four bytes, without their signs; `.ACC` adds the four up."""
    kind = "s32" if "S8" in x.parts else "u32"
    how = ".add" if "ACC" in x.parts else ""
    x.to(0, f"vabsdiff4.{kind}.{kind}.{kind}{how} {x.value(1)}, {x.value(2)}, {x.value(3)}")


def _least_or_most(x: Lift, kind: str, values: list[str], index: int) -> None:
    """Write the least of the values where the predicate holds, else the most."""
    chosen = x.predicate(index)
    results = []
    for name in ("min", "max"):
        if chosen == {"min": "%PF", "max": "%PT"}[name]:
            continue
        text = values[0]
        for value in values[1:]:
            text = x.let(f"{name}.{kind} {text}, {value}")
        results.append(text)
    if len(results) == 1:
        x.to(0, f"mov.b32 {results[0]}")
    else:
        x.to(0, f"selp.b32 {results[0]}, {results[1]}, {chosen}")


@rule("IMNMX UIMNMX VIMNMX UVIMNMX VIMNMX3 VIADDMNMX")
def _minimum(x: Lift) -> None:
    predicates = x.predicates()
    kind = "u32" if "U32" in x.parts else "s32"
    values = [i for i in range(1, len(x.operands)) if i not in predicates]
    if any(x.result(i) != "_" for i in predicates if i < values[0]):
        raise Refused
    texts = [x.value(i) for i in values]
    if x.op == "VIADDMNMX":
        texts = [x.let(f"add.s32 {texts[0]}, {texts[1]}"), texts[2]]
    _least_or_most(x, kind, texts, predicates[-1])


@rule("IDP")
def _dot(x: Lift) -> None:
    kinds = ".".join("s32" if part[0] == "S" else "u32" for part in x.parts[-2:])
    name = "dp4a" if "4A" in x.parts else "dp2a.hi" if "HI" in x.parts else "dp2a.lo"
    x.to(0, f"{name}.{kinds} {x.value(1)}, {x.value(2)}, {x.value(3)}")


@rule("P2R UP2UR")
def _pack_predicates(x: Lift) -> None:
    mask = x.at(3).number
    if mask is None or mask >> 7 or x.at(1).parts:
        raise Refused
    value = x.let(f"and.b32 {x.value(2)}, {~mask & 0xFFFFFFFF}") if not x.at(2).is_zero else "0"
    for bit in (i for i in range(7) if mask >> i & 1):
        one = x.let(f"selp.b32 {1 << bit}, 0, %P{bit}")
        value = x.let(f"or.b32 {value}, {one}")
    x.to(0, f"mov.b32 {value}")


@rule("R2P")
def _unpack_predicates(x: Lift) -> None:
    what, mask = x.at(1), x.at(2).number
    if mask is None or mask >> 7 or set(what.parts) - {"B1", "B2", "B3"}:
        raise Refused
    shift = 8 * int(what.parts[0][1]) if what.parts else 0
    for bit in (i for i in range(7) if mask >> i & 1):
        one = x.let(f"and.b32 {x.plain(what)}, {1 << bit + shift}")
        x.guarded(f"setp.ne.u32 %P{bit}, {one}, 0")
