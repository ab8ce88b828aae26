"""Two listings of machine code side by side, with their differences marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from html import escape

from labkit.widgets.code_columns import column, grid, head, instruction, kinds, row
from simt.compiler.machine_code import Instruction
from simt.sass.listing import Sass

LEGEND = (
    "Marked: + only in one of the two, ~ another instruction in its place. The numbers of registers and "
    "labels do not count as differences."
)
SMALL = 40_000  # pairs of instructions that are compared thoroughly

_REGISTER = re.compile(r"\b(UR|UP|R|P|B|SB)\d+\b(?:\.reuse)?|\.L_x_\d+")

Pair = tuple[int | None, int | None]  # numbers of the instructions that stand beside each other


def difference(a: Sass, b: Sass, names: tuple[str, str] = ("a", "b")) -> str:
    """Return both heads, their counts, and both listings with aligned rows."""
    aligned = list(pairs(a, b))
    keys_a, keys_b = _keys(a), _keys(b)
    left, right = [], []
    changed = 0
    for number, (i, j) in enumerate(aligned):
        same = i is not None and j is not None and keys_a[i] == keys_b[j]
        changed += not same
        mark = " " if same else "~" if i is not None and j is not None else "+"
        left.append(_side(a, i, number, mark))
        right.append(_side(b, j, number, mark))
    title = f"mark line {'addr':>4}  "
    said = "Both have the same instructions." if not changed else f"{changed} of {len(aligned)} rows differ."
    both = [
        column(f"SASS of {name}", title + name, rows) for name, rows in zip(names, (left, right), strict=True)
    ]
    return f"{head(a)}{head(b)}<p>{said}</p>{grid(both, LEGEND)}{_table(a, b, names)}"


def pairs(a: Sass, b: Sass) -> Iterator[Pair]:
    """Yield which instructions stand beside each other; None where one side has none."""
    return _pairs(_keys(a), _keys(b), 0, 0)


def _pairs(a: list[str], b: list[str], first: int, other: int) -> Iterator[Pair]:
    thorough = len(a) * len(b) <= SMALL
    matcher = SequenceMatcher(None, a, b, autojunk=not thorough)
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        smaller = (a2 - a1) * (b2 - b1)
        if tag == "replace" and not thorough and smaller <= SMALL:
            yield from _pairs(a[a1:a2], b[b1:b2], first + a1, other + b1)
            continue
        for k in range(max(a2 - a1, b2 - b1)):
            i = first + a1 + k if a1 + k < a2 else None
            yield i, (other + b1 + k if b1 + k < b2 else None)


def _keys(sass: Sass) -> list[str]:
    return [_key(each) for each in sass.instructions[: sass.used]]


def _key(each: Instruction) -> str:
    return _normalised(each.predicate, each.opcode, each.operands)


@lru_cache(maxsize=1 << 15)
def _normalised(predicate: str, opcode: str, operands: tuple[str, ...]) -> str:
    """Return the instruction without the numbers of its registers and labels."""
    return _REGISTER.sub(lambda found: found[1] or "label", f"{predicate} {opcode} {', '.join(operands)}")


def _side(sass: Sass, number: int | None, at: int, mark: str) -> str:
    if number is None:
        return row(f"r{at}", "", kind="lkc-none")
    each = sass.instructions[number]
    text = f"{mark:>4} {each.line or '':>4} {each.address:04x}  {instruction(each)}"
    return row(f"r{at}", text, kind={" ": "", "~": "lkc-other", "+": "lkc-only"}[mark])


def _table(a: Sass, b: Sass, names: tuple[str, str]) -> str:
    """Return the counts of both by kind."""
    first, second = kinds(a), kinds(b)
    figures = {
        "registers": (a.registers, b.registers),
        "shared memory (bytes)": (a.shared_bytes, b.shared_bytes),
        "bytes spilled": (a.spills, b.spills),
        "instructions": (a.used, b.used),
        **{kind: (first.get(kind, 0), second.get(kind, 0)) for kind in {**first, **second}},
    }
    rows = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{x}</td><td>{y}</td>"
        f"<td>{f'{y - x:+d}' if x != y else ''}</td></tr>"
        for name, (x, y) in figures.items()
    )
    titles = "".join(f"<th scope='col'>{escape(name)}</th>" for name in ("figure", *names, "difference"))
    return (
        "<details open><summary>Counts of both</summary>"
        f"<table class='lkc-counts'><thead><tr>{titles}</tr></thead>"
        f"<tbody>{rows}</tbody></table></details>"
    )
