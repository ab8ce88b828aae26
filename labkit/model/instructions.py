"""What a kernel's PTX consists of: the instructions of a source line, and what a thread runs.

PTX is what NVIDIA's compiler makes of a kernel, an instruction a line, before registers are dealt out. The
assembler that does so also merges, moves and drops instructions: a GPU runs fewer.
"""

import re
from collections import Counter

from labkit.compiler.nvrtc import compile_ptx
from labkit.simt import ptx
from labkit.simt.module import AnyKernel, Kernel

MOVES, ARITHMETIC, INDEX, CONTROL = "loads, stores", "multiply-adds", "index arithmetic", "guards, jumps"
KINDS = (MOVES, ARITHMETIC, INDEX, CONTROL)

_LOC = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_LABEL = re.compile(r"(\$\w+):")
_INSTRUCTION = re.compile(r"\s*((?:@!?%\w+\s+)?[a-z]\w*(?:\.\w+)*(?:\s.*)?;)")


def listing(kernel: AnyKernel, *phrases: str) -> str:
    """PTX of the source lines that hold one of `phrases`, in the compiler's order, with the targets of jumps.

    Raises ValueError where no line, or none with code of its own, holds one.
    """
    module = kernel.module
    wanted = {
        number
        for number, line in enumerate(module.code.splitlines(), 1)
        if any(phrase in line for phrase in phrases)
    }
    shown, current = [], 0
    for line in compile_ptx(module.code, module.options, module.name_expressions).text.splitlines():
        if found := _LOC.match(line):
            current = int(found[1])
        elif found := _LABEL.match(line):
            shown.append(f"{found[1]}:")
        elif current in wanted and (found := _INSTRUCTION.match(line)):
            shown.append("    " + " ".join(found[1].split()))
    targets = {target for line in shown for target in re.findall(r"bra(?:\.\w+)* (\$\w+)", line)}
    kept = [line for line in shown if not line.endswith(":") or line[:-1] in targets]
    if not kept:
        raise ValueError(f"no source line with {' or '.join(map(repr, phrases))} has PTX instructions.")
    return "\n".join(kept)


def kind(instruction: ptx.Instruction) -> str:
    """One of KINDS. Comparisons, barriers and the end count with the jumps, parameters with the indices."""
    name = instruction.parts[0]
    if name in ("ld", "st") and "param" not in instruction.parts:
        return MOVES
    if name in ("bra", "ret", "exit", "bar", "barrier", "setp") or "pred" in instruction.parts:
        return CONTROL
    if name in ("fma", "add", "sub", "mul", "mad") and instruction.type in ("f32", "f64"):
        return ARITHMETIC
    return INDEX


def per_thread(kernel: AnyKernel, trips: int = 1) -> dict[str, int]:
    """Instructions of each kind that a thread runs where no guard keeps it out, each loop `trips` times.

    A loop is what a jump back encloses; kernels with loops in loops are not meant.
    """
    simulated = kernel.simulated
    assert isinstance(simulated, Kernel)  # a sandbox keeps its instructions to itself
    parsed = simulated._parsed
    times = [1] * len(parsed.code)
    for at, instruction in enumerate(parsed.code):
        target = instruction.operands[0] if instruction.parts[0] == "bra" else None
        if isinstance(target, ptx.Symbol) and (start := parsed.labels[target.name]) <= at:
            times[start : at + 1] = [trips] * (at + 1 - start)
    found: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
    for instruction, count in zip(parsed.code, times, strict=True):
        found[kind(instruction)] += count
    return dict(found)
