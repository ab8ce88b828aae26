"""The parts of a GPU, from the host to the cores: their sizes, rates and latencies, each with its origin.

An H200 and an H100 SXM5 were measured for this course (data/*/limits.csv, data/h200/bench.csv). Other GPUs
have what gpus.csv knows: data sheets, and what others published.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from labkit import records
from labkit.paths import shipped
from simt.common.limits import WARP
from simt.common.occupancy import Gpu
from simt.common.text import article

HOST, DEVICE_MEMORY, L2, L1, SHARED = "host", "device memory", "L2 cache", "L1 cache", "shared memory"
SCHEDULER, REGISTERS, CORES, TENSOR = "warp scheduler", "registers", "CUDA cores", "tensor cores"
PARTS = (HOST, DEVICE_MEMORY, L2, L1, SHARED, SCHEDULER, REGISTERS, CORES, TENSOR)  # from far to near

MEASURED, SHEET, COMPUTED = "measured", "data sheet", "computed"
PUBLISHED, STAND_IN = "published", "stand-in"
NONE = "no figure"
ORIGINS = {
    MEASURED: "measured for this course",
    SHEET: "NVIDIA's documents, or what the CUDA runtime says of the board",
    COMPUTED: "computed from the figures beside it",
    PUBLISHED: "measured by others, and published",
    STAND_IN: "of a similar GPU, or worked out from one",
}

_FOLDERS = {
    "H200": "h200",
    "H100 SXM5": "h100",
}  # GPUs of gpus.csv that were measured for the course
_BENCHED = "H200"  # the GPU of data/h200/bench.csv
_WORD = 4  # bytes: of a register, and of what a bank of shared memory delivers per clock
_GPUS = shipped("data") / "gpus.json"


@dataclass(frozen=True)
class Figure:
    """A figure of a part with its unit and its origin, a key of ORIGINS; `of` says of what it is.

    `value` is None where no source has the figure. `brief` says the same as `of` in two or three words.
    """

    value: float | None
    unit: str
    origin: str
    of: str
    brief: str = ""

    @property
    def text(self) -> str:
        """Return the figure with its unit, to three digits or in whole numbers: 4,107 GB/s."""
        return NONE if self.value is None else f"{number(self.value)} {self.unit}"

    @property
    def whence(self) -> str:
        """Return the origin, and in brief of what the figure is; nothing for one that is not known."""
        return "" if self.value is None else ", ".join(filter(None, (self.origin, self.brief)))

    @property
    def told(self) -> str:
        """Return the figure with what it is of and where it comes from."""
        return f"{self.of}: {self.text}{f' ({self.origin})' if self.value is not None else ''}"


@dataclass(frozen=True)
class Part:
    """A part of a GPU: what it does, its size, rate and latency, and further figures.

    A figure is None where the part has nothing of that kind.
    """

    name: str
    says: str
    size: Figure | None = None
    rate: Figure | None = None
    latency: Figure | None = None
    more: tuple[Figure, ...] = ()

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Return all figures of the part."""
        return tuple(each for each in (self.size, self.rate, self.latency, *self.more) if each)


def number(value: float) -> str:
    """Write a number to three digits, and without decimals from 100 on: 4.04, 33, 4,107."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@lru_cache
def parts(gpu: Gpu) -> Mapping[str, Part]:
    """Return the parts of a GPU by name, in the order of PARTS."""
    known = _Known(gpu)
    found = (
        _host(known),
        _device_memory(known),
        _l2(known),
        _l1(known),
        _shared(known),
        _scheduler(known),
        _registers(known),
        _cores(known),
        _tensor(known),
    )
    return {each.name: each for each in found}


def sources(gpu: Gpu) -> dict[str, str]:
    """Return where the GPU's figures come from, by origin: those origins that occur."""
    about = json.loads(_GPUS.read_text(encoding="utf-8"))
    used = {each.origin for part in parts(gpu).values() for each in part.figures if each.value is not None}
    texts = {
        MEASURED: _run_of(gpu),
        SHEET: about["board"][gpu.source],
        PUBLISHED: about["model"].get(gpu.model_source, ""),
    }
    texts[STAND_IN] = texts[PUBLISHED]
    return {origin: texts.get(origin) or text for origin, text in ORIGINS.items() if origin in used}


def _run_of(gpu: Gpu) -> str:
    """Return on what a GPU's limits were measured, and when; nothing for one without."""
    if gpu.name not in _FOLDERS:
        return ""
    return str(records.limits(_FOLDERS[gpu.name]).source.iloc[0]).removeprefix("recorded: ")


class _Known:
    """What is known of a GPU: its row of gpus.csv, and where it was measured, its limits."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        table = records.limits(_FOLDERS[gpu.name]) if gpu.name in _FOLDERS else None
        self._limits = {} if table is None else table.set_index(["quantity", "variant"]).value.to_dict()
        stand_ins = json.loads(_GPUS.read_text(encoding="utf-8"))["stand_ins"]
        self._stand_ins = stand_ins.get(gpu.model_source, ())

    def sheet(self, value: float | None, unit: str, of: str) -> Figure:
        """Return a figure of the GPU's row."""
        return Figure(value, unit, SHEET, of)

    def computed(self, value: float | None, unit: str, of: str) -> Figure:
        """Return a figure that follows from others of the row."""
        return Figure(value, unit, COMPUTED, of)

    def measured(
        self, limit: tuple[str, str], unit: str, of: str, scale: float = 1, column: str = ""
    ) -> Figure:
        """Return a measured limit times `scale`, or the row's `column`, which others have measured."""
        if limit in self._limits:
            return Figure(scale * float(self._limits[limit]), unit, MEASURED, of)
        value = getattr(self.gpu, column) if column else None
        return Figure(value, unit, STAND_IN if column in self._stand_ins else PUBLISHED, of)

    def per_clock(self, gb_s: float | None, of: str) -> Figure:
        """Return a bandwidth as each SM's share, in bytes per clock."""
        clock = self.gpu.boost_mhz
        share = None if gb_s is None or clock is None else gb_s * 1e3 / self.gpu.multiprocessors / clock
        return self.computed(share, "bytes per clock and SM", of)

    def nanoseconds(self, clocks: float | None) -> Figure:
        """Return a latency in ns at the boost clock."""
        clock = self.gpu.boost_mhz
        time = None if clocks is None or clock is None else clocks / clock * 1e3
        return self.computed(time, "ns", "latency at the boost clock")


def _host(known: _Known) -> Part:
    copy = _copied_gb_s() if known.gpu.name == _BENCHED else None
    return Part(
        HOST,
        "The CPU with its own memory. It launches kernels, and copies arrays to the GPU and back.",
        rate=Figure(
            copy, "GB/s", MEASURED, "bandwidth of copies from pinned memory to the GPU", "copy to GPU"
        ),
        latency=replace(
            known.measured(("launch", "1 block x 32"), "µs", "time of an empty kernel, from launch to end"),
            brief="empty kernel",
        ),
    )


@lru_cache
def _copied_gb_s() -> float:
    """Return 10^9 bytes per second of the largest recorded copy from pinned memory: three matrices."""
    runs = records.recorded("h200", "htod_time", note=records.PINNED, problem="matmul")
    n, took = runs.sort_values("n")[["n", "value"]].iloc[-1]
    return float(3 * _WORD * n**2 / took / 1e6)


def _device_memory(known: _Known) -> Part:
    gpu = known.gpu
    copy = known.measured(
        ("dram_copy", "1024 MiB"), "GB/s", "bandwidth of a copy, bytes read and written", 1, "dram_gb_s"
    )
    latency = known.measured(
        ("latency", "DRAM"), "clocks", "latency of a load that no cache has", column="dram_latency"
    )
    copy, peak = replace(copy, brief="a copy"), known.sheet(gpu.bandwidth_gb_s, "GB/s", "peak bandwidth")
    return Part(
        DEVICE_MEMORY,
        "Memory chips beside the GPU's chip: HBM or GDDR. CUDA's global memory lies here.",
        known.sheet(gpu.memory_gb, "GB", "size"),
        peak if copy.value is None else copy,
        latency,
        (
            copy if copy.value is None else peak,
            known.per_clock(peak.value, "share of each SM in the peak"),
            known.nanoseconds(latency.value),
        ),
    )


def _l2(known: _Known) -> Part:
    rate = known.measured(
        ("l2_read", "32 MiB"), "GB/s", "bandwidth when all SMs read what it holds", 1, "l2_gb_s"
    )
    latency = known.measured(
        ("latency", "L2"), "clocks", "latency of a load that hits it", column="l2_latency"
    )
    return Part(
        L2,
        "One cache for all SMs, on the same chip. Atomics on global memory are carried out here.",
        known.sheet(known.gpu.l2_mb, "MB", "size"),
        rate,
        latency,
        (known.per_clock(rate.value, "share of each SM in the bandwidth"), known.nanoseconds(latency.value)),
    )


def _l1(known: _Known) -> Part:
    gpu, unit, of = known.gpu, "bytes/clock", "bandwidth of contiguous loads that hit it, per SM"
    measured = known.measured(("load_bandwidth", "LDG.128"), unit, of)
    rate = measured if measured.value is not None else known.sheet(gpu.l1_bytes_per_clock, unit, of)
    latency = known.measured(
        ("latency", "L1"), "clocks", "latency of a load that hits it", column="l1_latency"
    )
    together = "size, together with shared memory"
    return Part(
        L1,
        "A cache in each SM. A warp asks it for whole lines of 128 bytes, in sectors of 32.",
        known.sheet(gpu.l1_kb, "KB", together),
        rate,
        latency,
        (_of_all_sms(known, rate), known.nanoseconds(latency.value)),
    )


def _shared(known: _Known) -> Part:
    gpu = known.gpu
    clocks = known.measured(("shared_clocks", "LDS.32, 1 words per bank"), "clocks", "")
    of = "bandwidth of 32 banks of 4 bytes, per SM"
    rate = Figure(WARP * _WORD, "bytes/clock", SHEET, of)  # the same for all of the table: CUDA's guide
    if clocks.value is not None:
        rate = Figure(
            WARP * _WORD / clocks.value,
            "bytes/clock",
            MEASURED,
            "bandwidth of loads without bank conflicts, per SM",
        )
    latency = known.measured(("latency", "shared"), "clocks", "latency of a load", column="shared_latency")
    return Part(
        SHARED,
        "Memory in each SM that the threads of a block share. The kernel says what lies there.",
        known.sheet(gpu.shared_bytes_per_sm / 1024, "KB", "size, at most"),
        rate,
        latency,
        (
            known.sheet(gpu.shared_bytes_per_block / 1024, "KB", "a block gets at most"),
            _of_all_sms(known, rate),
            known.nanoseconds(latency.value),
        ),
    )


def _of_all_sms(known: _Known, rate: Figure) -> Figure:
    clock = known.gpu.boost_mhz
    all_of_them = None
    if rate.value is not None and clock is not None:
        all_of_them = known.gpu.per_second(rate.value, clock) / 1e9
    return known.computed(all_of_them, "GB/s", "bandwidth of all SMs at the boost clock")


def _scheduler(known: _Known) -> Part:
    gpu = known.gpu
    slots = gpu.warps_per_sm / gpu.warp_unit
    rate = known.measured(
        ("issue_rate", "FFMA"), "instr./clock", "rate of multiply-adds issued", 1 / gpu.warp_unit
    )
    return Part(
        SCHEDULER,
        "Each clock it picks a warp that need not wait, and issues the warp's next instruction.",
        known.sheet(slots, "warps", "resident warps, at most"),
        rate,
        more=(known.sheet(gpu.warps_per_sm, "warps", "resident warps of the SM, at most"),),
    )


def _registers(known: _Known) -> Part:
    gpu = known.gpu
    kilobytes = gpu.registers_per_sm * _WORD / gpu.warp_unit / 1024
    return Part(
        REGISTERS,
        "Each thread has its own, and they hold its variables. Arithmetic reads and writes nothing else.",
        known.sheet(kilobytes, "KB", "size"),
        more=(
            known.sheet(gpu.registers_per_sm / gpu.warp_unit, "registers", "of 4 bytes each"),
            known.sheet(gpu.registers_per_thread, "registers", "a thread gets at most"),
        ),
    )


def _cores(known: _Known) -> Part:
    gpu = known.gpu
    peak = None if gpu.peak_gflop_s is None else gpu.peak_gflop_s / 1e3
    return Part(
        CORES,
        "Each begins one float32 operation per clock: an addition, a multiplication, or both in one.",
        known.sheet(gpu.fp32_cores_per_sm / gpu.warp_unit, "cores", "number"),
        replace(
            known.computed(peak, "TFLOP/s", "peak of all SMs, a multiply-add is two operations"),
            brief="all SMs",
        ),
        known.measured(
            ("latency", "FFMA"), "clocks", "latency of a multiply-add that waits for the one before"
        ),
        (
            *([_measured_peak()] if gpu.name == _BENCHED else []),
            known.sheet(gpu.fp64_per_clock, "per clock and SM", "float64 multiply-adds"),
            known.sheet(gpu.special_per_clock, "per clock and SM", "special functions, such as a sine"),
        ),
    )


@lru_cache
def _measured_peak() -> Figure:
    best = records.recorded("h200", "performance", kernel="peak", dtype="float32").value.iloc[0]
    return Figure(float(best) / 1e3, "TFLOP/s", MEASURED, "rate of multiply-adds without memory")


def _tensor(known: _Known) -> Part:
    gpu, per_clock = known.gpu, known.gpu.tensor_fp16_flop_per_clock
    if not per_clock:
        return Part(TENSOR, f"None: {article(gpu.name)} has no tensor cores.")
    peak = None if gpu.boost_mhz is None else gpu.per_second(per_clock, gpu.boost_mhz) / 1e12
    return Part(
        TENSOR,
        "They multiply small matrices of float16 and other short types, a whole tile per instruction.",
        rate=replace(
            known.computed(peak, "TFLOP/s", "peak of all SMs, dense float16"), brief="float16, all SMs"
        ),
        more=(known.sheet(per_clock, "FLOP/clock", "rate in float16, per SM"),),
    )
