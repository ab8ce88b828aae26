"""Describe a profile's worst lines, one sentence each: scattered accesses, bank conflicts, parted warps."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from simt.common.limits import WARP
from simt.counters.profile import Profile, Site
from simt.ptx import TYPE_BYTES

BANKS, BANK_BYTES, SECTOR_BYTES = 32, 4, 32
WASTEFUL = 1.5  # times the sectors that a request's bytes fill
WORTH_A_WORD = 0.03  # share of waiting lanes among all lanes of all instructions
VERBS = {"ld": "read", "st": "write"}  # other operations: update
_TYPES = {"f32": "floats", "f64": "doubles", "s32": "ints", "u32": "ints"}
_SHARES = {1 / 4: "a quarter", 1 / 3: "a third", 1 / 2: "half", 2 / 3: "two thirds", 3 / 4: "three quarters"}
_NOTHING = "No line stands out: no request has many more sectors than it needs, and no bank conflicts."


@dataclass(frozen=True)
class Cost:
    """The summed accesses of one line with one operation; `site` is the most expensive of them."""

    site: Site
    requests: int
    sectors: int
    conflicts: int
    useful_bytes: int

    @property
    def sectors_needed(self) -> float:
        """Return the fewest sectors per request: those of its bytes side by side, at least one."""
        return max(1.0, self.useful_bytes / SECTOR_BYTES / self.requests)

    @property
    def sectors_per_request(self) -> float:
        """Return the sectors that a request moves, on average."""
        return self.sectors / self.requests

    @property
    def is_scattered(self) -> bool:
        """Say whether it moves at least WASTEFUL times the sectors that the data fill."""
        return self.sectors_per_request >= WASTEFUL * self.sectors_needed

    @property
    def excess(self) -> float:
        """Return the sectors beyond those needed."""
        return self.sectors - self.sectors_needed * self.requests

    @property
    def ways(self) -> float:
        """Return how many times as many passes the access takes as it would without bank conflicts."""
        least = max(1, self.site.instruction.moved_bytes // BANK_BYTES)
        return self.conflicts / self.requests / least + 1


@dataclass(frozen=True)
class Work:
    """What was executed of one line, as in `Profile.ptx_lines`."""

    instructions: int
    active: int
    branches: int
    divergent: int

    @property
    def lanes(self) -> float:
        """Return the active lanes per instruction, on average."""
        return self.active / self.instructions


def sentences(profile: Profile) -> list[str]:
    """Describe the worst line in each respect, or say in one sentence that none is bad."""
    costs = costs_of(profile)
    found = [_scattered(profile, costs), _conflicting(costs), _parted(work_of(profile))]
    return [sentence for sentence in found if sentence] or [_NOTHING]


def costs_of(profile: Profile) -> list[Cost]:
    """Sum the memory accesses by line, space and operation."""
    groups: dict[tuple[int, str, str], list[Site]] = {}
    for site in profile.sites:
        if site.space and site.requests:
            groups.setdefault((site.line, site.space, site.op), []).append(site)
    names = ("requests", "sectors", "conflicts", "useful_bytes")
    return [
        Cost(
            max(sites, key=lambda site: (site.conflicts, site.sectors)),
            *(sum(getattr(site, name) for site in sites) for name in names),
        )
        for sites in groups.values()
    ]


def counters_of(profile: Profile) -> dict[str, dict[int, int]]:
    """Return the launch's counters by name, each with the lines in which it was counted."""
    counters: dict[str, dict[int, int]] = {}
    for cost in costs_of(profile):
        space, op, line = cost.site.space, cost.site.op, cost.site.line
        what = {"ld": "loads", "st": "stores"}.get(op, "updates")
        for name, count in {
            f"requests, {space} {what}": cost.requests,
            f"sectors, {space} {what}": cost.sectors if space == "global" else 0,
            f"bank conflicts, {space} {what}": cost.conflicts if space == "shared" else 0,
        }.items():
            if count:
                lines = counters.setdefault(name, {})
                lines[line] = lines.get(line, 0) + count
    parted = {line: work.divergent for line, work in work_of(profile).items() if work.divergent}
    return counters | ({"branches that part a warp": parted} if parted else {})


def work_of(profile: Profile) -> dict[int, Work]:
    """Sum what was executed, by line."""
    lines: dict[int, list[Site]] = {}
    for site in profile.sites:
        if site.instructions:
            lines.setdefault(site.line, []).append(site)
    names = ("instructions", "active", "branches", "divergent")
    return {
        line: Work(*(sum(getattr(site, name) for site in sites) for name in names))
        for line, sites in lines.items()
    }


def kernel_lines(profile: Profile) -> range:
    """Return the kernel's lines: from its `__global__` to the brace that ends it."""
    source, counted = profile.source, [site.line for site in profile.sites if site.line]
    if not counted:
        return range(1, len(source) + 1)
    first, last = min(counted), min(max(counted), len(source))
    first = next((n for n in range(first, 0, -1) if "__global__" in profile.source_line(n)), first)
    while last < len(source) and source[last].strip() in ("}", "};", ""):
        last += 1
    while last > 1 and not source[last - 1].strip():
        last -= 1
    return range(first, last + 1)


def _scattered(profile: Profile, costs: list[Cost]) -> str:
    costs = [cost for cost in costs if cost.site.space == "global" and cost.is_scattered]
    if not costs:
        return ""
    worst = max(costs, key=lambda cost: cost.excess)
    text = (
        f"line {worst.site.line}: {worst.sectors_per_request:.3g} sectors per request, "
        f"{worst.sectors_needed:.3g} would do"
    )
    return f"{text}; {apart}." if (apart := _apart(profile, worst.site)) else f"{text}."


def _apart(profile: Profile, site: Site) -> str:
    """Say how far apart the elements of neighbouring threads are; "" if that is not the problem."""
    verb, size, stride = VERBS.get(site.op, "update"), site.instruction.moved_bytes, site.stride
    if stride is None:
        return f"what neighbouring threads {verb} is not evenly spaced"
    count, rest = divmod(abs(stride), size)
    if rest:
        return f"neighbouring threads {verb} {abs(stride)} bytes apart"
    if count <= 1:
        return ""
    names = [name for name, value in _scalars(profile) if value == count]
    number = f"{names[0]} = {count:,}" if len(names) == 1 else f"{count:,}"
    kind = site.instruction.type
    what = _TYPES.get(kind) if TYPE_BYTES[kind] == size else None
    what = what or f"elements of {size} bytes"
    return f"neighbouring threads {verb} {number} {what} apart"


def _scalars(profile: Profile) -> Iterator[tuple[str, int]]:
    """Yield the integer arguments of the launch, by the names in the kernel's signature."""
    text = "\n".join(profile.source[line - 1] for line in kernel_lines(profile))
    signature = re.search(
        r"__global__[^(;{]*?\w+\s*\(([^)]*)\)", re.sub(r"__launch_bounds__\s*\([^)]*\)", "", text)
    )
    names = [re.sub(r"\W*$", "", part).split()[-1:] for part in signature[1].split(",")] if signature else []
    for name, value in zip(names, profile.launch.scalars, strict=False):
        if name and value is not None:
            yield name[0].lstrip("*&"), value


def _conflicting(costs: list[Cost]) -> str:
    costs = [cost for cost in costs if cost.site.space == "shared" and cost.conflicts]
    if not costs:
        return ""
    worst = max(costs, key=lambda cost: cost.conflicts)
    site, verb = worst.site, VERBS.get(worst.site.op, "update")
    text = f"line {site.line}: {worst.ways:.3g}-way bank conflict: the threads of a warp {verb}"
    if site.stride is None or abs(site.stride) < 2 * BANK_BYTES or site.stride % BANK_BYTES:
        return f"{text} different words of the same bank."
    words, wide = abs(site.stride) // BANK_BYTES, max(1, site.instruction.moved_bytes // BANK_BYTES)
    banks = BANKS // gcd(words, BANKS) * wide
    where = "all in one bank" if banks == 1 else f"in {banks} of the {BANKS} banks"
    row = words // wide
    return f"{text} words {words} apart, {where}; a row of {row + 1} instead of {row} would spread them."


def _parted(lines: dict[int, Work]) -> str:
    parting = [line for line, work in lines.items() if work.divergent]
    if not parting:
        return ""
    at = max(parting, key=lambda line: lines[line].divergent)
    lanes = lines[at].lanes
    behind = [work for line, work in lines.items() if line > at and work.lanes < lanes]
    there = sum(lanes * work.instructions for work in behind)
    waiting = there - sum(work.active for work in behind)
    if waiting < WORTH_A_WORD * WARP * sum(work.instructions for work in lines.values()):
        return ""
    times = f"{lines[at].divergent:,} of {lines[at].branches:,} times"
    return f"line {at}: {_share(waiting / there)} of the threads wait: the branch parts the warp, {times}."


def _share(share: float) -> str:
    """Write a fraction in words where there are words for it."""
    near = min(_SHARES, key=lambda known: abs(known - share))
    return _SHARES[near] if abs(near - share) < 0.02 else f"{share:.0%}"
