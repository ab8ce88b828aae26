"""Rules for control flow, barriers, and what the lanes of a warp do together.

Where lanes part and meet is written as it stands: BSSY opens a region and BSYNC ends it
(simt/analysis/convergence.py).
"""

from __future__ import annotations

import re

from simt.sass.lift.table import Lift, Refused, register, rule
from simt.sass.operands import operand

LABEL = "L{:x}"  # of the instruction at an address


@rule("BSSY")
def _open(x: Lift) -> None:
    """Open a region; its last operand is where its lanes meet."""
    x.emit(f"bssy {_target(x, x.operands[-1])}")


@rule("BSYNC")
def _meet(x: Lift) -> None:
    """Wait for the lanes that opened the region, which ends here."""
    if x.guard or len(x.operands) > 1:
        raise Refused
    x.emit(f"bsync {LABEL.format(x.instruction.address + 16)}")


@rule("BREAK")
def _leave(x: Lift) -> None:
    """Leave the regions that this barrier register stands for: they wait for these lanes no longer."""
    conditions = [x.predicate(i) for i in x.predicates() if x.predicate(i) != "%PT"]
    if conditions:
        raise Refused
    barrier = x.operands[-1]
    places = {
        i.operands[-1]
        for i in x.code.instructions
        if i.opcode.startswith("BSSY") and i.operands[0] == barrier
    }
    for place in sorted(places):
        x.guarded(f"break {_target(x, place)}")


@rule("WARPSYNC")
def _meet_all(x: Lift) -> None:
    """Wait for the lanes of a mask, or for all that have not ended."""
    if x.guard:
        raise Refused
    here = LABEL.format(x.instruction.address + 16)
    mask = x.value(0) if "ALL" not in x.parts and x.operands else "0xffffffff"
    x.emit(f"bssy {here}, {mask}")
    x.emit(f"bsync {here}")


def _target(x: Lift, name: str) -> str:
    address = x.code.labels.get(name, x.code.functions.get(name))
    if address is None:
        raise Refused(name)
    return LABEL.format(address)


@rule("BRA")
def _branch(x: Lift) -> None:
    target = _target(x, x.operands[-1])
    conditions = []
    if {"DIV", "CONV"} & set(x.parts):  # are lanes of the mask elsewhere?
        mask = x.value(len(x.operands) - 2) if len(x.operands) > 1 else "0xffffffff"
        missing = x.let(f"and.b32 {mask}, {x.let('not.b32 ' + _active(x))}")
        conditions.append(x.let(f"setp.{'ne' if 'DIV' in x.parts else 'eq'}.u32 {missing}, 0", "q"))
    elif len(x.operands) > 1:
        extra = x.predicates()
        if len(extra) != len(x.operands) - 1:
            raise Refused
        conditions += [x.predicate(i) for i in extra if x.predicate(i) != "%PT"]
    if not conditions:
        x.guarded(f"bra {target}")
        return
    if x.guard:
        own = x.let(f"{'not' if x.guard.negated else 'mov'}.pred {x.guard.register.name}", "q")
        conditions.append(own)
    taken = conditions[0]
    for each in conditions[1:]:
        taken = x.let(f"and.pred {taken}, {each}", "q")
    x.jump(taken, target)


@rule("BRX BRXU")
def _branch_by_table(x: Lift) -> None:
    text = ", ".join(x.operands)
    found = re.match(r"(U?R\d+)\s+(-?0x[0-9a-f]+)\s+\(\*\"BRANCH_TARGETS ([^\"]*)\"\*\)", text)
    if found is None or x.guard:
        raise Refused
    here = x.instruction.address + 16
    low = f"%{found[1]}"
    _one_target(x, low)
    targets = sorted({x.code.labels[name.strip()] for name in found[3].split(",")})
    for address in targets[:-1]:
        wanted = (address - here - int(found[2], 16)) & 0xFFFFFFFF
        x.jump(x.let(f"setp.eq.u32 {low}, {wanted}", "q"), LABEL.format(address))
    x.guarded(f"bra {LABEL.format(targets[-1])}")


@rule("CALL")
def _call(x: Lift) -> None:
    """Go to a function, by name or by a pointer in a register; one of the driver's ends the count."""
    words = x.operands[-1].split()
    if "ABS" in x.parts:
        x.guarded("trap.driver")
    elif "REL" not in x.parts:
        raise Refused
    elif len(words) == 1:
        x.guarded(f"bra {_target(x, words[0])}")
    elif x.guard:
        raise Refused
    else:
        _call_by_pointer(x, register(words[0]))


def _call_by_pointer(x: Lift, low: str) -> None:
    """Go to the function that a pointer's low word means: by its address, or as the simulator numbers it."""
    _one_target(x, low)
    numbers: dict[int, int] = {}
    for name, address in x.code.functions.items():
        for number in (address, x.pointers.get(name.removeprefix(f"${x.code.name}$"), address)):
            if numbers.setdefault(number, address) != address:
                raise Refused
    for number, address in numbers.items():
        x.jump(x.let(f"setp.eq.u32 {low}, {number}", "q"), LABEL.format(address))
    x.emit("trap.pointer")


def _one_target(x: Lift, low: str) -> None:
    """Let only lanes with the first lane's target go on; the others issue the branch again."""
    lanes = _active(x)
    lowest = x.let(f"and.b32 {lanes}, {x.let(f'neg.s32 {lanes}')}")
    leader = x.let(f"bfind.u32 {lowest}")
    chosen = x.temporary()
    x.emit(f"shfl.sync.idx.b32 {chosen}, {low}, {leader}, 31, {lanes}")
    x.jump(x.let(f"setp.ne.u32 {chosen}, {low}", "q"), LABEL.format(x.instruction.address))


@rule("RET")
def _return(x: Lift) -> None:
    """Go back to whichever call this was: the address is in a register."""
    places = [each.address + 16 for each in x.code.instructions if each.opcode.startswith("CALL.REL")]
    if not places or x.guard:
        raise Refused
    back = x.plain(operand(x.operands[0].split()[0]))
    for address in places[:-1]:
        x.jump(x.let(f"setp.eq.u32 {back}, {address}", "q"), LABEL.format(address))
    x.guarded(f"bra {LABEL.format(places[-1])}")


@rule("EXIT KILL")
def _exit(x: Lift) -> None:
    more = x.predicate(0) if x.operands else "%PT"
    if more == "%PT":
        x.guarded("exit")
    elif x.guard is None:
        x.under(more, "exit")
    else:
        own = x.let(f"{'not' if x.guard.negated else 'mov'}.pred {x.guard.register.name}", "q")
        x.under(x.let(f"and.pred {own}, {more}", "q"), "exit")


@rule("BPT")
def _trap(x: Lift) -> None:
    x.guarded("trap")


@rule("BAR")
def _barrier(x: Lift) -> None:
    if "ARV" in x.parts:
        raise Refused
    if x.guard:  # some go on without it
        passing = x.let(f"{'mov' if x.guard.negated else 'not'}.pred {x.guard.register.name}", "q")
        x.jump(passing, LABEL.format(x.instruction.address + 16))
    if "SYNC" in x.parts:
        if len(x.operands) > 1:
            raise Refused  # of some threads
        x.emit("bar.sync 0")
    elif "RED" in x.parts:
        vote = x.predicate(len(x.operands) - 1)
        if "POPC" in x.parts:
            x.emit(f"barrier.red.popc.u32 %BR, 0, {vote}")
        else:
            how = "and" if "AND" in x.parts else "or"
            x.emit(f"barrier.red.{how}.pred %BP, 0, {vote}")
            x.emit("selp.b32 %BR, 0xffffffff, 0, %BP")
    else:
        raise Refused


@rule("B2R")
def _result_of_barrier(x: Lift) -> None:
    x.to(0, "mov.b32 %BR")
    if len(x.operands) > 1:
        x.predicate_to(1, x.let("setp.ne.u32 %BR, 0", "q"))


def _active(x: Lift) -> str:
    name = x.temporary()
    x.emit(f"activemask.b32 {name}")
    return name


@rule("VOTE VOTEU")
def _vote(x: Lift) -> None:
    """Write the ballot of the active lanes, and whether all, or any, agree."""
    votes = x.let(f"vote.sync.ballot.b32 {x.predicate(len(x.operands) - 1)}, {_active(x)}")
    for index in range(len(x.operands) - 1):
        if not x.at(index).is_predicate:
            x.to(index, f"mov.b32 {votes}")
        elif x.result(index) != "_":
            if "ANY" in x.parts:
                x.predicate_to(index, x.let(f"setp.ne.u32 {votes}, 0", "q"))
            else:
                x.predicate_to(index, x.let(f"setp.eq.u32 {votes}, {_active(x)}", "q"))


@rule("MATCH")
def _match(x: Lift) -> None:
    predicates = x.predicates()
    value = len(x.operands) - 1
    kind, what = ("b64", x.wide(value)) if "U64" in x.parts else ("b32", x.value(value))
    mask = _active(x)
    if "ANY" in x.parts:
        x.to(value - 1, f"match.any.sync.{kind} {what}, {mask}")
        return
    same, agree = x.temporary(), x.temporary("q")
    x.emit(f"match.all.sync.{kind} {same}|{agree}, {what}, {mask}")
    for index in range(value):
        if index in predicates:
            x.predicate_to(index, agree)
        else:
            x.to(index, f"mov.b32 {same}")


@rule("REDUX CREDUX")
def _reduce(x: Lift) -> None:
    how = next((part.lower() for part in x.parts if part in ("MIN", "MAX", "AND", "OR", "XOR")), "add")
    how = how if "SUM" not in x.parts else "add"
    if not {"MIN", "MAX", "AND", "OR", "XOR", "SUM"} & set(x.parts):
        how = "and"
    kind = "b32" if how in ("and", "or", "xor") else "s32" if "S32" in x.parts else "u32"
    x.to(0, f"redux.sync.{how}.{kind} {x.value(1)}, {_active(x)}")


@rule("SHFL")
def _shuffle(x: Lift) -> None:
    first = 1 if x.at(0).is_predicate else 0
    how = x.parts[0].lower()
    values = [x.value(first + i) for i in (1, 2, 3)]
    inside = x.temporary("q")
    result = x.temporary()
    x.emit(f"shfl.sync.{how}.b32 {result}|{inside}, {values[0]}, {values[1]}, {values[2]}, {_active(x)}")
    x.to(first, f"mov.b32 {result}")
    if first:
        x.predicate_to(0, inside)
