"""`kernel.sass`: its table, its listing, its counts, and what it refuses; registers are those of an H200."""

import csv
from functools import cache
from pathlib import Path

import pytest
from gallery import Case, cases

import simt
from labkit import kernels
from simt.common.errors import CompileError
from simt.common.occupancy import gpus
from simt.compiler.nvrtc import supported_architectures
from simt.sass.opcodes import kind, width

RECORDS = Path(__file__).parents[2] / "data" / "h200" / "gallery" / "counters.csv"
REGISTERS = "launch__registers_per_thread"
LEAST_REGISTERS = 16  # a GPU gives a warp no fewer, and Nsight counts what it gives
DRIVERS_REGISTERS = 32  # of a kernel that calls the driver's printf
SUPPORTED = {f"sm_{number}" for number in supported_architectures()}
FIT = [gpu for gpu in gpus() if gpu.arch in SUPPORTED]
COPY = """
extern "C" __global__ void copy(const float4* in, float4* out)
{
    __shared__ float4 tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
"""


@cache
def recorded() -> dict[str, int]:
    """Registers per thread by launch, as Nsight Compute had them on an H200."""
    with RECORDS.open(encoding="utf-8", newline="") as file:
        return {row["launch"]: int(float(row[REGISTERS])) for row in csv.DictReader(file) if row[REGISTERS]}


def compiled(case: Case) -> simt.Kernel:
    module = simt.RawModule(code=case.source, options=case.options, name_expressions=case.name_expressions)
    return module.get_function(case.entry)


@pytest.fixture(scope="module")
def copy():
    return simt.RawModule(code=COPY).get_function("copy")


@pytest.mark.parametrize(
    "case", [case for case in cases("clean") if case.name in recorded()], ids=lambda c: c.name
)
def test_registers_are_those_that_an_h200_gives(case):
    kernel = compiled(case)
    code = kernel.sass("H200")
    least = DRIVERS_REGISTERS if case.name == "printing" else LEAST_REGISTERS
    assert max(least, code.registers) == recorded()[case.name]
    assert code.registers == kernel.resources_for("sm_90").registers
    assert code.shared_bytes == kernel.resources_for("sm_90").shared_bytes
    assert code.table.live_registers.max() <= code.registers
    assert code.counts.sum() == code.used <= len(code.table)


@pytest.mark.parametrize("gpu", FIT, ids=lambda gpu: gpu.name)
def test_every_gpu_of_the_compiler_has_code_of_its_own_registers(copy, gpu):
    code = copy.sass(gpu.name)
    assert code.gpu == gpu and code.code.arch == gpu.arch
    assert code.registers == copy.resources_for(gpu.arch).registers
    assert code.shared_bytes >= 1024 and code.spills == 0
    assert {"LDG.128", "STG.128", "LDS.128", "STS.128", "BAR"} <= set(code.counts.index)


@pytest.mark.parametrize(
    "gpu", [gpu for gpu in gpus() if gpu.arch not in SUPPORTED], ids=lambda gpu: gpu.name
)
def test_a_gpu_that_the_compiler_has_no_code_for_is_refused_with_those_it_has(copy, gpu):
    with pytest.raises(CompileError, match=f"no machine code for {gpu.name}") as refused:
        copy.sass(gpu.name)
    assert all(fit.name in str(refused.value) for fit in FIT)


def test_an_unknown_gpu_is_refused_with_the_list(copy):
    with pytest.raises(ValueError, match="no figures of a GPU 'H2000'") as refused:
        copy.sass("H2000")
    assert all(gpu.name in str(refused.value) for gpu in gpus())


def test_lines_are_those_of_the_source(copy):
    table = copy.sass().table
    lines = COPY.splitlines()

    def line_of(opcode):
        (number,) = set(table.line[table.opcode.str.startswith(opcode)])
        return lines[number - 1].strip()

    assert line_of("LDG") == line_of("STS") == "tile[threadIdx.x] = in[threadIdx.x];"
    assert line_of("BAR") == "__syncthreads();"
    assert line_of("STG") == line_of("LDS") == "out[threadIdx.x] = tile[63 - threadIdx.x];"


def test_ptx_lines_are_lines_of_the_ptx_with_the_same_access(copy):
    code = copy.sass()
    ptx = code.ptx.splitlines()
    for opcode, instruction in (
        ("LDG", "ld.global"),
        ("STS", "st.shared"),
        ("BAR", "bar"),
        ("STG", "st.global"),
    ):
        for number in code.table.ptx_line[code.table.opcode.str.startswith(opcode)]:
            assert instruction in ptx[number - 1], (opcode, number)


def test_the_listing_has_each_instruction_under_its_line(copy):
    code = copy.sass()
    text = str(code).splitlines()
    assert text[0] == code.summary and text[0].startswith("copy for H200 (sm_90): ")
    wide = next(place for place, line in enumerate(text) if "LDG.E.128" in line)
    above = [line for line in text[:wide] if line.lstrip().startswith("//")][-1]
    assert above == "  // line 5: tile[threadIdx.x] = in[threadIdx.x];"
    assert sum(line.startswith("  0") for line in text) == code.used


def test_a_block_ends_at_a_branch_and_a_barrier_and_begins_at_a_label():
    code = kernels.load("matmul/2_tiled").sass()
    targets = {
        code.code.labels[each.operands[-1]]
        for each in code.instructions
        if each.opcode.startswith("BRA") and each.operands[-1] in code.code.labels
    }
    assert targets
    for before, after, one, other in zip(
        code.blocks, code.blocks[1:], code.instructions, code.instructions[1:], strict=False
    ):
        ends = one.opcode.split(".")[0] in ("BRA", "EXIT", "BAR") or other.address in targets
        assert after - before in (0, 1) and (after > before or not ends), (one, other)


def test_unrolling_and_spilling_are_seen():
    source = """
extern "C" __global__ void hold(const float* in, float* out)
{
    float v[R];
    #pragma unroll
    for (int i = 0; i < R; ++i) v[i] = in[i * 256 + threadIdx.x];
    #pragma unroll
    for (int i = 0; i < R; ++i) out[i * 256 + threadIdx.x] = v[R - 1 - i];
}
"""
    few, many = (
        simt.RawModule(code=source, options=[f"-DR={r}"]).get_function("hold").sass() for r in (8, 256)
    )
    assert (few.counts["LDG.32"], many.counts["LDG.32"]) == (8, 256)
    assert few.spills == 0 < many.spills and "STL.32" in many.counts and "STL.32" not in few.counts


def test_a_kernel_without_lines_has_code_with_line_0_or_of_the_source():
    """`#line` takes the lines away from the source: none of them is another's."""
    source = COPY.replace("{\n", '{\n#line 900 "elsewhere.h"\n', 1)
    code = simt.RawModule(code=source).get_function("copy").sass()
    assert set(code.table.line) <= set(range(4)) and "LDG" in str(code)


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        *(("LDG.E.128.CONSTANT", "LDG.128"), ("LDS", "LDS.32"), ("LDS.U16", "LDS.16"), ("STG.E.U8", "STG.8")),
        *(("FFMA", "FFMA"), ("IMAD.WIDE.U32", "integer"), ("BAR.SYNC.DEFER_BLOCKING", "BAR")),
        *(("BRA", "branch"), ("EXIT", "branch"), ("ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU", "atomic")),
        *(("HMMA.16816.F32", "matrix"), ("UIADD3", "uniform"), ("MUFU.RCP", "MUFU"), ("LDC.64", "constant")),
    ],
)
def test_kinds(opcode, name):
    assert kind(opcode) == name


def test_width_is_in_bits_of_a_lane():
    assert [width(opcode) for opcode in ("LDG.E.64", "LDG.E", "LDS.S8", "STS.128")] == [64, 32, 8, 128]
