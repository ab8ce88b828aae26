"""Source, PTX and machine code of a kernel as linked columns of HTML, without a script.

Each line is a `<span>` in a `<pre>`, so that the columns can be read where neither style nor script comes
through, as on GitHub. `data-k` holds a line's keys, the closest first: `p12` is line 12 of the PTX, `s5`
line 5 of the source, `r7` row 7 of a comparison. Lines with a key in common belong together; page/code.js
marks them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from simt.compiler.machine_code import Instruction
from simt.compiler.nvrtc import FILE_NAME
from simt.sass.listing import Sass

LEGEND = (
    "stall: cycles until the next instruction may issue. live: registers in use after it. "
    "became: instructions of machine code that a line became. issued: by all warps of the profiled launch."
)
HIDDEN_PTX = (".loc", ".file", ".section", ".b8", ".b16", ".b32", ".b64", "$L__info", "//", ".version")
_LOC = re.compile(r"\s*\.loc\s+(\d+) (\d+) \d+(?:.*inlined_at (\d+) (\d+))?")
_FILE = re.compile(r'\s*\.file\s+(\d+) "(.*?)"', re.M)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")


@dataclass(frozen=True)
class Issues:
    """How often a launch issued each instruction of machine code, or why that is not known."""

    issued: Sequence[int] | None = None
    why: str = ""
    by_line: Mapping[int, int] | None = None  # at PTX level, by line of the source

    @property
    def lines_title(self) -> str:
        """Return what heads the counts of the source's lines."""
        return "issued" if self.issued is not None else "PTX run"


def columns(sass: Sass, ptx: str, issues: Issues | None = None) -> str:
    """Return the head and the three columns of a kernel; `ptx` is its PTX with `.loc` lines."""
    issues = issues or Issues()
    code = sass.instructions[: sass.used]
    became = Counter(each.line for each in code)
    by_line = issues.by_line
    if issues.issued is not None:
        summed: Counter[int] = Counter()
        for each, count in zip(code, issues.issued, strict=False):
            summed[each.line] += count
        by_line = summed
    lines = ptx_lines(sass, ptx)
    parts = [
        _source(sass.source, became, by_line, issues.lines_title),
        _ptx(sass.ptx.splitlines(), lines, sass.code.name),
        _sass(sass, issues.issued),
    ]
    notes = [issues.why] if issues.why else []
    if not any(became[line] for line in became if line):
        notes.append("This machine code has no line information: it cannot be linked to the source.")
    return head(sass) + _notes(notes) + grid(parts)


def without_sass(source: Sequence[str], ptx: str, kernel: str, why: str) -> str:
    """Return the source and the PTX, and why there is no machine code."""
    lines = _lines_of(ptx)
    became = Counter(line for line, text in zip(lines, ptx.splitlines(), strict=True) if _is_code(text))
    parts = [_source(source, became, None, "", "PTX"), _ptx(ptx.splitlines(), lines, kernel)]
    return _notes([why]) + grid(parts)


def head(sass: Sass) -> str:
    """Return registers, spills, shared memory and the instructions by kind."""
    used = sass.code.resources
    figures = (
        f"{sass.used} instructions, {sass.registers} registers, {sass.shared_bytes} bytes of shared memory, "
        f"spills: {used.spill_store_bytes} bytes stored, {used.spill_load_bytes} loaded"
    )
    counts = "".join(f"<li>{escape(str(kind))} <b>{count}</b></li>" for kind, count in kinds(sass).items())
    return (
        f'<p class="lkc-head"><b>{escape(sass.code.name)}</b> for {escape(sass.gpu.name)} '
        f"({sass.code.arch}): "
        f'{figures}</p><ul class="lkc-kinds" aria-label="instructions by kind">{counts}</ul>'
    )


def kinds(sass: Sass) -> dict[str, int]:
    """Return the instructions by kind, most first."""
    return {str(kind): int(count) for kind, count in sass.counts.items()}


# ------------------------------------------------------------------------------------------------ the columns


def _source(
    source: Sequence[str],
    became: Mapping[int, int],
    counts: Mapping[int, int] | None,
    title: str,
    made: str = "became",
) -> str:
    most = max((counts or {0: 0}).values(), default=0)
    wide = _room(title, most)
    rows = []
    for number, text in enumerate(source, 1):
        count = (counts or {}).get(number, 0)
        issued = f" {count or '':>{wide}}" if counts is not None else ""
        rows.append(
            row(
                f"s{number}" if became.get(number) else "",
                f"{number:>4} {became.get(number) or '':>6}{issued}  {text.expandtabs(4)}",
                count / most if most else 0,
            )
        )
    names = f"line {made:>6}" + (f" {title:>{wide}}" if counts is not None else "") + "  source"
    return column("source", names, rows)


def _ptx(text: Sequence[str], lines: Sequence[int], kernel: str) -> str:
    rows, inside = [], kernel
    for number, (each, line) in enumerate(zip(text, lines, strict=True), 1):
        if found := _ENTRY.search(each):
            inside = found[1]
        shown = each.strip()
        if inside == kernel and shown and not shown.startswith(HIDDEN_PTX):
            keys = (
                f"p{number} s{line}" if line and _is_code(shown) else f"p{number}" if _is_code(shown) else ""
            )
            flat = shown.replace("\t", " ")
            rows.append(row(keys, f"{number:>4}  {flat if flat[0] in '$.{}' else '  ' + flat}"))
        if shown == "}":
            inside = kernel  # what follows is shown, unless it is another kernel
    return column("PTX", "line  PTX", rows)


def _sass(sass: Sass, issued: Sequence[int] | None) -> str:
    labels = {address: name for name, address in {**sass.code.labels, **sass.code.functions}.items()}
    most = max(issued, default=0) if issued is not None else 0
    wide = _room("issued", most)
    rows = []
    for i, each in enumerate(sass.instructions[: sass.used]):
        if each.address in labels:
            rows.append(row("", f"{labels[each.address]}:"))
        keys = (f"p{each.ptx_line} " if each.ptx_line else "") + (f"s{each.line}" if each.line else "")
        count = int(issued[i]) if issued is not None else 0
        run = f" {count:>{wide}}" if issued is not None else ""
        live = "" if each.live is None else int(each.live)
        text = f"{each.address:04x} {each.control.stall:>5} {live:>4}{run}  {instruction(each)}"
        rows.append(row(keys.strip() or "x", text, count / most if most else 0))
    names = "addr stall live" + (f" {'issued':>{wide}}" if issued is not None else "") + "  SASS"
    return column("SASS", names, rows)


def _room(title: str, most: int) -> int:
    """Return the width of a column of counts."""
    return max(len(title), len(str(most)))


def instruction(each: Instruction) -> str:
    """Return an instruction with room for its predicate."""
    return f"{each.predicate:>5} {each.opcode} {', '.join(each.operands)}".rstrip()


def row(keys: str, text: str, heat: float = 0, kind: str = "") -> str:
    """Return one line; `heat` from 0 to 1 shades it."""
    attributes = f' data-k="{keys}"' if keys else ""
    if kind:
        attributes += f' class="{kind}"'
    if heat >= 0.02:
        attributes += f' style="--heat:{heat:.2f}"'
    return f"<span{attributes}>{_escaped(text)}\n</span>"


@lru_cache(maxsize=1 << 15)
def _escaped(text: str) -> str:
    return escape(text, quote=False)


def column(name: str, names: str, rows: Iterable[str]) -> str:
    """Return one column under its name and those of its figures."""
    return (
        f'<div class="lkc-column"><pre class="lkc-names">{escape(names)}</pre>'
        f'<pre class="lkc-lines" data-name="{escape(name)}">{"".join(rows)}</pre></div>'
    )


def grid(parts: Sequence[str], legend: str = LEGEND) -> str:
    """Return columns beside each other, and what their figures mean."""
    return f'<div class="lkc-columns">{"".join(parts)}</div><p class="lkc-legend">{legend}</p>'


def _notes(texts: Sequence[str]) -> str:
    return "".join(f'<p class="lkc-note">{escape(text)}</p>' for text in texts)


# -------------------------------------------------------------------------------------- lines of the source


def ptx_lines(sass: Sass, ptx: str) -> list[int]:
    """Return the source line of each line of the PTX that was assembled (0: none).

    Its `.loc` lines are blank. They stand in `ptx`, the compiler's for one architecture; where this is
    another text, the machine code says which lines belong together.
    """
    return _ptx_lines(sass.ptx, ptx, tuple((each.ptx_line, each.line) for each in sass.instructions))


@lru_cache(maxsize=8)
def _ptx_lines(assembled: str, ptx: str, pairs: tuple[tuple[int, int], ...]) -> list[int]:
    text, other = assembled.splitlines(), ptx.splitlines()
    same = all(a == b or not a.strip() or a.startswith(".target") for a, b in zip(text, other, strict=False))
    if same and len(other) >= len(text):
        return _lines_of(ptx)[: len(text)]
    known = {ptx_line: line for ptx_line, line in pairs if ptx_line and line}
    return [known.get(number, 0) for number in range(1, len(text) + 1)]


def _lines_of(ptx: str) -> list[int]:
    """Return the source line of each line of a PTX with `.loc` lines."""
    own = {number for number, name in _FILE.findall(ptx) if name.endswith(FILE_NAME)}
    lines, at = [], 0
    for text in ptx.splitlines():
        if ".loc" in text and (found := _LOC.match(text)):
            if found[1] in own:
                at = int(found[2])
            elif found[3] in own:
                at = int(found[4])
        elif ".entry" in text:
            at = 0
        lines.append(at)
    return lines


def _is_code(text: str) -> bool:
    shown = text.strip()
    return bool(shown) and shown.endswith(";") and shown[0] not in ".$"
