"""Replace instructions that only combine others by plain ones, before code is made.

`cp.async` becomes a load and a store (a warp runs in step, so a copy is complete at once), `brx.idx` becomes
compares and branches, and an atomic on a vector becomes one on each element. So the checks, counters and
shapes of loads and stores hold for all of them. Before each access at which a warp may wait for what others
of its block write, a `yield` lets them run.

Reference: PTX ISA, 9.7.9.25 (cp.async), 9.7.13 (brx.idx).
"""

from collections.abc import Callable
from dataclasses import replace

from simt import ptx
from simt.lowering.ldmatrix import load_matrix, move_matrix, store_matrix
from simt.lowering.surfaces import load_surface, store_surface
from simt.lowering.wgmma import lower_wgmma
from simt.lowering.wmma import lower_wmma
from simt.lowering.writer import Start, Writer, also, rewrite

LONGEST_WAIT = 16  # instructions of a loop that does nothing but wait
Rule = Callable[[Writer, ptx.Instruction], None]


def lower(kernel: ptx.Kernel) -> None:
    """Rewrite the instructions whose first part has a rule."""
    start, waiting = Start(kernel), _awaits_warps(kernel)

    def lowered(instruction: ptx.Instruction, number: int) -> list[ptx.Instruction] | Writer:
        before = [ptx.Instruction(("yield",), (), None, instruction.line)] if number in waiting else []
        rule = RULES.get(instruction.parts[0])
        if rule is None:
            return [*before, instruction]
        writer = Writer(start, instruction, number)
        writer.code += before
        rule(writer, instruction)
        return writer

    rewrite(start, lowered)


def _awaits_warps(kernel: ptx.Kernel) -> set[int]:
    """Return the places of accesses at which a warp may wait for what others of its block write.

    They acquire it for the block, or are in a short loop that does nothing but look at memory.
    """
    code = kernel.code
    waiting = {
        place
        for place, each in enumerate(code)
        if each.family.reads | each.family.is_fence
        and "cta" in each.parts
        and not {"acquire", "acq_rel"}.isdisjoint(each.parts)
    }
    for end, branch in enumerate(code):
        target = branch.operands[0] if branch.parts[0] == "bra" else None
        start = kernel.labels.get(target.name, end) if isinstance(target, ptx.Symbol) else end
        if start < end < start + LONGEST_WAIT:
            body = code[start:end]
            if not any(each.family.writes or each.is_barrier or each.parts[0] == "call" for each in body):
                waiting |= {start + i for i, each in enumerate(body) if _looks_again(each, body)}
    return waiting


def _looks_again(load: ptx.Instruction, body: list[ptx.Instruction]) -> bool:
    """Say whether a load in a loop looks at the same place each time, for what other threads write there."""
    changed = {register for each in body for register in each.results}
    places = {operand.base for operand in load.operands if isinstance(operand, ptx.Address)}
    return places.isdisjoint(changed) and not {"volatile", "acquire", "relaxed"}.isdisjoint(load.parts)


def _copy(w: Writer, instruction: ptx.Instruction) -> None:
    """Lower `cp.async.cg.shared.global [to], [from], 16{, bytes}`; bytes after `bytes` become zero."""
    if instruction.parts[2] not in ("ca", "cg"):
        if instruction.parts[2] not in ("commit_group", "wait_group", "wait_all"):
            w.code.append(instruction)  # another feature, refused if a kernel uses it
        return
    to, from_, size, *rest = instruction.operands
    if "L2::cache_hint" in instruction.parts:
        rest.pop()
    assert isinstance(to, ptx.Address) and isinstance(from_, ptx.Address) and isinstance(size, ptx.Immediate)
    words = [w.register("b32") for _ in range(size.value // 4)]
    count = rest[0] if rest else size
    if isinstance(count, ptx.Immediate):
        _load_part(w, from_, words, min(count.value, size.value))
    elif isinstance(count, ptx.Register) and w.kernel.register_type(count.name) == "pred":
        _load_unless(w, from_, words, count)
    else:
        _load_counted(w, from_, words, count)
    w.emit(_vector_opcode("st.shared", words), to, _vector(words))


def _vector(registers: list[ptx.Register]) -> ptx.Operand:
    return registers[0] if len(registers) == 1 else ptx.Vector(tuple(registers))


def _vector_opcode(name: str, registers: list[ptx.Register]) -> str:
    return f"{name}.b32" if len(registers) == 1 else f"{name}.v{len(registers)}.b32"


def _zero(w: Writer, words: list[ptx.Register]) -> None:
    for word in words:
        w.emit("mov.b32", word, ptx.Immediate(0))


def _load_part(w: Writer, from_: ptx.Address, words: list[ptx.Register], size: int) -> None:
    """Load the first `size` bytes; the rest is zero."""
    if size == 4 * len(words):
        w.emit(_vector_opcode("ld.global", words), _vector(words), from_)
        return
    _zero(w, words)
    for i in range(size // 4):
        w.emit("ld.global.b32", words[i], replace(from_, offset=from_.offset + 4 * i))
    for i in range(size // 4 * 4, size):
        _load_byte(w, from_, words, i, None)


def _load_byte(
    w: Writer, from_: ptx.Address, words: list[ptx.Register], i: int, guard: ptx.Guard | None
) -> None:
    byte = w.register("b32")
    w.emit("mov.b32", byte, ptx.Immediate(0))
    w.emit("ld.global.u8", byte, replace(from_, offset=from_.offset + i), guard=guard)
    w.emit("shl.b32", byte, byte, ptx.Immediate(8 * (i % 4)))
    w.emit("or.b32", words[i // 4], words[i // 4], byte)


def _load_unless(w: Writer, from_: ptx.Address, words: list[ptx.Register], ignore: ptx.Register) -> None:
    wanted = also(w, w.new("not.pred", "pred", ignore))
    _zero(w, words)
    w.emit(_vector_opcode("ld.global", words), _vector(words), from_, guard=wanted)


def _load_counted(w: Writer, from_: ptx.Address, words: list[ptx.Register], count: ptx.Operand) -> None:
    """Load a number of bytes known only at run time: all at once, or one by one."""
    done, size = w.label("copied"), 4 * len(words)
    _zero(w, words)
    whole = w.new("setp.ge.u32", "pred", count, ptx.Immediate(size))
    w.emit(_vector_opcode("ld.global", words), _vector(words), from_, guard=also(w, whole))
    w.code.append(ptx.Instruction(("bra",), (done,), also(w, whole), w.instruction.line))
    for i in range(size - 1):
        inside = also(w, w.new("setp.gt.u32", "pred", count, ptx.Immediate(i)))
        _load_byte(w, from_, words, i, inside)
    w.place(done)


def _branch_by_index(w: Writer, instruction: ptx.Instruction) -> None:
    """Lower `brx.idx r, table`, which goes to the table's r-th label."""
    index, table = instruction.operands
    assert isinstance(table, ptx.Symbol)
    *targets, last = w.kernel.tables[table.name]
    for number, target in enumerate(targets):
        chosen = w.new("setp.eq.u32", "pred", index, ptx.Immediate(number))
        w.emit("bra", ptx.Symbol(target), guard=ptx.Guard(chosen, False))
    w.emit("bra", ptx.Symbol(last))


def _atomic(w: Writer, instruction: ptx.Instruction) -> None:
    """Lower `atom.global.add.v2.f32 {a, b}, [p], {x, y}` to one atomic operation per element."""
    vector = next((part for part in instruction.parts if part in ("v2", "v4", "v8")), None)
    if vector is None:
        w.code.append(instruction)
        return
    parts = tuple(part for part in instruction.parts if part != vector)
    for i in range(int(vector[1:])):
        operands = tuple(_element(o, i, ptx.TYPE_BYTES[instruction.type]) for o in instruction.operands)
        w.code.append(replace(instruction, parts=parts, operands=operands))


def _element(operand: ptx.Operand, i: int, size: int) -> ptx.Operand:
    if isinstance(operand, ptx.Vector):
        return operand.items[i]
    return replace(operand, offset=operand.offset + i * size) if isinstance(operand, ptx.Address) else operand


def copy_parameters(kernel: ptx.Kernel) -> None:
    """Copy structures whose address code takes, to index them at run time, to local memory."""
    sizes = {variable.name: variable for variable in kernel.params}
    taken = [
        sizes[o.name]
        for i in kernel.code
        for o in i.operands
        if isinstance(o, ptx.Symbol) and o.name in sizes and i.parts[0] != "call"
    ]
    code: list[ptx.Instruction] = []
    for parameter in dict.fromkeys(taken):
        copy = replace(parameter, name=f"{parameter.name}~copy", align=max(16, parameter.align))
        kernel.local.append(copy)
        for offset in range(0, parameter.size, 4):
            size = min(4, parameter.size - offset)
            for byte in range(offset, offset + size, 1 if size < 4 else 4):
                type_, register = ("b32" if size == 4 else "u8"), ptx.Register(f"%{copy.name}{byte}")
                kernel.registers[register.name] = "b32"
                places = [ptx.Address(ptx.Symbol(name), byte) for name in (parameter.name, copy.name)]
                code.append(ptx.Instruction(("ld", "param", type_), (register, places[0]), None, 0))
                code.append(ptx.Instruction(("st", "local", type_), (places[1], register), None, 0))
    if not code:
        return
    names = {variable.name for variable in taken}
    kernel.labels = {label: place + len(code) for label, place in kernel.labels.items()}
    kernel.code = code + [_with_copies(instruction, names) for instruction in kernel.code]


def _with_copies(instruction: ptx.Instruction, names: set[str]) -> ptx.Instruction:
    """Use the copies: their addresses, and loads from local memory through them."""
    operands = tuple(
        ptx.Symbol(f"{o.name}~copy") if isinstance(o, ptx.Symbol) and o.name in names else o
        for o in instruction.operands
    )
    parts = instruction.parts
    if parts[0] == "cvta" and "param" in parts:
        parts = tuple("local" if part == "param" else part for part in parts)
    elif parts[0] == "ld" and "param" in parts:
        address = operands[1]
        if isinstance(address, ptx.Address) and isinstance(address.base, ptx.Register):
            parts = tuple("local" if part == "param" else part for part in parts)
    return replace(instruction, parts=parts, operands=operands)


RULES: dict[str, Rule] = {
    "cp": _copy,
    "brx": _branch_by_index,
    "atom": _atomic,
    "red": _atomic,
    "ldmatrix": load_matrix,
    "stmatrix": store_matrix,
    "movmatrix": move_matrix,
    "wmma": lower_wmma,
    "wgmma": lower_wgmma,
    "suld": load_surface,
    "sust": store_surface,
}
