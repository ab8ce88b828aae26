"""Parse PTX text into modules, kernels and instructions. Covers what NVRTC writes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from simt import ptx
from simt.common.errors import SimtError
from simt.compiler.debug_info import has_debug_info
from simt.ptx.operands import CARRY, immediate, read_instruction


def parse(text: str, first_lines: Mapping[str, int] | None = None) -> ptx.Module:
    """Parse the PTX text of one module. Raises SimtError for PTX that it does not know.

    `first_lines` says, by path, which files are the student's, and how many lines to add to those of each.
    Without it there is one file.
    """
    return _Parser(text, first_lines or {}).module


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_HEADER = re.compile(r"\.(entry|func)\b")
_SIGNATURE = re.compile(
    r"\s*(?:\((?P<results>[^)]*)\))?\s*(?P<name>[\w$]+)\s*(?:\((?P<params>[^)]*)\))?(?P<attributes>.*)", re.S
)
_REGISTERS = re.compile(r"\.reg\s*\.(\w+)\s+(.*)$", re.S)
_VARIABLE = re.compile(
    r"(?:\.(?:visible|extern|weak|common)\s+)?\.(?P<space>param|shared|local|global|const)\s+"
    r"(?:\.attribute\([^)]*\)\s+)?(?:\.align\s+(?P<align>\d+)\s+)?"
    r"\.(?P<type>\w+)\s+(?:\.ptr\b(?:\s*\.\w+(?:\s+\d+)?)*\s*)?(?P<name>[\w$]+)(?P<dims>(?:\[\w*\])*)\s*(?:=\s*(?P<init>.*))?$",
    re.S,
)
_LABEL = re.compile(r"\s*([$\w]+)\s*:(?!:)")
_LIBRARIES = "4cuda|26__nv_atomic|18cooperative_groups|6nvcuda|3cub|6thrust|2cg"
_LOC = re.compile(
    r"\s*\.loc\s+(?P<at>\d+\s+\d+\s+\d+)(?:[^\n]*?inlined_at\s+(?P<caller>\d+\s+\d+\s+\d+))?[^\n]*"
)
MOST_CALLS = 20  # callees listed for one instruction
_DEBUG_LABEL = re.compile(r"^\.b64\s+(\$L__\w+)", re.M)
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.M)


@dataclass
class _Scope:
    """A scope in a body: its number, where its code starts, and its own registers and labels."""

    number: int
    start: int
    registers: dict[str, ptx.Register] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def rename_labels(self, kernel: ptx.Kernel) -> None:
        """Make the branches of the scope go to the scope's own labels."""
        for i, instruction in enumerate(kernel.code[self.start :], self.start):
            if instruction.family.end == "branch":
                operands = tuple(
                    ptx.Symbol(self.labels.get(o.name, o.name)) if isinstance(o, ptx.Symbol) else o
                    for o in instruction.operands
                )
                kernel.code[i] = replace(instruction, operands=operands)
        for table in self.labels.values():
            if table in kernel.tables:
                names = kernel.tables[table]
                kernel.tables[table] = tuple(self.labels.get(name, name) for name in names)


class _Parser:
    def __init__(self, text: str, first_lines: Mapping[str, int]) -> None:
        self.module, self.inner_scopes = ptx.Module(), 0
        text = _COMMENT.sub("", text)
        self.first_lines = _first_lines(text, first_lines)
        # Debug code says with labels where a variable lives.
        self.kept_labels = set(_DEBUG_LABEL.findall(text)) if has_debug_info(text) else set()
        position = 0
        while header := _HEADER.search(text, position):
            self._module_variables(text[position : header.start()])
            position = self._function(text, header)
        self._module_variables(text[position:])
        self._forget_the_libraries_variables()

    def _module_variables(self, text: str) -> None:
        for statement in text.split(";"):
            start = re.search(r"\.(global|const|shared)\b", statement)
            if start and (variable := _variable(statement[start.start() :].strip())):
                self.module.variables[variable.name] = (start[1], variable)

    def _forget_the_libraries_variables(self) -> None:
        """Drop the hundreds of constants that headers of the cuda:: library define and no code reads."""
        functions = [*self.module.kernels.values(), *self.module.functions.values()]
        used = {name for function in functions for i in function.code for name in _symbols(i.operands)}
        used |= {name for _, variable in self.module.variables.values() for _, name, _ in variable.addresses}
        for name in [name for name in self.module.variables if name not in used]:
            if re.match(rf"_Z(N?K?|N\d+_INTERNAL_\w*?_f)({_LIBRARIES})", name):
                del self.module.variables[name]

    def _function(self, text: str, header: re.Match[str]) -> int:
        """Parse the function whose header starts here, and return the position after it."""
        body = text.find("{", header.end())
        semicolon = text.find(";", header.end())
        if header[1] == "func" and (body < 0 or 0 <= semicolon < body):
            return semicolon + 1  # only a declaration
        end = _matching_brace(text, body)
        match = _SIGNATURE.match(text[header.end() : body])
        if match is None:
            raise SimtError(f"the simulator does not know this PTX function: {text[header.start() : body]}")
        kernel = ptx.Kernel(
            match["name"], _variables(match["params"] or ""), _variables(match["results"] or "")
        )
        if limit := re.search(r"\.maxntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", match["attributes"]):
            x, y, z = (int(n or 1) for n in limit.groups())
            kernel.max_threads = x * y * z
        if cluster := re.search(
            r"\.reqnctapercluster\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", match["attributes"]
        ):
            x, y, z = (int(n or 1) for n in cluster.groups())
            kernel.cluster = x, y, z
        kernel.registers[CARRY.name] = "pred"
        self._body(kernel, text[body + 1 : end - 1])
        (self.module.kernels if header[1] == "entry" else self.module.functions)[kernel.name] = kernel
        return end

    def _body(self, kernel: ptx.Kernel, text: str) -> None:
        line, label = 0, ""
        calls: tuple[int, ...] = ()
        callers: dict[tuple[int, ...], tuple[int, ...]] = {}  # by place: the place that calls its function
        scopes: list[_Scope] = []  # inner scopes `{ }`, whose registers and labels may hide outer ones
        for kind, part in _statements(text):
            if kind == "loc":
                at, caller = (tuple(map(int, part.split()[i : i + 3])) for i in (0, 3))
                callers[at] = caller
                # Line 0 and lines of headers keep the student's last line, which is where the code came from.
                if at[0] in self.first_lines and at[1]:
                    line, calls = self.first_lines[at[0]] + at[1], self._calls(caller, callers)
            elif kind == "label":
                is_outer = not scopes or part in self.kept_labels
                label = (
                    part if is_outer else scopes[-1].labels.setdefault(part, f"{part}~{scopes[-1].number}")
                )
                kernel.labels[label] = len(kernel.code)
            elif kind == "open":
                self.inner_scopes += 1
                scopes.append(_Scope(self.inner_scopes, len(kernel.code)))
            elif kind == "close":
                scopes.pop().rename_labels(kernel)
            elif scopes and (registers := _REGISTERS.match(part)):
                for name in _register_names(registers[2]):
                    inner = ptx.Register(f"%{scopes[-1].number}~{name.lstrip('%')}")
                    kernel.registers[inner.name], scopes[-1].registers[name] = registers[1], inner
            elif part.startswith(".branchtargets"):
                kernel.tables[label] = tuple(name.strip() for name in part.split(None, 1)[1].split(","))
            elif part.startswith("."):
                self._declaration(kernel, part)
            else:
                instruction = replace(read_instruction(part, line), calls=calls)
                kernel.code.append(_in_scopes(instruction, [s.registers for s in scopes]))
        used = {o.name for i in kernel.code for o in i.operands if isinstance(o, ptx.Symbol)}
        used.update(name for table in kernel.tables.values() for name in table)
        kernel.labels = {
            name: place for name, place in kernel.labels.items() if name in used or name in self.kept_labels
        }

    def _calls(
        self, caller: tuple[int, ...], callers: dict[tuple[int, ...], tuple[int, ...]]
    ) -> tuple[int, ...]:
        """Return the lines of the source that call the function in which code stands, one in the other."""
        lines: list[int] = []
        while caller and len(lines) < MOST_CALLS:
            if caller[0] in self.first_lines:
                lines.append(self.first_lines[caller[0]] + caller[1])
            caller = callers.get(caller, ())
        return tuple(lines)

    def _declaration(self, kernel: ptx.Kernel, text: str) -> None:
        if registers := _REGISTERS.match(text):
            for name in registers[2].split(","):
                kernel.registers[re.sub(r"<\d+>", "", name.strip())] = registers[1]
        elif (variable := _variable(text)) and text.lstrip(".").startswith(("shared", "local")):
            (kernel.shared if ".shared" in text else kernel.local).append(variable)
        elif not text.startswith((".pragma", ".param", ".callprototype")):
            raise SimtError(f"the simulator does not know this PTX directive: {text.split(chr(10))[0]}")


def return_directly(kernel: ptx.Kernel) -> None:
    """Turn branches to a lone `ret` into returns, so that lanes that leave early wait nowhere."""
    for i, instruction in enumerate(kernel.code):
        if instruction.parts[0] == "bra" and isinstance(target := instruction.operands[0], ptx.Symbol):
            place = kernel.labels[target.name]
            if (
                place < len(kernel.code)
                and kernel.code[place].parts == ("ret",)
                and not kernel.code[place].guard
            ):
                kernel.code[i] = replace(instruction, parts=("ret",), operands=())


def _first_lines(text: str, first_lines: Mapping[str, int]) -> dict[int, int]:
    """Return, by `.file` number, how many lines to add to those of a student's source; headers have none."""
    files = {int(number): path for number, path in _FILE.findall(text)}
    if first_lines:
        return {number: first_lines[path] for number, path in files.items() if path in first_lines}
    return {next((n for n, path in sorted(files.items()) if path.endswith("kernel.cu")), 1): 0}


def _statements(text: str) -> Iterator[tuple[str, str]]:
    """Split a body into pairs (kind, text); kinds are "loc", "label", "open", "close" and "statement"."""
    position = 0
    while position < len(text):
        if loc := _LOC.match(text, position):
            yield "loc", f"{loc['at']} {loc['caller'] or ''}"
            position = loc.end()
        elif label := _LABEL.match(text, position):
            yield "label", label[1]
            position = label.end()
        elif text[position] in "{}":
            yield ("open" if text[position] == "{" else "close"), ""
            position += 1
        elif text[position].isspace() or text[position] == ";":
            position += 1
        else:
            end = text.find(";", position)
            yield "statement", text[position : end if end >= 0 else len(text)].strip()
            position = end + 1 if end >= 0 else len(text)


def _variables(text: str) -> list[ptx.Variable]:
    """Parse the variables listed in a signature."""
    return [variable for part in text.split(",") if (variable := _variable(part.strip()))]


def _symbols(operands: tuple[ptx.Operand, ...]) -> Iterator[str]:
    for operand in operands:
        if isinstance(operand, ptx.Address):
            operand = operand.base
        if isinstance(operand, ptx.Symbol):
            yield operand.name
        elif isinstance(operand, ptx.Vector):
            yield from _symbols(operand.items)


def _register_names(text: str) -> list[str]:
    """Return the names in a declaration; a family such as `%r<3>` gives each of its names."""
    names = []
    for name in (part.strip() for part in text.split(",")):
        family = re.fullmatch(r"(.*)<(\d+)>", name)
        names += [f"{family[1]}{i}" for i in range(int(family[2]))] if family else [name]
    return names


def _in_scopes(instruction: ptx.Instruction, scopes: list[dict[str, ptx.Register]]) -> ptx.Instruction:
    """Give registers of inner scopes their own names (in `asm` they need no %)."""
    hidden = {name: register for scope in scopes for name, register in scope.items()}
    if not hidden:
        return instruction

    def rename(operand: ptx.Operand) -> ptx.Operand:
        return (
            hidden.get(operand.name, operand) if isinstance(operand, ptx.Register | ptx.Symbol) else operand
        )

    return ptx.mapped(instruction, rename)


def _matching_brace(text: str, opening: int) -> int:
    depth = 0
    for brace in re.finditer(r"[{}]", text[opening:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return opening + brace.end()
    raise SimtError("PTX ends inside a function body")


def _variable(text: str) -> ptx.Variable | None:
    match = _VARIABLE.match(text)
    if match is None:
        return None
    count = 1
    for dimension in re.findall(r"\[(\w*)\]", match["dims"]):
        count *= int(dimension or 0)  # `[]` is an extern shared array, sized at launch
    item = ptx.TYPE_BYTES[match["type"]]
    values, addresses = _initial(match["init"] or "", match["type"])
    return ptx.Variable(
        match["name"], match["type"], count * item, int(match["align"] or item), values, addresses
    )


def _initial(text: str, type_: str) -> tuple[bytes, tuple[tuple[int, str, int], ...]]:
    """Return the bytes of an initial value and the addresses in it: `generic(x)+8`, or a function's name."""
    size = ptx.TYPE_BYTES[type_]
    values, addresses = b"", []
    for item in (part.strip() for part in text.strip("{} \n\t").split(",") if part.strip(" {}\n\t")):
        word = item.strip("{} \n\t")
        if number := immediate(word):
            values += (number.value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
            continue
        address = re.fullmatch(r"(?:generic\()?([A-Za-z_$][\w$]*)\)?\s*(?:\+\s*(-?\d+))?", word)
        if address is None or size != 8:
            raise SimtError(f"the simulator does not know this initial value of a variable: {word[:60]}")
        addresses.append((len(values), address[1], int(address[2] or 0)))
        values += bytes(size)
    return values, tuple(addresses)
