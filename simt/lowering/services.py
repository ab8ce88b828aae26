"""Turn what a warp does asynchronously into calls of the host: mbarriers, bulk copies, clusters.

These instructions are few, and each does much, so the host does them in Python (asynchronous/services.py).
Here each becomes `serve`, with its own opcode behind it and plain registers as operands, such as
`serve.mbarrier.init`. One that waits becomes a question, and the warp gives way to others until the answer
is yes:

    mbarrier.try_wait p, [a], x      poll p, a, x; @p bra D; yield; poll p, a, x; D:
    bar.sync 1, 64                   serve.bar.arrive t, 1, 64; L: await p, t; @p bra D; yield; bra L; D:

The barriers of a block are then served as well, since some of its threads may wait at one while others wait
at an mbarrier. Reference: PTX ISA, 9.7.9.25 (cp.async.bulk), 9.7.13 (barriers, mbarrier), 9.7.14 (mapa).
"""

from dataclasses import replace

from simt.lowering.writer import Start, Writer, rewrite
from simt.ptx import (
    GRID,
    Address,
    Guard,
    Immediate,
    Instruction,
    Kernel,
    Operand,
    Register,
    Symbol,
    Vector,
)

_NOTHING = Symbol("_")


def make_services(kernel: Kernel) -> None:
    """Rewrite the asynchronous instructions of a kernel without calls, if it has any."""
    if kernel.blocks_together == 1 and not any(
        _is_asynchronous(each) or _is_product(each) for each in kernel.code
    ):
        return
    kernel.is_asynchronous = True
    start = Start(kernel, prefix="s")

    def served(instruction: Instruction, number: int) -> list[Instruction] | Writer:
        if not _is_asynchronous(instruction) and not _waits_for_block(instruction):
            return [instruction]
        writer = Writer(start, instruction, number)
        _rewrite(writer, instruction)
        return writer

    rewrite(start, served)


def _is_asynchronous(instruction: Instruction) -> bool:
    """Say whether an instruction makes its kernel one whose barriers the host serves."""
    if instruction.parts[:2] in (("st", "async"), ("red", "async"), ("barrier", "cluster")):
        return True
    if instruction.family.is_asynchronous or _is_group(instruction):
        return True
    return _waits_for_block(instruction) and (
        "arrive" in instruction.parts or len(instruction.operands) > (3 if instruction.votes else 1)
    )


def _is_group(instruction: Instruction) -> bool:
    """Say whether an instruction ends a group of products, or waits for some."""
    return instruction.parts[:2] in (("wgmma", "commit_group"), ("wgmma", "wait_group"))


def _is_product(instruction: Instruction) -> bool:
    """Say whether an instruction multiplies by itself: a kernel may lack the group and the wait for it."""
    return instruction.parts[:2] == ("wgmma", "mma_async")


def _waits_for_block(instruction: Instruction) -> bool:
    return instruction.is_barrier and GRID not in instruction.parts


def _rewrite(w: Writer, instruction: Instruction) -> None:
    parts = instruction.parts
    if parts[:2] == ("barrier", "cluster"):
        _cluster_barrier(w, instruction)
    elif instruction.is_barrier:
        _block_barrier(w, instruction)
    elif parts[0] == "mbarrier" and parts[1] in ("test_wait", "try_wait"):
        _wait(w, instruction)
    elif parts[:2] == ("wgmma", "wait_group"):
        _await(w, "wgmma.wait_group", _NOTHING, *instruction.operands)
    elif parts[0] == "mapa" or parts[0] == "getctarank":
        result, *inputs = instruction.operands
        w.emit(instruction.opcode, result, *(_plain(w, each) for each in inputs))
    else:
        _serve(w, instruction)


def _serve(w: Writer, instruction: Instruction) -> None:
    """Emit `serve.<opcode> result, operands`; `_` stands for no result."""
    operands = instruction.operands
    has_result = bool(instruction.results) or operands[:1] == (_NOTHING,)
    result = operands[0] if has_result else _NOTHING
    inputs = [part for each in operands[has_result:] for part in _parts(each)]
    w.emit(f"serve.{instruction.opcode}", result, *(_plain(w, each) for each in inputs))


def _wait(w: Writer, instruction: Instruction) -> None:
    """Emit a wait at an mbarrier, which may give way once before it answers."""
    result, *inputs = instruction.operands
    plain = [_plain(w, each) for each in inputs]
    done = w.label("done")
    assert isinstance(result, Register)
    w.emit(f"poll.{instruction.opcode}", result, *plain)
    _leave_if(w, result, done)
    w.code.append(Instruction(("yield",), (), None, instruction.line))
    w.emit(f"poll.{instruction.opcode}", result, *plain)
    w.place(done)


def _leave_if(w: Writer, answer: Register, done: Symbol) -> None:
    """Emit a branch for lanes that need not wait: those with the answer yes, or whose guard does not hold."""
    line, guard = w.instruction.line, w.instruction.guard
    if guard:
        w.code.append(Instruction(("bra",), (done,), replace(guard, negated=not guard.negated), line))
    w.code.append(Instruction(("bra",), (done,), Guard(answer, False), line))


def _await(w: Writer, opcode: str, result: Operand, *operands: Operand) -> None:
    """Emit a loop that gives way until the answer is yes, and then gives the result."""
    again, done = w.label("again"), w.label("done")
    answer = w.register("pred")
    results = answer if result == _NOTHING else Vector((answer, result))
    w.place(again)
    w.emit(f"await.{opcode}", results, *operands)
    _leave_if(w, answer, done)
    line = w.instruction.line
    w.code += [Instruction(("yield",), (), None, line), Instruction(("bra",), (again,), None, line)]
    w.place(done)


def _block_barrier(w: Writer, instruction: Instruction) -> None:
    """Emit the arrival at a barrier of the block, and the wait unless it is `bar.arrive`.

    The operands of `serve.bar.arrive` are the barrier's number, how many threads it takes (0: all of the
    block) and the vote.
    """
    operands = list(instruction.operands)
    result = operands.pop(0) if instruction.votes else _NOTHING
    vote: Operand = operands.pop() if instruction.votes else Immediate(0)
    if isinstance(vote, Register):
        vote = w.new("selp.u32", "b32", Immediate(1), Immediate(0), vote)
    number, threads = (*operands, Immediate(0))[:2]
    token = w.register("b32")
    w.emit("serve.bar.arrive", token, number, threads, vote)
    if "arrive" not in instruction.parts:
        combined = next((part for part in instruction.parts if part in ("popc", "and", "or")), "sync")
        _await(w, f"bar.{combined}", result, number, token)


def _cluster_barrier(w: Writer, instruction: Instruction) -> None:
    if "arrive" in instruction.parts:
        w.emit("serve.cluster.arrive", _NOTHING)
    else:
        _await(w, "cluster.wait", _NOTHING)


def _parts(operand: Operand) -> list[Operand]:
    return list(operand.items) if isinstance(operand, Vector) else [operand]


def _plain(w: Writer, operand: Operand) -> Operand:
    """Return an operand as a register or a number: the sum of an address, a variable's address."""
    if isinstance(operand, Address):
        base = _plain(w, operand.base)
        if not operand.offset or not isinstance(base, Register):
            return base
        wide = w.kernel.register_type(base.name).endswith("64")
        return w.new(
            "add.s64" if wide else "add.s32", "b64" if wide else "b32", base, Immediate(operand.offset)
        )
    if isinstance(operand, Symbol) and operand != _NOTHING:
        return w.new("mov.b64", "b64", operand)
    return operand
