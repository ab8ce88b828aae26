"""What a title states: one finding in one line, of one set of data or of several that say the same.

Where sets differ in a number alone, the title has each one's: "N = 4096: tiled is 1.77× as fast as naive
(report), 1.4× (H200)". Where they differ in more, it states what the last set shows, which is this machine's
if there is any.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Finding(NamedTuple):
    """A sentence, `before` + `number` + `after` + `where`, in whose number sets may differ.

    `at` says for which size it holds, `kernel` of which kernel it speaks, and `who` has found it, each "" if
    that need not be said. Of several kernels the one with the largest `gain` is the one to speak of.
    """

    before: str
    number: str = ""
    after: str = ""
    where: str = ""
    at: str = ""
    kernel: str = ""
    who: str = ""
    gain: float = 0.0


def one_line(found: Sequence[Finding], room: int) -> str:
    """Join what sets and kernels have in common; state one finding if that takes more than `room` letters."""
    last = [each for each in found if each.who == found[-1].who]
    best = max(last, key=lambda each: each.gain)
    for some in (found, last):
        if (text := _joined(some)) and len(text) <= room:
            return text
    return _joined([best])


def brief(source: str) -> str:
    """Return a source in a word or two: "report", "here", or the machine that was recorded."""
    short = source.removeprefix("recorded: ").partition(",")[0].partition(":")[0].removeprefix("NVIDIA ")
    return {"measured here": "here"}.get(short, "report" if short.startswith("report ") else short)


def _joined(found: Sequence[Finding]) -> str:
    """Write findings that differ in their numbers, and in either kernel or set; "" if they differ in more."""
    first = found[0]
    kernels, whos = {each.kernel for each in found}, {each.who for each in found}
    if any((each.at, each.before, each.after) != (first.at, first.before, first.after) for each in found):
        return ""
    if len(kernels) > 1 and len(whos) > 1:
        return ""
    head = ", ".join(part for part in (first.at, first.who if len(whos) == 1 else "") if part)
    start = f"{head}: " if head else ""
    if len(kernels) == 1 and first.kernel:
        start += f"{first.kernel} "
    where = first.where if len({each.where for each in found}) == 1 else ""
    numbers = dict.fromkeys(each.number for each in found)
    if len(numbers) == 1:
        return f"{start}{first.before}{first.number}{first.after}{where}"
    labels = [each.kernel if len(kernels) > 1 else each.who for each in found]
    more = "".join(f", {each.number} ({who})" for each, who in zip(found[1:], labels[1:], strict=True))
    return f"{start}{first.before}{first.number}{first.after}{where} ({labels[0]}){more}"
