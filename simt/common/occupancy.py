"""Occupancy: how many blocks a multiprocessor (SM) holds at once, and which resource limits them.

Results have Nsight Compute's names. `gpus.csv` holds the GPUs' limits and peaks, `data/gpus.json` their
sources. Rules: NVIDIA, CUDA C++ Programming Guide, "Hardware Multithreading"; CUDA's cuda_occupancy.h.
"""

from __future__ import annotations  # `gpus` reads the types of fields as text

import csv
import re
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral
from typing import Protocol

from simt.common.limits import MAX_THREADS, WARP
from simt.common.paths import DATA

DEFAULT_GPU = "H200"  # where nobody names one: a row of gpus.csv
PARTITIONS = 4  # of an SM, for which a launch is checked
_TABLE = DATA / "gpus.csv"
_LIMIT = "launch__occupancy_limit_"
# Shared memory (KB) that an SM of compute capability 9.0 can set apart from its L1 cache (CUDA C++
# Programming Guide, "Compute Capability 9.0"), and the most that the driver gives to hold more blocks than
# can run.
CARVE_OUTS, GENEROUS = (8, 16, 32, 64, 100, 132, 164, 196, 228), 132
_MAKERS_WORDS = {"nvidia", "geforce", "tesla", "gpu"}


@dataclass(frozen=True)
class Gpu:
    """A row of gpus.csv; data/gpus.json explains each field. None: no source gives the figure."""

    name: str
    architecture: str
    compute_capability: str
    board: str
    multiprocessors: int
    warps_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int
    register_unit: int
    warp_unit: int
    registers_per_thread: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    reserved_shared_bytes: int
    shared_unit: int
    fp32_cores_per_sm: int
    boost_mhz: int | None
    bandwidth_gb_s: int | None
    l2_mb: float | None
    memory_gb: int
    source: str
    fp64_per_clock: int | None = None
    int32_per_clock: int | None = None
    special_per_clock: int | None = None
    tensor_fp16_flop_per_clock: int | None = None
    l1_kb: int | None = None
    l1_bytes_per_clock: int | None = None
    l1_latency: float | None = None
    shared_latency: float | None = None
    l2_latency: float | None = None
    dram_latency: float | None = None
    l2_gb_s: float | None = None
    dram_gb_s: float | None = None
    model_source: str = ""

    @property
    def arch(self) -> str:
        """Return the compiler's name for it: `sm_90` for compute capability 9.0."""
        return "sm_" + self.compute_capability.replace(".", "")

    @property
    def fp32_flop_per_clock(self) -> int:
        """Return the float32 operations per clock of an SM; a fused multiply-add is two."""
        return 2 * self.fp32_cores_per_sm

    def per_second(self, per_clock: float, mhz: float) -> float:
        """Return what all SMs do per second if each does `per_clock` at a clock of `mhz`."""
        return self.multiprocessors * per_clock * mhz * 1e6

    @property
    def peak_gflop_s(self) -> float | None:
        """Return 10^9 float32 operations per second at the boost clock."""
        if self.boost_mhz is None:
            return None
        return self.per_second(self.fp32_flop_per_clock, self.boost_mhz) / 1e9

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.compute_capability})"


@dataclass(frozen=True)
class Occupancy:
    """The blocks that fit an SM by each resource, and the theoretical occupancy in % of its warps.

    `launch__occupancy_limit_warps` is also in blocks: as many as the SM has warps for. A resource that is not
    used limits no more than `launch__occupancy_limit_blocks` does. 0 blocks: the launch fails.

    `launch__occupancy_limit_shared_mem` divides the carve-out that the driver chooses for the launch, which
    is known for compute capability 9.0, else the largest. It is less than possible only where it is not the
    limit.
    """

    gpu: Gpu
    threads_per_block: int
    launch__registers_per_thread: int
    launch__occupancy_limit_blocks: int
    launch__occupancy_limit_registers: int
    launch__occupancy_limit_shared_mem: int
    launch__occupancy_limit_warps: int

    @property
    def limits(self) -> dict[str, int]:
        """Return the blocks by resource: blocks, registers, shared_mem and warps."""
        return {name: getattr(self, _LIMIT + name) for name in ("blocks", "registers", "shared_mem", "warps")}

    @property
    def blocks(self) -> int:
        """Return how many blocks an SM holds at once."""
        return min(self.limits.values())

    @property
    def warps(self) -> int:
        """Return how many warps an SM holds at once."""
        return self.blocks * _units(self.threads_per_block, WARP)

    @property
    def limited_by(self) -> tuple[str, ...]:
        """Return the resources that give the fewest blocks; none where all warps of the SM are taken."""
        if self.warps == self.gpu.warps_per_sm:
            return ()
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)

    @property
    def sm__maximum_warps_per_active_cycle_pct(self) -> float:
        """Return the theoretical occupancy."""
        return 100 * self.warps / self.gpu.warps_per_sm

    @property
    def metrics(self) -> dict[str, float]:
        """Return all figures by Nsight Compute's names."""
        return {
            "launch__registers_per_thread": self.launch__registers_per_thread,
            **{_LIMIT + name: blocks for name, blocks in self.limits.items()},
            "sm__maximum_warps_per_active_cycle_pct": self.sm__maximum_warps_per_active_cycle_pct,
        }

    def __str__(self) -> str:
        reason = f", limited by {' and '.join(self.limited_by)}" if self.limited_by else ""
        blocks = "1 block" if self.blocks == 1 else f"{self.blocks} blocks"
        return (
            f"{self.sm__maximum_warps_per_active_cycle_pct:.3g} % occupancy on {self.gpu.name}: "
            f"{blocks}, {self.warps} of {self.gpu.warps_per_sm} warps{reason}"
        )


def gpu(name: str) -> Gpu:
    """Return the GPU with a name such as "H200", "rtx 3060" or "NVIDIA GeForce RTX 4090".

    Part of a name is enough where only one GPU has it. Raises ValueError, which lists the names.
    """
    if not isinstance(name, str):
        raise ValueError(f'a GPU is named by a text such as "H200", not by {name!r}')
    wanted = _words(name)
    for key in ("name", "board"):
        exact = [each for each in _gpus() if _words(getattr(each, key)) == wanted]
        if exact:
            return exact[0]
    part = [each for each in _gpus() if wanted and set(wanted) <= set(_words(each.name))]
    if len(part) == 1:
        return part[0]
    names = ", ".join(each.name for each in part or _gpus())
    problem = f"{name!r} fits several GPUs" if part else f"there are no figures of a GPU {name!r}"
    raise ValueError(f"{problem}; choose one of: {names}")


find_gpu = gpu  # where a parameter is called gpu


def gpus() -> tuple[Gpu, ...]:
    """Return all GPUs of the table, oldest architecture first."""
    return _gpus()


class Needs(Protocol):
    """What a compiled kernel needs of an SM."""

    @property
    def registers(self) -> int:
        """Return the registers per thread."""

    @property
    def shared_bytes(self) -> int:
        """Return the static shared memory per block."""


class Compiled(Protocol):
    """A kernel that says what it needs on an architecture such as `sm_90`."""

    def resources_for(self, arch: str) -> Needs:
        """Return what it needs on this architecture. Raises CompileError."""


def occupancy(
    gpu: Gpu | str,
    threads_per_block: int,
    registers_per_thread: int | Compiled,
    shared_bytes_per_block: int = 0,
) -> Occupancy:
    """Return how many blocks of this size an SM of `gpu` holds; shared memory is static plus dynamic.

    In place of registers it takes a kernel. Then the registers are those that NVIDIA's compiler gives the
    kernel on this GPU, and its static shared memory is added. Raises ValueError for an unknown GPU and for
    figures that no kernel has, and CompileError where a kernel does not compile for the GPU.
    """
    gpu = find_gpu(gpu) if isinstance(gpu, str) else gpu
    if not isinstance(registers_per_thread, int | Integral):
        needs = registers_per_thread.resources_for(gpu.arch)
        registers_per_thread = needs.registers
        shared_bytes_per_block += needs.shared_bytes
    for what, value, least, most in (
        ("threads_per_block", threads_per_block, 1, MAX_THREADS),
        ("registers_per_thread", registers_per_thread, 0, gpu.registers_per_thread),
        ("shared_bytes_per_block", shared_bytes_per_block, 0, None),
    ):
        if value < least or (most is not None and value > most):
            bounds = f"from {least} to {most}" if most else "0 or more"
            raise ValueError(f"{what}={value}; it is {bounds}")
    warps = _units(threads_per_block, WARP)
    by_registers, by_warps = _by_registers(gpu, warps, registers_per_thread), gpu.warps_per_sm // warps
    others = min(gpu.blocks_per_sm, by_registers, by_warps)
    return Occupancy(
        gpu=gpu,
        threads_per_block=threads_per_block,
        launch__registers_per_thread=registers_per_thread,
        launch__occupancy_limit_blocks=gpu.blocks_per_sm,
        launch__occupancy_limit_registers=by_registers,
        launch__occupancy_limit_shared_mem=_by_shared_memory(
            gpu, threads_per_block, shared_bytes_per_block, others
        ),
        launch__occupancy_limit_warps=by_warps,
    )


def carve_out(fits: Occupancy, shared_bytes_per_block: int) -> int:
    """Return the bytes that the driver makes shared memory, of what an SM's L1 shares with it.

    Known for compute capability 9.0; elsewhere the least that holds the blocks.
    """
    gpu = fits.gpu
    each = _units(shared_bytes_per_block + gpu.reserved_shared_bytes, gpu.shared_unit) * gpu.shared_unit
    others = min(blocks for name, blocks in fits.limits.items() if name != "shared_mem")
    if gpu.compute_capability == "9.0":
        return _carve_out(gpu, fits.threads_per_block, shared_bytes_per_block, max(1, each), others)
    sizes = [1024 * size for size in CARVE_OUTS if 1024 * size < gpu.shared_bytes_per_sm]
    return next((size for size in sizes if size >= each * fits.blocks), gpu.shared_bytes_per_sm)


def _by_registers(gpu: Gpu, warps: int, registers: int) -> int:
    """Return how many blocks the registers are enough for.

    A warp's registers lie in one partition of the SM, and what is left over in each partition is lost. A
    launch is refused if its block would not fit four partitions, even on the P100, whose SM has two.
    """
    if registers == 0:
        return gpu.blocks_per_sm
    each = _units(registers * WARP, gpu.register_unit) * gpu.register_unit

    def blocks(partitions: int) -> int:
        return gpu.registers_per_sm // partitions // each * partitions // warps

    return blocks(gpu.warp_unit) if blocks(PARTITIONS) else 0


def _by_shared_memory(gpu: Gpu, threads: int, size: int, others: int) -> int:
    """Return how many blocks the shared memory is enough for; the other resources are enough for `others`."""
    if size > gpu.shared_bytes_per_block:
        return 0
    each = _units(size + gpu.reserved_shared_bytes, gpu.shared_unit) * gpu.shared_unit
    if not each:
        return gpu.blocks_per_sm
    if gpu.compute_capability != "9.0":
        return gpu.shared_bytes_per_sm // each
    return _carve_out(gpu, threads, size, each, others) // each


def _carve_out(gpu: Gpu, threads: int, size: int, each: int, others: int) -> int:
    """Return the bytes of shared memory that the driver gives an SM of an H100 or H200.

    NVIDIA does not document the choice. This reproduces what 237 launches got on an H200
    (tests/occupancy_h200.csv, data/h200/gallery): room for the blocks that fit, and up to 132 KB for twice as
    many.
    """

    def room_for(blocks: float) -> int:
        blocks = min(blocks, CARVE_OUTS[-1] * 1024 // each)
        return next(size for size in CARVE_OUTS if size * 1024 // each >= blocks)

    wanted: float = others
    if size == 0 and others > 1:
        wanted = 4 * gpu.warps_per_sm / _units(threads, WARP)
    elif others > 1 and threads < MAX_THREADS:
        wanted = 2 * others
    generous = min(GENEROUS, room_for(min(gpu.blocks_per_sm, wanted)))
    return 1024 * max(room_for(others), generous)


def _units(amount: int, unit: int) -> int:
    return -(-amount // unit)


@cache
def _words(name: str) -> list[str]:
    """Split a name into words: `NVIDIA A100-SXM4-40GB` becomes a100, sxm4, 40gb."""
    words = re.sub(r"(?<=\d) (?=gb\b)", "", name.lower()).replace("-", " ").split()
    return [word for word in words if word not in _MAKERS_WORDS]


@cache
def _gpus() -> tuple[Gpu, ...]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(
            Gpu(**{field.name: _value(row[field.name], str(field.type)) for field in fields(Gpu)})  # type: ignore[arg-type]
            for row in csv.DictReader(file)
        )


def _value(text: str, kind: str) -> str | int | float | None:
    """Return a cell as the type that its field declares."""
    if not text and "None" in kind:
        return None
    if kind == "str":
        return text
    return float(text) if kind.startswith("float") else int(text)
