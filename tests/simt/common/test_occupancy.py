"""Occupancy against NVIDIA's own calculator (cuda_occupancy.h) and against Nsight Compute on an H200."""

import csv
import ctypes
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.c.compile import compile_c, find_compiler
from simt.common.occupancy import carve_out, gpu, gpus, occupancy

INCLUDE = Path("nvidia", "cu13", "include")  # of the wheel nvidia-cuda-runtime, in site-packages
LIMITS = ("blocks", "registers", "shared_mem", "warps")
# One row per launch of a kernel, compiled for some register counts. Nsight Compute 2025.3.1, NVIDIA H200,
# 2026-11-21; `carveout_bytes` is the shared memory that the driver gave the SM for that launch.
RECORDED = list(csv.DictReader(Path(__file__).with_name("occupancy_h200.csv").open()))
ROOT = Path(__file__).parents[3]
DATA = ROOT / "data"

CALCULATOR = """
#include <cuda_occupancy.h>
int calculate(int major, int minor, int threads, int registers_per_sm, size_t shared_per_sm, size_t optin,
              size_t reserved, int block, int registers, size_t static_shared, size_t dynamic, int *out)
{
    struct cudaOccDeviceProp device = {0};
    struct cudaOccFuncAttributes function = {0};
    struct cudaOccDeviceState state = {0};
    struct cudaOccResult result = {0};
    device.computeMajor = major;
    device.computeMinor = minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = threads;
    device.regsPerBlock = registers_per_sm;
    device.regsPerMultiprocessor = registers_per_sm;
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 * 1024;
    device.sharedMemPerMultiprocessor = shared_per_sm;
    device.numSms = 1;
    device.sharedMemPerBlockOptin = optin;
    device.reservedSharedMemPerBlock = reserved;
    function.maxThreadsPerBlock = 1024;
    function.numRegs = registers;
    function.sharedSizeBytes = static_shared;
    function.partitionedGCConfig = PARTITIONED_GC_OFF;
    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    function.maxDynamicSharedSizeBytes = dynamic;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    int error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, block, dynamic);
    out[0] = result.blockLimitBlocks;
    out[1] = result.blockLimitRegs;
    out[2] = result.blockLimitSharedMem;
    out[3] = result.blockLimitWarps;
    out[4] = result.activeBlocksPerMultiprocessor;
    return error;
}
"""


@pytest.fixture(scope="module")
def calculator():
    """NVIDIA's limits by resource, and its blocks, for a row of the table and a launch."""
    include = next((Path(path, INCLUDE) for path in sys.path if Path(path, INCLUDE).is_dir()), None)
    if include is None or not (include / "cuda_occupancy.h").is_file():
        pytest.skip("cuda_occupancy.h is not here: pip install nvidia-cuda-runtime")
    if find_compiler() is None:
        pytest.skip("no C compiler")
    function = ctypes.CDLL(str(compile_c(CALCULATOR, ["-I", str(include)]))).calculate
    integer, size = ctypes.c_int, ctypes.c_size_t
    function.argtypes = [integer] * 4 + [size] * 3 + [integer] * 2 + [size] * 2 + [ctypes.POINTER(integer)]

    def calculate(row, block, registers, static, dynamic):
        out = (integer * 5)()
        shared = row.shared_bytes_per_sm, row.shared_bytes_per_block, row.reserved_shared_bytes
        capability = map(int, row.compute_capability.split("."))
        launch = block, registers, static, dynamic
        assert function(*capability, row.threads_per_sm, row.registers_per_sm, *shared, *launch, out) == 0
        unlimited = 2**31 - 1
        limits = {
            name: row.blocks_per_sm if limit == unlimited else limit
            for name, limit in zip(LIMITS, out[:4], strict=True)
        }
        return limits, out[4]

    return calculate


def assert_like(ours, limits, blocks):
    """NVIDIA's calculator takes the largest carve-out; a smaller one matters only where it is no limit."""
    shared, most = ours.limits["shared_mem"], limits["shared_mem"]
    assert ours.limits | {"shared_mem": most} == limits
    assert ours.blocks == blocks
    assert shared == most or blocks <= shared < most


@settings(max_examples=500, deadline=None)
@given(
    row=st.sampled_from(gpus()),
    block=st.integers(1, 1024),
    registers=st.integers(0, 255),
    static=st.integers(0, 48 * 1024),
    # to and beyond the most that a block may have
    dynamic=st.one_of(st.just(0), st.integers(0, 4096), st.integers(0, 240 * 1024)),
)
def test_limits_are_those_of_nvidias_calculator(calculator, row, block, registers, static, dynamic):
    limits, blocks = calculator(row, block, registers, static, dynamic)
    assert_like(occupancy(row, block, registers, static + dynamic), limits, blocks)


@pytest.mark.parametrize("capability", sorted({row.compute_capability for row in gpus()}))
def test_every_register_count_and_block_gives_nvidias_limits(calculator, capability):
    row = next(row for row in gpus() if row.compute_capability == capability)
    for warps in range(1, 33):
        for registers in range(256):
            assert_like(occupancy(row, 32 * warps, registers), *calculator(row, 32 * warps, registers, 0, 0))


@pytest.mark.parametrize("capability", sorted({row.compute_capability for row in gpus()}))
def test_every_size_of_shared_memory_gives_nvidias_limits(calculator, capability):
    row = next(row for row in gpus() if row.compute_capability == capability)
    edges = [
        edge + extra for edge in (0, 128, 256, 48 * 1024, row.shared_bytes_per_block) for extra in (0, 1)
    ]
    for shared in [*range(0, row.shared_bytes_per_block + 2048, 61), *edges]:
        dynamic = max(0, shared - 48 * 1024)
        assert_like(occupancy(row, 64, 32, shared), *calculator(row, 64, 32, shared - dynamic, dynamic))


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: "-".join(list(row.values())[:3]))
def test_limits_are_those_nsight_compute_shows_on_an_h200(row):
    launch = [int(row[name]) for name in ("block", "registers", "shared_bytes")]
    ours = occupancy(gpu("H200"), *launch)
    assert ours.limits == {name: int(row[f"limit_{name}"]) for name in LIMITS}
    assert ours.sm__maximum_warps_per_active_cycle_pct == pytest.approx(
        float(row["occupancy_pct"]), abs=0.006
    )


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: "-".join(list(row.values())[:3]))
def test_an_h200_gives_blocks_the_shared_memory_that_nsight_compute_shows(row):
    shared = int(row["shared_bytes"])
    fits = occupancy("H200", int(row["block"]), int(row["registers"]), shared)
    assert carve_out(fits, shared) == int(row["carveout_bytes"])


@pytest.mark.parametrize(
    ("name", "threads", "shared", "kilobytes"),
    [
        ("A100-SXM4-40GB", 1024, 17 * 1024, 64),  # 2 blocks of 17 KB and the 1 KB that CUDA keeps: 36 KB
        ("A100-SXM4-40GB", 1024, 15 * 1024, 32),  # 2 blocks of 16 KB: just 32 KB
        ("A100-SXM4-40GB", 1024, 15 * 1024 + 1, 64),
        ("A100-SXM4-40GB", 512, 40 * 1024, 164),  # 4 blocks of 41 KB
        ("A10", 512, 40 * 1024, 100),  # 2 blocks of 41 KB; an SM has 100 KB
    ],
)
def test_other_gpus_give_blocks_the_least_that_holds_them(name, threads, shared, kilobytes):
    assert carve_out(occupancy(name, threads, 32, shared), shared) == 1024 * kilobytes


def test_the_fields_are_nsight_computes_metrics():
    found = occupancy(gpu("H200"), 1024, 32, 33 * 1024)
    assert found.metrics == {
        "launch__registers_per_thread": 32,
        "launch__occupancy_limit_blocks": 32,
        "launch__occupancy_limit_registers": 2,
        "launch__occupancy_limit_shared_mem": 2,  # of 100 KB
        "launch__occupancy_limit_warps": 2,
        "sm__maximum_warps_per_active_cycle_pct": 100.0,
    }
    assert (found.blocks, found.warps, found.limited_by) == (2, 64, ())
    assert str(occupancy(gpu("T4"), 256, 40, 20000)) == (
        "75 % occupancy on T4: 3 blocks, 24 of 32 warps, limited by shared_mem"
    )


def test_a_block_that_does_not_fit_has_no_occupancy():
    for launch in ((1024, 65, 0), (32, 16, 227 * 1024 + 1)):
        found = occupancy(gpu("H200"), *launch)
        assert (found.blocks, found.sm__maximum_warps_per_active_cycle_pct) == (0, 0)


@pytest.mark.parametrize("launch", [(0, 32, 0), (1025, 32, 0), (32, 256, 0), (32, -1, 0), (32, 32, -1)])
def test_figures_no_kernel_has_are_refused(launch):
    with pytest.raises(ValueError, match=r"(threads|registers|shared).*=-?\d+; it is "):
        occupancy(gpu("H200"), *launch)


@pytest.mark.parametrize(
    "given, name",
    [
        ("h200", "H200"),
        ("NVIDIA H200", "H200"),
        ("rtx 3060", "RTX 3060"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("A100 80GB", "A100-SXM4-80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("L4", "L4"),
    ],
)
def test_gpus_go_by_the_names_that_people_and_cuda_give_them(given, name):
    assert gpu(given).name == name


def test_an_unknown_or_ambiguous_name_lists_the_choices():
    with pytest.raises(ValueError, match=r"no figures of a GPU 'RTX 9090'; choose one of: P100, .*RTX 5090"):
        gpu("RTX 9090")
    with pytest.raises(ValueError, match=r"'A100' fits several .*: A100-SXM4-40GB, A100-SXM4-80GB$"):
        gpu("A100")


def test_every_column_and_source_of_the_table_is_explained():
    about = json.loads((DATA / "gpus.json").read_text(encoding="utf-8"))
    with (ROOT / "simt" / "data" / "gpus.csv").open(encoding="utf-8") as file:
        assert list(about["columns"]) == next(csv.reader(file))
    assert {row.source for row in gpus()} == set(about["board"])
    assert {row.model_source for row in gpus()} == set(about["model"])
    assert len({row.name for row in gpus()}) == len(gpus()) >= 22


# float32 TFLOP/s as NVIDIA's data sheets round them; the table has cores, SMs and clock from elsewhere
@pytest.mark.parametrize(
    "name, stated",
    [
        ("P100", 9.3),  # at 1303 MHz, the boost clock it was announced with
        ("V100", 15.7),
        ("T4", 8.1),
        ("A100-SXM4-40GB", 19.5),
        ("A100-SXM4-80GB", 19.5),
        ("A10", 31.2),
        ("L4", 30.3),
        ("L40S", 91.6),
        ("H100 PCIe", 51),
        ("H100 SXM5", 67),
        ("H200", 67),
        ("GH200", 67),
    ],
)
def test_peaks_are_those_of_the_data_sheets(name, stated):
    assert gpu(name).peak_gflop_s / 1000 == pytest.approx(stated, rel=0.03 if name == "P100" else 0.01)


def test_a_peak_is_cores_times_clock():
    assert gpu("H200").peak_gflop_s == pytest.approx(66908.16)  # 132 SMs * 128 cores * 2 * 1.98 GHz


# dense float16 TFLOP/s of the tensor cores as data sheets state them, at their boost clocks
@pytest.mark.parametrize(
    ("name", "stated", "mhz"),
    [
        ("V100", 125, 1530),
        ("T4", 65, 1590),
        ("A100-SXM4-80GB", 312, 1410),
        ("A10", 125, 1695),
        ("L4", 121, 2040),
        ("L40S", 362, 2520),
        ("H100 SXM5", 989, 1830),  # the clock at which the H100's whitepaper rates the tensor cores
        ("RTX 5090", 419, 2407),
    ],
)
def test_tensor_cores_reach_what_the_data_sheets_state(name, stated, mhz):
    row = gpu(name)
    rate = row.tensor_fp16_flop_per_clock * row.multiprocessors * mhz / 1e6
    assert rate == pytest.approx(stated, rel=0.02)


def test_memories_are_slower_the_farther_they_are():
    for row in gpus():
        near = [row.shared_latency, row.l1_latency, row.l2_latency, row.dram_latency]
        known = [clocks for clocks in near if clocks]
        assert known == sorted(known)
        assert not row.dram_gb_s or 0.6 * row.bandwidth_gb_s < row.dram_gb_s < row.bandwidth_gb_s
        assert not (row.l2_gb_s and row.dram_gb_s) or row.l2_gb_s > 2 * row.dram_gb_s
        assert not row.l1_kb or row.l1_kb * 1024 > row.shared_bytes_per_sm - 1024


def test_a_missing_figure_stays_missing():
    assert gpu("RTX 3090").l2_latency is None and gpu("P100").tensor_fp16_flop_per_clock == 0
    assert gpu("B200").boost_mhz is gpu("B200").peak_gflop_s is gpu("B200").l2_mb is None
    assert (gpu("B200").arch, gpu("RTX 5070").arch) == ("sm_100", "sm_120")
