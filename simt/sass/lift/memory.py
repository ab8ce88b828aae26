"""Rules for accesses to memory.

Shared addresses begin at 1024 on Hopper and later, after what the system keeps; in the simulator at 0. Local
memory lies below the top of the stack. An access whose result decides nothing is later dropped
(control_slice.py).
"""

from __future__ import annotations

import re
from dataclasses import replace

from simt.compiler.machine_code import KernelCode
from simt.sass.lift.table import BANKS, STACK_TOP, Lift, Refused, register, rule
from simt.sass.operands import Where, operand, terms

LOCAL = "labkit_stack"  # the local memory of a thread, as a variable
_NARROW = {"U8": "u8", "S8": "s8", "U16": "u16", "S16": "s16", "8": "u8", "16": "u16"}


def stack_bytes(code: KernelCode) -> int:
    """Return the local memory per thread."""
    return max(16, code.resources.local_bytes)


def shared_base(arch: int) -> int:
    """Return the address at which a block's shared memory begins."""
    return 1024 if arch >= 90 else 0


def _address32(x: Lift, where: Where) -> tuple[str, int]:
    """Return the sum of an address's registers, 32 bits wide, and its constant."""
    total = ""
    for name, parts in where.registers:
        text = register(name)
        times = next((int(part[1:]) for part in parts if part[:1] == "X"), 1)
        if times > 1:
            text = x.let(f"mul.lo.s32 {text}, {times}")
        total = x.let(f"add.s32 {total}, {text}") if total else text
    return total, where.offset


def _address64(x: Lift, where: Where) -> str:
    """Return an address as `[%d1+16]`: pairs of registers, single ones that say U32, and a constant."""
    total = ""
    for name, parts in where.registers:
        if "U32" in parts:
            text = x.let(f"cvt.u64.u32 {register(name)}", "d")
        else:
            text = x.let(f"mov.b64 {{{register(name)}, {register(name, 1)}}}", "d")
        total = x.let(f"add.s64 {total}, {text}", "d") if total else text
    return f"[{total or '0'}+{where.offset}]"


def _shared(x: Lift, text: str) -> str:
    total, offset = _address32(x, x.where(text))
    offset -= shared_base(x.arch)
    if not total:
        return f"[{offset}]" if offset >= 0 else "[0]"
    if offset < 0:
        return _below(x, total, offset)
    return f"[{x.let(f'cvt.s64.s32 {total}', 'd')}+{offset}]"  # a register may be below 0, the sum is not


def _below(x: Lift, total: str, offset: int) -> str:
    """Return an address with a negative constant; the sum must not wrap round in 32 bits."""
    wide = x.let(f"cvt.u64.u32 {x.let(f'add.s32 {total}, {offset}')}", "d")
    return f"[{wide}]"


def _local(x: Lift, text: str) -> str:
    total, offset = _address32(x, x.where(text))
    start = x.let(f"mov.u64 {LOCAL}", "d")
    size = stack_bytes(x.code)
    if not total:
        return f"[{start}+{offset - STACK_TOP + size}]"
    beyond = x.let(f"cvt.s64.s32 {x.let(f'add.s32 {total}, {offset - STACK_TOP + size}')}", "d")
    return f"[{x.let(f'add.s64 {start}, {beyond}', 'd')}]"


def _kind(x: Lift) -> tuple[str, int]:
    """Return the type of one item, and how many items the access has."""
    for part in x.parts:
        if part in _NARROW:
            return _NARROW[part], 1
    width = next((int(part) for part in x.parts if part in ("64", "128", "256")), 32)
    if width > 128:
        raise Refused
    return "b32", width // 32


def _load(x: Lift, space: str, address: str) -> None:
    kind, items = _kind(x)
    names = [x.result(0, i) for i in range(items)]
    if all(name == "_" for name in names):
        names = [x.temporary() for _ in names]
    if items == 1:
        x.guarded(f"ld.{space}{kind} {names[0]}, {address}")
    else:
        x.guarded(f"ld.{space}v{items}.{kind} {{{', '.join(names)}}}, {address}")


def _store(x: Lift, space: str, address: str, index: int) -> None:
    kind, items = _kind(x)
    what = x.at(index)
    values = ["0"] * items if what.is_zero else [x.plain(what, i) for i in range(items)]
    if items == 1:
        x.guarded(f"st.{space}{kind} {address}, {values[0]}")
    else:
        x.guarded(f"st.{space}v{items}.{kind} {address}, {{{', '.join(values)}}}")


@rule("LDS")
def _load_shared(x: Lift) -> None:
    _load(x, "shared.", _shared(x, x.operands[1]))


@rule("STS")
def _store_shared(x: Lift) -> None:
    _store(x, "shared.", _shared(x, x.operands[0]), 1)


@rule("LDSM")
def _load_matrices(x: Lift) -> None:
    """Touch the rows of 16 bytes of one, two or four 8×8 matrices: each of 8 lanes names one."""
    address = _shared(x, x.operands[1])
    lane = x.let("mov.u32 %laneid")
    takes_part = x.let(f"setp.lt.u32 {lane}, {8 * int(x.parts[-1])}", "q")
    if x.guard:
        raise Refused
    names = ", ".join(x.temporary() for _ in range(4))
    x.under(takes_part, f"ld.shared.v4.b32 {{{names}}}, {address}")
    x.unknown()


@rule("LDL")
def _load_local(x: Lift) -> None:
    _load(x, "local.", _local(x, x.operands[1]))


@rule("STL")
def _store_local(x: Lift) -> None:
    _store(x, "local.", _local(x, x.operands[0]), 1)


@rule("LDG LD")
def _load_global(x: Lift) -> None:
    index = next(i for i, text in enumerate(x.operands) if "[" in text)
    if len(x.operands) > index + 1:
        raise Refused  # with a predicate
    _load(x, "global." if x.op == "LDG" else "", _address64(x, x.where(x.operands[index])))


@rule("STG ST")
def _store_global(x: Lift) -> None:
    _store(x, "global." if x.op == "STG" else "", _address64(x, x.where(x.operands[0])), 1)


@rule("LDGSTS")
def _copy_to_shared(x: Lift) -> None:
    kind, items = _kind(x)
    names = [x.temporary() for _ in range(items)]
    together = names[0] if items == 1 else "{" + ", ".join(names) + "}"
    vector = "" if items == 1 else f"v{items}."
    load = f"ld.global.{vector}{kind} {together}, {_address64(x, x.where(x.operands[1]))}"
    if len(x.operands) == 2:
        x.guarded(load)
    else:  # with a predicate, without which it copies zeros and does not read
        reads = x.predicate(2)
        for name in names:
            x.emit(f"mov.b32 {name}, 0")
        if reads != "%PF":
            if x.guard:
                raise Refused
            x.under(reads, load)
    x.guarded(f"st.shared.async.{vector}{kind} {_shared(x, x.operands[0])}, {together}")


@rule("LDC ULDC LDCU")
def _load_constant(x: Lift) -> None:
    what = operand(x.operands[1])
    found = re.fullmatch(r"c\[(0x\d)\]\s*\[([^\]]*)\]", x.operands[1].strip())
    if found is None or x.parts[:1] in (("IL",), ("IS",)):
        raise Refused
    kind, items = _kind(x)
    where = terms(found[2])
    if not where.registers and kind != "b32":
        word = x.constant(replace(what, place=hex(where.offset & ~3)))
        x.to(0, f"bfe.{kind[0]}32 {word}, {8 * (where.offset & 3)}, {kind[1:]}")
        return
    if not where.registers:
        for i in range(items):
            name = x.result(0, i)
            if name != "_":
                x.guarded(f"mov.b32 {name}, {x.constant(what, i)}")
        return
    bank = int(found[1], 16)
    if bank not in x.code.constants:
        raise Refused
    total, offset = _address32(x, where)
    start = x.let(f"mov.u64 {BANKS.format(bank)}", "d")
    place = x.let(f"add.s64 {start}, {x.let(f'cvt.u64.u32 {total}', 'd')}", "d")
    _load(x, "const.", f"[{place}+{offset}]")


_OPERATIONS = {"ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "CAS"}


def _atomic(x: Lift, space: str, address: str, at: int, result: int | None) -> None:
    """Write an atomic operation; `at` is the index of its first value."""
    name = next((part for part in x.parts if part in _OPERATIONS), "")
    is_wide = "64" in x.parts or "F64" in x.parts
    kind = next((part.lower() for part in x.parts if part in ("S32", "F32", "F64", "F16x2")), "")
    if not name or kind == "f16x2":
        raise Refused
    if name in ("AND", "OR", "XOR", "EXCH", "CAS"):
        kind = "b64" if is_wide else "b32"
    elif not kind:
        kind = ("s64" if "S64" in x.parts else "u64") if is_wide else "u32"
    values = [x.wide(i) if is_wide else x.value(i) for i in range(at, at + (2 if name == "CAS" else 1))]
    operation = f"{name.lower()}.{kind}"
    opcode = f"{space}{operation}"
    target = "_" if result is None else x.result(result)
    if target == "_":
        target = x.temporary("d" if is_wide else "t")
    elif is_wide:
        wide = x.temporary("d")
        x.guarded(f"atom.{opcode} {wide}, {address}, {', '.join(values)}")
        x.pair_to(result or 0, wide)
        return
    x.guarded(f"atom.{opcode} {target}, {address}, {', '.join(values)}")


@rule("ATOMG ATOM")
def _atomic_global(x: Lift) -> None:
    index = next(i for i, text in enumerate(x.operands) if "[" in text)
    _atomic(
        x,
        "global." if x.op == "ATOMG" else "",
        _address64(x, x.where(x.operands[index])),
        index + 1,
        index - 1,
    )


@rule("REDG RED")
def _reduce_global(x: Lift) -> None:
    _atomic(x, "global.", _address64(x, x.where(x.operands[0])), 1, None)


@rule("ATOMS")
def _atomic_shared(x: Lift) -> None:
    address = _shared(x, x.operands[1])
    if "POPC" in x.parts:
        target = x.result(0)
        x.guarded(f"atom.shared.add.u32 {x.temporary() if target == '_' else target}, {address}, 1")
        return
    if "CAST" in x.parts:  # compare and swap, which says whether it did
        is_wide = "64" in x.parts
        expected, new = (x.wide(i) if is_wide else x.value(i) for i in (2, 3))
        kind = "64" if is_wide else "32"
        old = x.temporary("d" if is_wide else "t")
        x.guarded(f"atom.shared.cas.b{kind} {old}, {address}, {expected}, {new}")
        swapped = x.let(f"setp.eq.u{kind} {old}, {expected}", "q")
        if x.at(0).is_predicate:
            x.predicate_to(0, swapped)
        else:
            x.to(0, f"selp.b32 1, 0, {swapped}")
        return
    _atomic(x, "shared.", address, 2, 0)
