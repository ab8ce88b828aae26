"""The profile of a counted run: Nsight Compute's metrics for a launch, and one row per source line.

Sectors, requests and bank conflicts follow from addresses alone and are those of a GPU. Instructions and
branches are counted at PTX level. The assembler merges, moves and removes them, so a GPU's numbers differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simt.analysis.waits import lines_of_unasked_waits
from simt.common.errors import CompileError, SimtError
from simt.common.limits import Dim3
from simt.common.occupancy import Gpu, Occupancy, occupancy
from simt.compiler.nvrtc import Resources, supported_architectures
from simt.counters.counts import Counts
from simt.launch.sample import Sample
from simt.lowering.wgmma import product_of
from simt.opcodes import OPCODES
from simt.ptx import Instruction

if TYPE_CHECKING:
    import pandas as pd

REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
SECTORS_PER_REQUEST = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio"
BYTES_PER_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.ratio"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
OF_WGMMA = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"
LAUNCH = ("launch__grid_size", "launch__block_size")
OCCUPANCY = (
    "launch__registers_per_thread",
    *(f"launch__occupancy_limit_{what}" for what in ("blocks", "registers", "shared_mem", "warps")),
    "sm__maximum_warps_per_active_cycle_pct",
)
READS = [name for name, opcode in OPCODES.items() if opcode.reads]
OF_MACHINE_CODE = (
    "smsp__inst_executed",
    "sm__inst_executed_pipe_",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared",
)
WRITES = [name for name, opcode in OPCODES.items() if opcode.writes]
WARPGROUP = 4  # warps that issue a wgmma together
LEAST_REGISTERS = 16  # that a launch gives each thread, whatever the assembler reports (seen on an H200)


@dataclass(frozen=True)
class LaunchContext:
    """A launch's shape, its shared memory per block, and the GPU for which to compute its occupancy.

    `resources` returns the kernel's resources on an architecture such as `sm_90`. `scalars` are the values of
    its integer arguments, None for the others.
    """

    grid: Dim3
    block: Dim3
    shared_bytes: int
    resources: Callable[[str], Resources]
    gpu: Gpu
    scalars: Sequence[int | None] = ()


def loads(lines: pd.DataFrame, *spaces: str) -> pd.DataFrame:
    """Return the rows of `Profile.lines` that load from these memories, or from all but constant memory.

    Atomic operations load, too. A generic address may be in any of them.
    """
    return _rows(lines, READS, spaces)


def stores(lines: pd.DataFrame, *spaces: str) -> pd.DataFrame:
    """Return the rows that store to these memories; atomic operations do, and generic addresses may."""
    return _rows(lines, WRITES, spaces)


def _rows(lines: pd.DataFrame, operations: Sequence[str], spaces: Sequence[str]) -> pd.DataFrame:
    chosen = [*(spaces or ("global", "shared", "local")), "generic"]
    return lines[lines.op.isin(operations) & lines.space.isin(chosen)]


class IssuedCode(Protocol):
    """How often a launch issues each instruction of its machine code: `sass.issued.Issued`."""

    @property
    def absent(self) -> Mapping[str, str]:
        """Return the figures that `metrics` leaves out, and why."""

    @property
    def metrics(self) -> Mapping[str, int]:
        """Return Nsight Compute's figures. Raises NoCounts."""

    @property
    def table(self) -> pd.DataFrame:
        """Return one row per instruction."""

    @property
    def kinds(self) -> pd.Series[int]:
        """Return the instructions that warps issued, by kind."""

    @property
    def lines(self) -> pd.Series[int]:
        """Return the instructions that warps issued, by line of the source."""


class Profile:
    """The counts of one launch: `metrics` by Nsight Compute's names, `lines` with one row per source line.

    `ptx` and `ptx_lines` have the figures at PTX level; `occupancy` is the launch's on its GPU. `sample` is
    None if all blocks were counted; otherwise the counts of a sample are scaled to the grid. `count` works
    out the counts when they are first needed.
    """

    def __init__(
        self,
        code: Sequence[Instruction],
        count: Callable[[], Counts],
        source: Sequence[str],
        sample: Sample | None,
        launch: LaunchContext,
        issued: Callable[[], IssuedCode] | None = None,
    ) -> None:
        self.source, self.sample, self.launch = source, sample, launch
        self._code, self._count, self._issued = code, count, issued

    @cached_property
    def sites(self) -> list[Site]:
        """Return what each PTX instruction cost."""
        scale = self.sample.total / len(self.sample.numbers) if self.sample else 1.0
        counts = self._count()
        return [_site(i, counts, number, scale) for number, i in enumerate(self._code)]

    @cached_property
    def sass(self) -> IssuedCode:
        """Return how often the launch issues each instruction of its GPU's machine code.

        Raises CompileError where there is no machine code here. Counts may raise NoCounts, with the reason.
        """
        if self._issued is None:
            raise CompileError("this profile was made elsewhere, without the kernel's machine code")
        return self._issued()

    @cached_property
    def by_warp(self) -> Sequence[int]:
        """Return the instructions that each warp of a block ran, summed over the blocks that were counted."""
        return self._count().by_warp

    @cached_property
    def unasked_waits(self) -> Sequence[int]:
        """Return the source lines of waits that may end early and whose answer decides no branch."""
        return lines_of_unasked_waits(self._code)

    @property
    def label(self) -> str:
        """Say where the figures come from, for plots and tables."""
        if self.sample is None:
            return "counted by the simulator"
        return f"counted by the simulator in {len(self.sample.numbers)} of {self.sample.total} blocks, scaled"

    @cached_property
    def metrics(self) -> Mapping[str, float]:
        """Return the figures that a GPU has too, by Nsight Compute's names.

        Those at the level of machine code (`smsp__inst_executed.sum`, pipes, wavefronts) are worked out when
        asked for by name, since that takes a run of its own; they are not among those that are listed. One
        that is not known raises a KeyError that says why.
        Those of occupancy are computed when first needed, since that compiles the kernel for the GPU. Bytes
        per sector count each byte once, as a GPU does.
        """
        return _Metrics(self._counted(), self)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Return the occupancy of the launch on its GPU; `registers_label` says with which registers."""
        return occupancy(
            self.launch.gpu,
            prod(self.launch.block),
            max(LEAST_REGISTERS, self.launch.resources(self._arch).registers),
            self.launch.shared_bytes,
        )

    @property
    def registers_label(self) -> str:
        """Say where `launch__registers_per_thread` comes from."""
        if self._arch == self.launch.gpu.arch:
            return f"registers as NVIDIA's assembler gives them for {self._arch}"
        return (
            f"registers of {self._arch}, the nearest to {self.launch.gpu.name}'s {self.launch.gpu.arch} that "
            "this NVRTC compiles for"
        )

    @cached_property
    def ptx(self) -> dict[str, float]:
        """Return the whole launch's figures at PTX level; after its assembler, a GPU runs fewer instructions.

        instructions, thread_instructions   executed by warps, and by their active lanes
        threads_per_instruction             of 32
        branches, divergent_branches        conditional branches that warps executed; those that parted lanes
        branch_efficiency_pct               share of branches that did not
        shared_passes_ld, shared_passes_st  over the banks of shared memory (Nsight's wavefronts)
        """
        instructions, active = self._sum("instructions"), self._sum("active")
        branches, divergent = self._sum("branches"), self._sum("divergent")
        return {
            "instructions": instructions,
            "thread_instructions": active,
            "threads_per_instruction": active / instructions if instructions else 0.0,
            "branches": branches,
            "divergent_branches": divergent,
            "branch_efficiency_pct": 100 * (1 - divergent / branches) if branches else 100.0,
            "shared_passes_ld": self._sum("passes", "shared", "ld"),
            "shared_passes_st": self._sum("passes", "shared", "st"),
        }

    @cached_property
    def lines(self) -> pd.DataFrame:
        """Return a table of memory accesses, with one row per source line, space and operation.

        line                  number in the source, from 1; 0: code that belongs to no line
        space, op             global, shared, local, const, generic, texture, surface; ld, st, atom, red
        requests              accesses of a warp with an active lane
        threads               active lanes, summed over the requests
        sectors               of 32 bytes, of global memory; NaN for textures and surfaces, whose texels
                              lie in an order that NVIDIA does not publish
        passes, conflicts     over the banks of shared memory, and those that bank conflicts add
        turns                 of atomic operations: lanes of a request that name the same address take turns;
                              the most at one address, summed over the requests
        useful_bytes          that lanes asked for; a byte that all 32 ask for counts 32 times
        sectors_per_request, conflicts_per_request
        source                the line itself
        """
        sites = [site for site in self.sites if site.space and site.requests]
        table = self._table(
            sites,
            ["line", "space", "op"],
            ["requests", "threads", "sectors", "passes", "conflicts", "turns", "useful_bytes"],
        )
        if (in_texture_unit := table["space"].isin(["texture", "surface"])).any():
            unknown = ["sectors", "useful_bytes"]  # its cache has an order of its own
            table = table.astype(dict.fromkeys(unknown, float))
            table.loc[in_texture_unit, unknown] = float("nan")
        for what in ("sectors", "conflicts"):
            table.insert(len(table.columns) - 1, f"{what}_per_request", table[what] / table["requests"])
        return table

    @cached_property
    def ptx_lines(self) -> pd.DataFrame:
        """Return a table of what was executed, at PTX level, with one row per source line.

        line                     number in the source, from 1; 0: code that belongs to no line
        instructions             executed by warps
        active                   lanes, summed over the instructions
        branches, divergent      conditional branches executed, and those in which lanes went both ways
        threads_per_instruction  active / instructions, of 32
        source                   the line itself
        """
        sites = [site for site in self.sites if site.instructions]
        table = self._table(sites, ["line"], ["instructions", "active", "branches", "divergent"])
        table.insert(5, "threads_per_instruction", table["active"] / table["instructions"])
        return table

    def _table(self, sites: Sequence[Site], keys: list[str], counts: list[str]) -> pd.DataFrame:
        """Sum the counts of `sites` by `keys`, and add each row's source."""
        import pandas as pd

        rows = [{name: getattr(site, name) for name in (*keys, *counts)} for site in sites]
        table = pd.DataFrame(rows, columns=[*keys, *counts]).groupby(keys, as_index=False).sum()
        return table.assign(source=[self.source_line(number).strip() for number in table["line"]])

    def source_line(self, number: int) -> str:
        """Return a line of the source, or "" for line 0."""
        return self.source[number - 1] if 0 < number <= len(self.source) else ""

    @cached_property
    def _arch(self) -> str:
        """Return the GPU's architecture, or the next one that the compiler has."""
        wanted, supported = int(self.launch.gpu.arch.removeprefix("sm_")), supported_architectures()
        return f"sm_{next((arch for arch in supported if arch >= wanted), supported[-1])}"

    def _counted(self) -> dict[str, float]:
        metrics: dict[str, float] = {}
        for op in ("ld", "st"):
            requests, sectors = (self._sum(what, "global", op) for what in ("requests", "sectors"))
            metrics[REQUESTS.format(op)] = requests
            metrics[SECTORS.format(op)] = sectors
            metrics[SECTORS_PER_REQUEST.format(op)] = sectors / requests if requests else 0.0
            used = self._sum("used_bytes", "global", op)
            metrics[BYTES_PER_SECTOR.format(op)] = used / sectors if sectors else 0.0
            metrics[CONFLICTS.format(op)] = self._sum("conflicts", "shared", op)
        if wavefronts := sum(map(_wgmma_wavefronts, self.sites)):
            metrics |= {OF_WGMMA: wavefronts, CONFLICTS.format("gmma"): 0}
        return metrics | dict(zip(LAUNCH, (prod(self.launch.grid), prod(self.launch.block)), strict=True))

    def _sum(self, what: str, space: str | None = None, op: str | None = None) -> int:
        return sum(
            getattr(site, what)
            for site in self.sites
            if space is None or (site.space, site.op) == (space, op)
        )

    def __repr__(self) -> str:
        counted = {name: self.metrics[name] for name in self.metrics if name not in OCCUPANCY}
        figures = "\n".join(f"  {name:<66} {value:>14,.6g}" for name, value in counted.items())
        return f"Profile, {self.label}\n{figures}"


@dataclass(frozen=True)
class Site:
    """One PTX instruction and what it cost in the whole launch, as in `Profile.lines` and `ptx_lines`."""

    instruction: Instruction = field(repr=False)
    space: str
    op: str
    stride: int | None
    instructions: int
    active: int
    branches: int
    divergent: int
    requests: int
    threads: int
    sectors: int
    passes: int
    conflicts: int
    useful_bytes: int
    used_bytes: int
    turns: int

    @property
    def line(self) -> int:
        """Return the source line, 0 for none."""
        return self.instruction.line


class _Metrics(Mapping[str, float]):
    """The counted metrics, and those of occupancy, which are computed when first needed."""

    def __init__(self, counted: dict[str, float], profile: Profile) -> None:
        self._counted, self._profile = counted, profile

    def __getitem__(self, name: str) -> float:
        if name in OCCUPANCY:
            return self._profile.occupancy.metrics[name]
        if name not in self._counted and name.startswith(OF_MACHINE_CODE):
            try:
                issued = self._profile.sass
                if name in issued.absent:
                    raise KeyError(f"{name} is not known here: {issued.absent[name]}")
                return issued.metrics[name]
            except SimtError as error:
                raise KeyError(f"{name} is not known here: {error}") from error
        return self._counted[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._counted, *OCCUPANCY])

    def __len__(self) -> int:
        return len(self._counted) + len(OCCUPANCY)

    def __repr__(self) -> str:
        return repr(dict(self))


def _wgmma_wavefronts(site: Site) -> int:
    """Return the passes over the banks in which wgmma read its matrices from shared memory.

    A pass brings 8 pieces of 16 bytes, half of a group. No two of these are in the same bank in any layout
    that a descriptor has, so there are no bank conflicts. An H200 counted the same: data/h200/counters.csv.
    """
    parts = site.instruction.parts
    if parts[0] != "wgmma" or parts[1] != "mma_async":
        return 0
    product = product_of(site.instruction)
    return site.instructions // WARPGROUP * sum(2 * product.groups(role) for role in product.described)


def _site(instruction: Instruction, counts: Counts, number: int, scale: float) -> Site:
    def scaled(array: np.ndarray) -> int:
        return round(int(array[number]) * scale)

    space, op = _kind(instruction)
    if space == "generic":  # its addresses say which
        space = "global" if counts.sectors[number] else "shared"
    executed, threads = scaled(counts.executed), int(counts.threads[number]) if space else 0
    moved = instruction.moved_bytes if space else 0
    return Site(
        instruction=instruction,
        space=space,
        op=op,
        stride=counts.strides[number],
        instructions=executed,
        active=scaled(counts.active),
        branches=executed if op == "branch" else 0,
        divergent=scaled(counts.divergent),
        requests=scaled(counts.requests) if space else 0,
        threads=round(threads * scale),
        sectors=scaled(counts.sectors),
        passes=scaled(counts.passes),
        conflicts=scaled(counts.conflicts),
        useful_bytes=round(threads * moved * scale),
        used_bytes=scaled(counts.used_bytes),
        turns=scaled(counts.turns),
    )


def _kind(instruction: Instruction) -> tuple[str, str]:
    """Return memory space and operation; ("", "branch" or "other") if the instruction is not an access."""
    name = instruction.parts[0]
    if "surface" in instruction.parts:
        return "surface", name
    if instruction.is_texture and name != "suaddr":
        return "texture", "ld"
    if instruction.is_access:
        return instruction.space, "ld" if name == "ldu" else name
    is_branch = instruction.family.end in ("branch", "leave") and instruction.guard is not None
    return "", "branch" if is_branch else "other"
