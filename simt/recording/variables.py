"""The named variables of a recorded kernel: which register each lives in, instruction by instruction.

Debug code says it (compiler/debug_info.py) with labels of the PTX. A function that is called is copied into
the kernel (simt/lowering/inline.py), its labels and registers with a prefix: each copy has its own variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from simt.compiler.debug_info import Named

_COPY = r"(?:\d+:|r\d+:)?"  # the prefix of a copy; none for the kernel's own code


@dataclass(frozen=True)
class Variable:
    """A variable; each range is (first instruction, end, register) of where it lives.

    `function` is "" for one of the kernel itself, and the source's name for a function that is called.
    """

    name: str
    type: str
    function: str
    ranges: tuple[tuple[int, int, str], ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the registers in which it lives at one time or another."""
        return frozenset(name for _, _, name in self.ranges)

    def registers(self, sites: int) -> list[str]:
        """Return the register in which it lives before each instruction; "" where it is in none."""
        found = [""] * sites
        for first, end, name in self.ranges:
            found[first:end] = [name] * (min(end, sites) - first)
        return found


def found(
    named: Sequence[Named], kernel: str, labels: Mapping[str, int], registers: Sequence[str]
) -> list[Variable]:
    """Return the variables of a kernel's code, whose labels have these positions."""
    known = set(registers)
    return [
        Variable(each.name, each.type, "" if each.function == kernel else each.called, ranges)
        for each in named
        for prefix in _copies(each, kernel, labels)
        if (ranges := tuple(_ranges(each, prefix, labels, known)))
    ]


def _copies(variable: Named, kernel: str, labels: Mapping[str, int]) -> list[str]:
    """Return the prefixes of the copies of a variable's function."""
    if variable.function == kernel or not variable.places:
        return [""] if variable.places else []
    first = re.compile(rf"({_COPY}){re.escape(variable.places[0].first)}")
    return [match[1] for label in labels if (match := first.fullmatch(label))]


def _ranges(
    variable: Named, prefix: str, labels: Mapping[str, int], registers: set[str]
) -> Iterator[tuple[int, int, str]]:
    for place in variable.places:
        first, end = (labels.get(prefix + label) for label in (place.first, place.end))
        register = f"%{prefix}{place.name.lstrip('%')}"
        if first is not None and end is not None and first < end and register in registers:
            yield first, end, register
