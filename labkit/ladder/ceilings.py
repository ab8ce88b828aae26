"""What this GPU can do at most, in theory and measured: the roofs of `labkit.roofline`.

Rates are decimal (10^9 per second). The formulas are:

- GFLOP/s of a product: 2 M N K / time, one multiplication and one addition per term (`problem.gflops`).
- GB/s of a copy or transpose: 2 rows cols itemsize / time, each element read and written once
  (`problem.gbytes_per_s`).
- Theoretical GFLOP/s: 2 x SMs x CUDA cores per SM x clock, as a core begins one multiply-add per clock (CUDA
  C++ Programming Guide, "Throughput of Native Arithmetic Instructions").
- Theoretical GB/s of the device memory: 2 x memory clock x bus width / 8, two transfers per clock (CUDA C++
  Best Practices Guide, "Theoretical Bandwidth Calculation"). `data/gpus.json` has the sources of both.
- Theoretical GB/s of the L1 caches: 128 bytes x SMs x clock, on Turing 64 (NVIDIA, GA102 whitepaper, on the
  L1 cache of both; for Volta: Jia et al. 2018, "Dissecting the NVIDIA Volta GPU Architecture").
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import pandas as pd

from labkit import kernels
from labkit.devices.select import Device, find_gpu
from labkit.devices.timing import Timing, time_kernel
from labkit.kernels.matmul.family import Matmul
from labkit.kernels.problem import C_TYPES, Problem
from labkit.kernels.transpose.family import Transpose
from labkit.ladder import running
from labkit.records import COLUMNS, INTEGERS, frame_of
from simt.common import occupancy

PEAK = "matmul/0_peak"
PRODUCT = Matmul(4096, 4096, 4096)
PLANE = Transpose(8192, 8192)  # 256 MiB each way, far more than an L2 cache holds


def board() -> occupancy.Gpu:
    """Return the GPU in use: its row of gpus.csv or, where that has none, what CUDA reports about it.

    In the second case, CUDA cores and limits are those of another GPU with the same compute capability.
    Raises NoGpu where there is no GPU, and ValueError where the table has none of that compute capability.
    """
    here = find_gpu()
    try:
        row = occupancy.gpu(here.name)
        if row.multiprocessors == here.multiprocessors:  # not a slice of the GPU, nor another variant
            return row
    except ValueError:
        pass
    kin = [each for each in occupancy.gpus() if each.compute_capability == here.compute_capability]
    if not kin:
        raise ValueError(
            f"gpus.csv has no GPU of compute capability {here.compute_capability}, so the lanes of "
            f"{here.name} are not known. Give it a row."
        )
    return replace(kin[-1], name=here.name, multiprocessors=here.multiprocessors, **_clocks(here))


def _clocks(here: Device) -> dict[str, Any]:
    """Return clock and bandwidth from CUDA's device attributes (kHz, bits); None if CUDA reports none."""
    import cupy

    told = cupy.cuda.Device(here.index).attributes
    bandwidth = 2 * told.get("MemoryClockRate", 0) * told.get("GlobalMemoryBusWidth", 0) / 8 / 1e6
    return {"boost_mhz": told.get("ClockRate", 0) // 1000 or None, "bandwidth_gb_s": round(bandwidth) or None}


def peak_gflops(dtype: str = "float32") -> float:
    """Measure the GPU's peak in 10^9 operations per second: multiply-adds, two operations each, no memory."""
    return _work(find_gpu()).gflops(_multiply_adds(find_gpu(), dtype).seconds)


def copy_gbytes_per_s() -> float:
    """Measure the 10^9 bytes per second that a copy of 8192 x 8192 float32 reads and writes.

    The copy is CUDA's own, from device to device, so the ceiling does not depend on how we write a kernel.
    `table` also has the kernel transpose/0_copy.
    """
    return PLANE.gbytes_per_s(_measured(find_gpu(), "memcpy", PLANE)["time"] / 1e3)


def fma_share(thread_m: int, thread_n: int, words: int = 1) -> float:
    """Return the share of multiply-adds among the instructions of one step in k.

    A thread computes thread_m x thread_n sums. For one step it loads thread_m + thread_n values from shared
    memory, `words` of them per instruction (4: float4). Each SM sub-partition issues one instruction per
    clock, so this share of the peak is the most a kernel can reach: 1/3 for one sum per thread, 0.94 for 8 x
    8 sums and float4.
    """
    multiply_adds, loads = thread_m * thread_n, (thread_m + thread_n) / words
    return multiply_adds / (multiply_adds + loads)


def table() -> pd.DataFrame:
    """Return the ceilings of the GPU in use, from theory to what programs reach, as `records.load` does.

    The rates of operations fall step by step, which shows why the peak is not reached: at the boost clock, at
    the clock under load, multiply-adds without memory, a product by cuBLAS. Raises NoGpu where there is no
    GPU; `records.recorded("h200")` has the ceilings of an H200.
    """
    rows = [*_theory(board()), *(_multiply_add_row(dtype) for dtype in C_TYPES)]
    rows.append(_reached("cublas", PRODUCT, "performance", "GFLOP/s"))
    rows += [_reached(copy, PLANE, "bandwidth", "GB/s") for copy in ("memcpy", "copy")]
    return frame_of(rows)


def _theory(gpu: occupancy.Gpu) -> list[dict[str, Any]]:
    """Return the theoretical rates for which the GPU's figures are known."""
    boost, sms = gpu.boost_mhz or 0, gpu.multiprocessors
    lanes, l1_bytes = gpu.fp32_cores_per_sm, 64 if gpu.compute_capability == "7.5" else 128
    rows = [_row("peak_bandwidth", "GB/s", gpu.bandwidth_gb_s, note="device memory")]
    if not gpu.compute_capability.startswith("6."):  # no source for Pascal
        note = f"L1 caches: {l1_bytes} B × {sms} SMs × {boost} MHz"
        rows.append(_row("peak_l1_bandwidth", "GB/s", gpu.per_second(l1_bytes, boost) / 1e9, note=note))
    seen = _multiply_adds(find_gpu(), "float32").clock_mhz or 0
    clocks = {"peak_performance": (boost, "boost"), "peak_at_clock": (seen, "seen under multiply-adds")}
    for quantity, (clock, which) in clocks.items():
        note = f"2 × {sms} SMs × {lanes} lanes × {clock} MHz ({which})"
        rate = gpu.per_second(gpu.fp32_flop_per_clock, clock) / 1e9
        rows.append(_row(quantity, "GFLOP/s", rate, dtype="float32", note=note))
    return [row | {"source": f"theoretical: {gpu.name}"} for row in rows if row["value"]]


def _multiply_add_row(dtype: str) -> dict[str, Any]:
    """Make the row of the multiply-adds without memory."""
    timing = _multiply_adds(find_gpu(), dtype)
    unit, note = "GOP/s" if dtype == "int32" else "GFLOP/s", "multiply-adds without memory"
    named = {"dtype": dtype, "note": note + _at(timing.clock_mhz), "source": timing.source}
    return _row("performance", unit, peak_gflops(dtype), "peak", **named)


def _reached(rung: str, problem: Problem, quantity: str, unit: str) -> dict[str, Any]:
    """Make the row of the rate that a rung or reference of the ladder reaches on `problem`."""
    measured = _measured(find_gpu(), rung, problem)
    rate = problem.gflops if unit == "GFLOP/s" else problem.gbytes_per_s
    place = {name.lower(): size for name, size in problem.sizes.items()} | {"dtype": problem.dtype}
    place |= {"note": f"median of {measured['samples']:.0f}" + _at(measured["clock"])}
    return _row(quantity, unit, rate(measured["time"] / 1e3), rung, **place, source=measured["source"])


def _row(quantity: str, unit: str, value: float | None, kernel: str = "", **others: Any) -> dict[str, Any]:
    named = {"machine": find_gpu().name, "quantity": quantity, "unit": unit, "value": value, "kernel": kernel}
    return dict.fromkeys(COLUMNS, "") | dict.fromkeys(INTEGERS) | named | others


def _at(clock: float | None) -> str:
    return f", at {clock:.0f} MHz" if clock else ""


def _work(gpu: Device) -> Matmul:
    """Return a product with the ceiling kernel's multiply-adds: 8 blocks per SM, some milliseconds."""
    macros = kernels.defaults(PEAK)
    return Matmul(int(macros["BLOCK"]) * int(macros["CHAINS"]), 8 * gpu.multiprocessors, 2**15)


@lru_cache
def _multiply_adds(gpu: Device, dtype: str) -> Timing:
    from labkit.devices.select import xp

    work = replace(_work(gpu), dtype=dtype)
    kernel, (grid, block) = kernels.load(PEAK, DTYPE=work.ctype), kernels.launch(PEAK, work)
    factors, sums = xp.full(2, 0.5).astype(dtype), xp.empty(work.M * work.N, dtype)
    args = (factors[:1], factors[1:], sums, *work.scalars())
    return time_kernel(lambda: kernel(grid, block, args))


@lru_cache
def _measured(gpu: Device, rung: str, problem: Problem) -> dict[str, Any]:
    """Return the quantities of a verified measurement of the ladder, and its source."""
    rows = running.time_rung(rung, problem)
    return {**rows.set_index("quantity").value, "source": rows.source.iloc[0]}
