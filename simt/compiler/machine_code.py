"""The machine code (SASS) of CUDA C++ for a GPU: NVRTC assembles it, nvdisasm writes it as text.

Neither needs a GPU. What both take a second for is cached on disk. Control codes lie in the upper bits of
each 128-bit instruction (Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking",
2018).
"""

from __future__ import annotations

import base64
import io
import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from simt.compiler import nvdisasm
from simt.compiler.nvrtc import FILE_NAME, Resources, assemble, compiler_version, made, parse_resources

INSTRUCTION_BYTES = 16
_PARAM_BANK = 0x0A  # EIATTR_PARAM_CBANK in a kernel's .nv.info: where its parameters lie in constant bank 0


class Control(NamedTuple):
    """When an instruction may issue, as the assembler says it to the warp scheduler.

    `stall`: cycles until the next may issue. `yields`: the scheduler may turn to another warp. The barriers
    are numbers from 0 to 5, or None: the instruction releases `write_barrier` when its result is there, and
    `read_barrier` when its operands are read. It waits for those in `waits` before it issues.
    """

    stall: int
    yields: bool
    write_barrier: int | None
    read_barrier: int | None
    waits: tuple[int, ...]


class Instruction(NamedTuple):
    """One instruction: `predicate` is "" or like `@!P0`; `line` and `ptx_line` are 0 where none is known.

    `live` counts the general registers that are in use after it, and `control` says when it may issue.
    """

    address: int
    predicate: str
    opcode: str
    operands: tuple[str, ...]
    line: int
    ptx_line: int
    live: int | None
    control: Control

    def __str__(self) -> str:
        return " ".join(part for part in (self.predicate, self.opcode, ", ".join(self.operands)) if part)


@dataclass(frozen=True, eq=False)
class KernelCode:
    """The machine code of one kernel for one architecture, such as `sm_90`; it equals itself alone.

    `labels` and `functions` give addresses; a function is a routine of CUDA's that the kernel calls. `ptx` is
    what was assembled, and `ptx_line` of an instruction is a line of it. `constants` are the bytes of its
    constant banks (2: the compiler's own, 3: `__constant__` variables), `variables` the places of variables
    in bank 3, and `addresses` the (variable, offset) that bank 4 holds the address of, by its place there.
    Parameters begin at byte `param_start` of bank 0.
    """

    name: str
    arch: str
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    functions: dict[str, int]
    resources: Resources
    ptx: str
    constants: dict[int, bytes]
    variables: dict[str, int]
    addresses: dict[int, tuple[str, int]]
    param_start: int

    @cached_property
    def at(self) -> dict[int, int]:
        """Return the number of the instruction at each address."""
        return {instruction.address: i for i, instruction in enumerate(self.instructions)}

    @cached_property
    def opcodes(self) -> np.ndarray:
        """Return the first part of each instruction's opcode; callers must not modify it."""
        return np.array([each.opcode.partition(".")[0] for each in self.instructions])


def machine_code(
    source: str, options: Sequence[str], name_expressions: Sequence[str], arch: str
) -> dict[str, KernelCode]:
    """Return the machine code of each kernel in `source`, by lowered name (cached).

    Raises NoNvrtc or NoNvdisasm where one is not installed, and CompileError with their messages.
    """

    def make() -> bytes:
        nvdisasm.version()  # raises NoNvdisasm before the second that it takes to compile
        return disassembled(*assemble(source, options, name_expressions, arch))

    stored = made("sass", (source, options, name_expressions, arch), make, nvdisasm.version_or_shipped())
    return kernels_of(stored, arch)


def disassembled(image: bytes, log: str) -> bytes:
    """Return all that is known of the kernels of a CUBIN, as `kernels_of` reads it; `log` is ptxas's."""
    listings, resources = nvdisasm.disassemble(image), parse_resources(log)
    return json.dumps(list(_kernels(image, *listings, resources)), separators=(",", ":")).encode()


def kernels_of(stored: bytes, arch: str) -> dict[str, KernelCode]:
    """Return the machine code of each kernel, by lowered name, from what `disassembled` returned."""
    return {one["name"]: _unpacked(one, arch) for one in json.loads(stored)}


def assembler() -> str:
    """Return the versions of the assembler and the disassembler, as part of a key."""
    return f"{compiler_version()} {nvdisasm.version_or_shipped()}"


def _unpacked(stored: dict[str, Any], arch: str) -> KernelCode:
    """Make a KernelCode of what `_kernels` wrote and JSON kept."""
    texts, controls = (
        stored["texts"],
        [Control(a, b, c, d, tuple(waits)) for a, b, c, d, waits in stored["controls"]],
    )
    split = [(predicate, opcode, tuple(operands)) for predicate, opcode, operands in texts]
    instructions = tuple(
        Instruction._make((i * INSTRUCTION_BYTES, *split[text], line, ptx_line, live, controls[control]))
        for i, (text, line, ptx_line, live, control) in enumerate(zip(*stored["columns"], strict=True))
    )
    return KernelCode(
        name=stored["name"],
        arch=arch,
        instructions=instructions,
        labels=stored["labels"],
        functions=stored["functions"],
        resources=Resources(**stored["resources"]),
        ptx=stored["ptx"],
        constants={int(bank): base64.b64decode(data) for bank, data in stored["constants"].items()},
        variables=stored["variables"],
        addresses={int(place): (name, offset) for place, (name, offset) in stored["addresses"].items()},
        param_start=stored["param_start"],
    )


# ---------------------------------------------------------------------------------------------- the listings

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+),", re.M)
_LINE = re.compile(r'\s*//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_CODE = re.compile(
    r"\s*/\*([0-9a-f]{4,})\*/\s+(?:\{\s*)?(@!?U?P\w+\s+)?([^;]*?)\s*;?\s*(?:\}\s*)?/\* 0x([0-9a-f]{16}) \*/"
)
_UPPER = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/")
_LIVE = re.compile(r"/\*([0-9a-f]{4,})\*/.*?// \|\s*(\d*)\s*\|")
_LABEL = re.compile(r"([.$\w]+):")
_BRANCH = re.compile(r"`\(([^)]*)\)")


def _kernels(
    image: bytes, listing: str, live: str, resources: Mapping[str, Resources]
) -> Iterator[dict[str, Any]]:
    """Read every kernel of a CUBIN: what is needed to make a KernelCode, as JSON keeps it."""
    image_of = _Image(image)
    counts = dict(_sections(live))
    for name, text in _sections(listing):
        if name not in resources:
            continue
        rows, labels, functions = _rows(text, name)
        texts: dict[tuple[str, str, tuple[str, ...]], int] = {}
        controls: dict[Control, int] = {}
        in_use = _live_registers(counts[name])
        columns = zip(
            *(
                (
                    texts.setdefault((predicate, opcode, operands), len(texts)),
                    line,
                    ptx_line,
                    in_use.get(address),
                    controls.setdefault(_control(upper), len(controls)),
                )
                for address, predicate, opcode, operands, line, ptx_line, upper in rows
            ),
            strict=True,
        )
        yield {
            "name": name,
            "texts": list(texts),
            "controls": list(controls),
            "columns": list(columns),
            "labels": labels,
            "functions": functions,
            "resources": asdict(resources[name]),
            "ptx": image_of.ptx,
            **image_of.about(name),
        }


def _sections(listing: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each kernel, and its part of a listing."""
    starts = list(_SECTION.finditer(listing))
    ends = [start.start() for start in starts[1:]] + [len(listing)]
    for start, end in zip(starts, ends, strict=True):
        yield start[1].strip('"'), listing[start.end() : end]


_Row = tuple[int, str, str, tuple[str, ...], int, int, int]


def _rows(text: str, name: str) -> tuple[list[_Row], dict[str, int], dict[str, int]]:
    """Read a kernel's listing: its rows, its labels and the functions in it, with their addresses."""
    rows: list[_Row] = []
    labels: dict[str, int] = {}
    functions: dict[str, int] = {}
    line = ptx_line = 0
    lines = iter(text.splitlines())
    for each in lines:
        if code := _CODE.match(each):
            upper = _UPPER.match(next(lines))
            assert upper is not None
            opcode, _, rest = code[3].partition(" ")
            operands = tuple(part.strip() for part in _BRANCH.sub(r"\1", rest).split(",")) if rest else ()
            predicate = (code[2] or "").strip()
            rows.append((int(code[1], 16), predicate, opcode, operands, line, ptx_line, int(upper[1], 16)))
        elif place := _LINE.match(each):
            if place[1].startswith(".nv_debug_ptx"):
                ptx_line = int(place[2])
            elif place[1].endswith(FILE_NAME):
                line = int(place[2])
            elif (place[3] or "").endswith(FILE_NAME):
                line = int(place[4])
        elif (label := _LABEL.match(each)) and label[1] not in (name, f".text.{name}"):
            address = len(rows) * INSTRUCTION_BYTES
            (labels if label[1].startswith(".L") else functions)[label[1]] = address
            if label[1] in functions:
                line = ptx_line = 0  # a routine of CUDA's has no line of the source
    return rows, labels, functions


def _live_registers(text: str) -> dict[int, int]:
    """Return the number of general registers in use after the instruction at each address."""
    found, address = {}, 0
    for each in text.splitlines():
        if row := _LIVE.search(each):
            address = int(row[1], 16)
            found[address] = int(row[2] or 0)
    return found


def _control(upper: int) -> Control:
    """Read the control codes in the upper 64 bits of an instruction."""
    bits = upper >> 41
    write, read, waits = bits >> 5 & 7, bits >> 8 & 7, bits >> 11 & 63
    return Control(
        stall=bits & 15,
        yields=not bits >> 4 & 1,
        write_barrier=None if write == 7 else write,
        read_barrier=None if read == 7 else read,
        waits=tuple(i for i in range(6) if waits >> i & 1),
    )


# ------------------------------------------------------------------------------------------------- the image


class _Image:
    """A CUBIN, which is an ELF file."""

    def __init__(self, image: bytes) -> None:
        from elftools.elf.elffile import ELFFile

        self.elf = ELFFile(io.BytesIO(image))
        self.sections = {section.name: section for section in self.elf.iter_sections()}
        self.symbols = list(self.sections[".symtab"].iter_symbols())  # type: ignore[attr-defined]

    @property
    def ptx(self) -> str:
        """Return the PTX that was assembled, as the line numbers of the machine code count it."""
        section = self.sections.get(".nv_debug_ptx_txt")
        return section.data().rstrip(b"\0").replace(b"\0", b"\n").decode(errors="replace") if section else ""

    def about(self, kernel: str) -> dict[str, Any]:
        """Return what is known of a kernel's constant banks, as JSON keeps it."""
        names = {2: f".nv.constant2.{kernel}", 3: ".nv.constant3"}
        banks = {bank: self.sections[name].data() for bank, name in names.items() if name in self.sections}
        return {
            "constants": {bank: base64.b64encode(data).decode() for bank, data in banks.items()},
            "variables": self._variables(".nv.constant3"),
            "addresses": self._addresses(),
            "param_start": self._param_start(kernel),
        }

    def _variables(self, section: str) -> dict[str, int]:
        numbers = [i for i, each in enumerate(self.elf.iter_sections()) if each.name == section]
        return {
            symbol.name: symbol["st_value"]
            for symbol in self.symbols
            if symbol["st_shndx"] in numbers and symbol["st_info"]["type"] == "STT_OBJECT"
        }

    def _addresses(self) -> dict[int, tuple[str, int]]:
        """Return the (variable, offset) whose address each place of constant bank 4 holds."""
        found = {}
        for prefix in (".rel", ".rela"):  # sm_75 to sm_89 have the first
            section = self.sections.get(f"{prefix}.nv.constant4")
            bank = self.sections[".nv.constant4"].data() if section else b""
            for entry in self._relocations(section):
                place, number, addend = entry
                if prefix == ".rel":
                    addend = int.from_bytes(bank[place : place + 8], "little")
                found[place] = self.symbols[number].name, addend
        return found

    def _relocations(self, section: Any) -> Iterator[tuple[int, int, int]]:
        """Yield (place, number of the symbol, addend) of relocations, which pyelftools refuses for CUDA."""
        if section is None:
            return
        size = section["sh_entsize"]
        data = section.data()
        for start in range(0, len(data), size):
            place, info = struct.unpack_from("<QQ", data, start)
            addend = struct.unpack_from("<q", data, start + 16)[0] if size == 24 else 0
            yield place, info >> 32, addend

    def _param_start(self, kernel: str) -> int:
        """Return where in constant bank 0 the parameters begin; .nv.info has (format, kind, size, value)s."""
        data = self.sections[f".nv.info.{kernel}"].data()
        place = 0
        while place < len(data):
            form, kind, size = struct.unpack_from("<BBH", data, place)
            if form == 4 and kind == _PARAM_BANK:
                return int(struct.unpack_from("<IHH", data, place + 4)[1])
            place += 4 + (size if form == 4 else 0)
        return 0
