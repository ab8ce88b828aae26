"""The machine code of one kernel for one GPU, as a student reads it: `kernel.sass("H200")`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from simt.common.errors import CompileError
from simt.common.occupancy import Gpu, gpus
from simt.common.occupancy import gpu as find_gpu
from simt.compiler.machine_code import Instruction, KernelCode
from simt.compiler.nvrtc import MissingTool, supported_architectures
from simt.compiler.origin import Origin
from simt.sass.opcodes import kind, known

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Sass:
    """Machine code of a kernel for `gpu`, and the `source` lines that it came from.

    `str()` is a listing. `table` has one row per instruction: its address, predicate, opcode and operands;
    the line of the source and of the PTX that it came from (0: none); its basic block; the general registers
    in use after it; and its control codes. `stall` is in cycles; `waits` are the barriers it waits for.
    """

    gpu: Gpu
    code: KernelCode
    source: Sequence[str]

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """Return the instructions in the order of their addresses."""
        return self.code.instructions

    @property
    def ptx(self) -> str:
        """Return the PTX that was assembled."""
        return self.code.ptx

    @property
    def registers(self) -> int:
        """Return the registers per thread."""
        return self.code.resources.registers

    @property
    def shared_bytes(self) -> int:
        """Return the static shared memory per block."""
        return self.code.resources.shared_bytes

    @property
    def spills(self) -> int:
        """Return the bytes per thread that are stored to local memory because registers ran out."""
        return self.code.resources.spill_store_bytes

    @cached_property
    def counts(self) -> pd.Series[int]:
        """Return how many instructions there are of each kind, most first, without the padding at the end."""
        import pandas as pd

        kinds = pd.Series([kind(instruction.opcode) for instruction in self.instructions[: self.used]])
        return kinds.value_counts().rename("instructions").rename_axis("kind")

    @cached_property
    def used(self) -> int:
        """Return the number of instructions before the padding: a branch to itself, and NOPs."""
        end = len(self.instructions)
        while end and self.instructions[end - 1].opcode == "NOP":
            end -= 1
        return end - 1 if end and self._is_endless(end - 1) else end

    def _is_endless(self, number: int) -> bool:
        last = self.instructions[number]
        return last.opcode == "BRA" and self.code.labels.get(last.operands[-1]) == last.address

    @cached_property
    def blocks(self) -> list[int]:
        """Return the number of the basic block of each instruction."""
        starts = {*self.code.labels.values(), *self.code.functions.values()}
        numbers, number = [], 0
        for i, instruction in enumerate(self.instructions):
            ends = i and known(self.instructions[i - 1].opcode).end
            number += bool(i and (ends or instruction.address in starts))
            numbers.append(number)
        return numbers

    @cached_property
    def table(self) -> pd.DataFrame:
        """Return one row per instruction."""
        import pandas as pd

        rows = [
            {
                "address": f"{each.address:04x}",
                "predicate": each.predicate,
                "opcode": each.opcode,
                "operands": ", ".join(each.operands),
                "line": each.line,
                "ptx_line": each.ptx_line,
                "block": block,
                "live_registers": each.live,
                **each.control._asdict(),
            }
            for each, block in zip(self.instructions, self.blocks, strict=True)
        ]
        may_be_missing = ("live_registers", "write_barrier", "read_barrier")
        return pd.DataFrame(rows).astype(dict.fromkeys(may_be_missing, "Int64"))

    def __str__(self) -> str:
        return "\n".join([self.summary, *self._listed()])

    __repr__ = __str__

    @property
    def summary(self) -> str:
        """Return one line: for which GPU, how long, how many registers, how much shared memory, spills."""
        return (
            f"{self.code.name} for {self.gpu.name} ({self.code.arch}): {self.used} instructions, "
            f"{self.registers} registers, {self.shared_bytes} bytes of shared memory, "
            f"{self.spills} bytes spilled"
        )

    def _listed(self) -> list[str]:
        """Return the listing: under each line of the source the instructions that follow from it."""
        lines, at = [], 0
        labels = {address: name for name, address in {**self.code.labels, **self.code.functions}.items()}
        for each in self.instructions[: self.used]:
            if each.address in labels:
                lines.append(f"{labels[each.address]}:")
            if each.line != at and 0 < each.line <= len(self.source):
                lines.append(f"  // line {each.line}: {self.source[each.line - 1].strip()}")
            at = each.line
            text = f"{each.predicate:>5} {each.opcode} {', '.join(each.operands)}".rstrip()
            lines.append(f"  {each.address:04x} {text}")
        return lines


def sass(origin: Origin, lowered: str, gpu: str) -> Sass:
    """Return the machine code of the kernel `lowered` for a GPU of gpus.csv (cached).

    Raises ValueError for an unknown GPU, CompileError for one that the compiler makes no code for, and
    NoNvrtc or NoNvdisasm where one of NVIDIA's tools is missing.
    """
    on_gpu = find_gpu(gpu)
    try:
        code = origin.machine_code(on_gpu.arch)[lowered]
    except MissingTool:
        raise
    except CompileError as error:  # asked only now, because the answer takes the compiler's library
        known = [f"sm_{number}" for number in supported_architectures()]
        if on_gpu.arch in known:
            raise
        fit = ", ".join(each.name for each in gpus() if each.arch in known)
        raise CompileError(
            f"the compiler here makes no machine code for {on_gpu.name} ({on_gpu.arch}); it does for: {fit}"
        ) from error
    return Sass(on_gpu, code, origin.code.splitlines())
