"""Machine code as a kernel that the simulator runs: what decides, and a marker where each block begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from simt import ptx
from simt.analysis.layout import Storage, storage
from simt.compiler.machine_code import Instruction, KernelCode
from simt.ptx.variables import function_addresses
from simt.sass.control_slice import NoCounts, is_counted, is_traffic, keep_deciders
from simt.sass.lift import Lift
from simt.sass.lift.control import LABEL
from simt.sass.lift.memory import LOCAL, stack_bytes
from simt.sass.lift.table import BANKS, REGISTER_TYPES
from simt.sass.opcodes import known


@dataclass(frozen=True)
class Lifted:
    """A kernel's deciding machine code as PTX.

    `block_of` gives, for each instruction of machine code, the position in `kernel.code` whose visits are its
    issues (-1: none). `accesses` has the position of each counted access to shared memory, by the number of
    its instruction; `kinds` has the same number for accesses whose opcodes begin alike, by position. `banks`
    are the constant banks that it reads, and `spaces` the memory that decides.
    """

    kernel: ptx.Kernel
    storage: Storage
    block_of: np.ndarray
    accesses: Mapping[int, int]
    kinds: np.ndarray
    banks: tuple[int, ...]
    spaces: frozenset[str]

    @property
    def needs_contents(self) -> bool:
        """Say whether the contents of arrays decide."""
        return bool(self.spaces & {"global", "generic"})

    @property
    def writes_arrays(self) -> bool:
        """Say whether what decides writes to arrays."""
        return any(i.family.writes and i.space in ("global", "generic") for i in self.kernel.code)


def lifted(code: KernelCode, parsed: ptx.Kernel, module: ptx.Module, keeps_traffic: bool = False) -> Lifted:
    """Return what decides in a kernel's machine code, and its accesses to global memory if `keeps_traffic`.

    Raises NoCounts where what decides is unknown.
    """
    if name := _calls_itself(code):
        raise NoCounts(f"`{name}` calls itself: where the lanes of a warp meet again is then not known")
    whole, starts, guards = written(code, parsed, function_addresses(module))
    names = [str(each) for each in code.instructions]
    kept = keep_deciders(whole, names, guards, keeps_traffic)
    at = {position: i for i, position in enumerate(kept.positions)}
    kernel = replace(whole, code=kept.code, labels=_moved(whole.labels, kept.positions))
    used = {o.name for i in kernel.code for o in i.operands if isinstance(o, ptx.Symbol)}
    banks = tuple(bank for bank in code.constants if BANKS.format(bank) in used)
    block_of = np.full(len(code.instructions), -1)
    for first, end, position in starts:
        block_of[first:end] = at[position]
    counted = [n for n, i in enumerate(kernel.code) if is_counted(i) or (keeps_traffic and is_traffic(i))]
    accesses = {kernel.code[number].line - 1: number for number in counted}
    if len(accesses) != len(counted):
        raise NoCounts("an instruction of its machine code makes several accesses to memory")
    names = [code.instructions[number].opcode.partition(".")[0] for number in accesses]
    kinds = np.zeros(len(kernel.code), np.int64)
    kinds[list(accesses.values())] = [names.index(name) for name in names]
    places = storage(kernel, _with_banks(module, code, banks))
    return Lifted(kernel, places, block_of, accesses, kinds, banks, kept.spaces)


def written(
    code: KernelCode, parsed: ptx.Kernel, pointers: Mapping[str, int]
) -> tuple[ptx.Kernel, list[tuple[int, int, int]], list[ptx.Guard | None]]:
    """Write a kernel's machine code as PTX; `pointers` are the numbers that stand for functions.

    Also return (first instruction, end, position of the marker) of each block, and the guard of the machine
    code that each PTX instruction belongs to.
    """
    writer = Lift(code, parsed.params[0].name if parsed.params else "", pointers)
    writer.emit("setp.eq.u32 %PT, 0, 0")
    writer.emit("setp.ne.u32 %PF, 0, 0")
    labels, starts = {}, []
    guards: list[ptx.Guard | None] = [None] * len(writer.out)
    for first, end in blocks(code):
        labels[LABEL.format(code.instructions[first].address)] = len(writer.out)
        starts.append((first, end, len(writer.out)))
        writer.number = first
        writer.emit("pmevent")
        for number in range(first, end):
            guards += [None] * (len(writer.out) - len(guards))
            writer.write(number)
            guards += [writer.guard] * (len(writer.out) - len(guards))
    kernel = ptx.Kernel(
        name=parsed.name,
        params=parsed.params,
        registers=dict(REGISTER_TYPES),
        local=[ptx.Variable(LOCAL, "b8", stack_bytes(code), 16)],
        code=writer.out,
        labels=labels,
        max_threads=parsed.max_threads,
    )
    return kernel, starts, guards + [None] * (len(writer.out) - len(guards))


def _calls_itself(code: KernelCode) -> str:
    """Return the name of a function that calls itself, perhaps by way of others, or ""."""
    starts = sorted((address, name) for name, address in code.functions.items())
    calls: dict[str, set[str]] = {}
    for each in code.instructions:
        if each.opcode.startswith("CALL.REL"):
            caller = max([name for name in starts if name[0] <= each.address], default=(0, ""))[1]
            calls.setdefault(caller, set()).add(each.operands[-1])
    for name in code.functions:
        reached, work = set[str](), [name]
        while work:
            fresh = calls.get(work.pop(), set()) - reached
            reached |= fresh
            work += fresh
        if name in reached:
            return name
    return ""


def blocks(code: KernelCode) -> Iterator[tuple[int, int]]:
    """Yield the first instruction and the end of each basic block."""
    starts = {0, *(code.at[a] for a in (*code.labels.values(), *code.functions.values()) if a in code.at)}
    for i, instruction in enumerate(code.instructions[:-1]):
        if known(instruction.opcode).end not in ("", "lanes"):
            starts.add(i + 1)
        if _by_pointer(instruction):
            starts.add(i)
    ordered = sorted(starts)
    yield from zip(ordered, [*ordered[1:], len(code.instructions)], strict=True)


def _by_pointer(instruction: Instruction) -> bool:
    """Say whether it goes where a register says: lanes with another target issue it again."""
    name = instruction.opcode.partition(".")[0]
    return name in ("BRX", "BRXU") or (name == "CALL" and " " in instruction.operands[-1])


def _moved(labels: Mapping[str, int], positions: list[int]) -> dict[str, int]:
    """Return where labels are among the instructions that are kept: each stands before a marker, which is."""
    at = {position: i for i, position in enumerate(positions)}
    return {name: at[position] for name, position in labels.items()}


def _with_banks(module: ptx.Module, code: KernelCode, banks: tuple[int, ...]) -> ptx.Module:
    more = {
        BANKS.format(bank): ("const", ptx.Variable(BANKS.format(bank), "b8", len(code.constants[bank]), 16))
        for bank in banks
    }
    return replace(module, variables={**module.variables, **more})


def bank_image(code: KernelCode, bank: int, memory: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the bytes of a constant bank; in bank 3 the variables have the values that they have now."""
    image = np.frombuffer(code.constants[bank], np.uint8).copy()
    if bank == 3:
        for name, start in code.variables.items():
            if name in memory:
                image[start : start + memory[name].nbytes] = memory[name].view(np.uint8).ravel()
    return image
