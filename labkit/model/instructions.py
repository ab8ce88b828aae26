"""What a kernel's PTX consists of: the instructions of a source line, and what a thread runs.

NVIDIA's compiler turns a kernel into PTX, one instruction per line, before registers are assigned. The
assembler that assigns them also merges, moves and drops instructions, so a GPU runs fewer.
"""

import re
from collections import Counter

from simt import ptx
from simt.compiler.nvrtc import compile_ptx
from simt.module import AnyKernel, Kernel

MOVES, ARITHMETIC, INDEX, CONTROL = "loads, stores", "multiply-adds", "index arithmetic", "guards, jumps"
KINDS = (MOVES, ARITHMETIC, INDEX, CONTROL)

_LOC = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_LABEL = re.compile(r"(\$\w+):")
_INSTRUCTION = re.compile(r"\s*((?:@!?%\w+\s+)?[a-z]\w*(?:\.\w+)*(?:\s.*)?;)")


def listing(kernel: AnyKernel, *phrases: str) -> str:
    """Return the PTX of the source lines that contain one of `phrases`, with the targets of jumps.

    The order is the compiler's. Raises ValueError if no line, or none with code of its own, contains one.
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
    """Return one of KINDS. Comparisons, barriers and the end count as jumps, parameters as indices."""
    name = instruction.parts[0]
    if name in ("ld", "st") and "param" not in instruction.parts:
        return MOVES
    if name in ("bra", "ret", "exit", "bar", "barrier", "setp") or "pred" in instruction.parts:
        return CONTROL
    if name in ("fma", "add", "sub", "mul", "mad") and instruction.type in ("f32", "f64"):
        return ARITHMETIC
    return INDEX


def per_thread(kernel: AnyKernel, trips: int = 1) -> dict[str, int]:
    """Count the instructions of each kind that a thread runs where no guard holds it back.

    Each loop runs `trips` times. A loop is what a backward jump encloses; nested loops are not supported.
    """
    simulated = kernel.simulated
    assert isinstance(simulated, Kernel)  # a sandbox keeps its instructions to itself
    parsed = simulated.parsed
    times = [1] * len(parsed.code)
    for at, instruction in enumerate(parsed.code):
        target = instruction.operands[0] if instruction.parts[0] == "bra" else None
        if isinstance(target, ptx.Symbol) and (start := parsed.labels[target.name]) <= at:
            times[start : at + 1] = [trips] * (at + 1 - start)
    found: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
    for instruction, count in zip(parsed.code, times, strict=True):
        found[kind(instruction)] += count
    return dict(found)
