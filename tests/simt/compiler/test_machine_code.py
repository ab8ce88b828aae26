"""The machine code of kernels, held against nvdisasm's own JSON and the bits of the code words."""

import json
import re
import shutil
import subprocess
from dataclasses import asdict
from functools import cache
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit import kernels
from simt.common.errors import CompileError
from simt.compiler import machine_code, nvdisasm
from simt.compiler.nvrtc import assemble, resources, supported_architectures

RUNGS = ("matmul/2_tiled", "matmul/9_tuned", "transpose/4_unrolled")
ARCHITECTURES = [f"sm_{number}" for number in supported_architectures()]
TWO = """
extern "C" __global__ void one(float* x) { x[threadIdx.x] += 1; }
extern "C" __global__ void two(float* x) { __syncthreads(); x[threadIdx.x] *= 2; }
"""


@cache
def code_of(rung, arch="sm_90"):
    module = kernels.load(rung).module
    what = module.code, module.options, module.name_expressions
    (code,) = machine_code.machine_code(*what, arch).values()
    return code, what


def said(what, arch, folder, *options):
    """What nvdisasm prints of a kernel with these options."""
    image, _ = assemble(*what, arch)
    path = folder / "kernel.cubin"
    path.write_bytes(image)
    command = [nvdisasm.program(), *options, path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", ARCHITECTURES[-1]])
def test_instructions_are_those_of_nvdisasm_s_json(rung, arch, tmp_path):
    code, what = code_of(rung, arch)
    _, (function,) = json.loads(said(what, arch, tmp_path, "-json"))
    assert function["length"] == machine_code.INSTRUCTION_BYTES * len(code.instructions)
    for one in function["sass-instructions"]:
        if one.get("predicate") == "PR":  # `P2R R65, PR, RZ, 0x20`: the JSON has its second operand there
            first, _, rest = one["operands"].partition(",")
            one |= {"predicate": "", "operands": f"{first},PR,{rest}"}
    wanted = [(one.get("predicate", ""), one["opcode"]) for one in function["sass-instructions"]]
    assert [(one.predicate, one.opcode) for one in code.instructions] == wanted
    for one, told in zip(code.instructions, function["sass-instructions"], strict=True):
        operands = re.sub(r"\s", "", told.get("operands", ""))
        if "`" not in operands and not re.match("BRA|BSSY|CALL|JMP", one.opcode):  # these have labels here
            assert re.sub(r"\s", "", ",".join(one.operands)) == operands, one


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_control_codes_are_the_upper_bits_of_the_code_words(arch, tmp_path):
    """Bits 105-108: stall, 109: no yield, 110-112 and 113-115: barriers, 116-121: waits."""
    code, what = code_of("matmul/2_tiled", arch)
    words = [int(word, 16) for word in re.findall(r"/\* 0x(\w{16}) \*/", said(what, arch, tmp_path, "-hex"))]
    assert len(words) == 2 * len(code.instructions) > 100
    for one, low, high in zip(code.instructions, words[::2], words[1::2], strict=True):
        bits = f"{high << 64 | low:0128b}"[::-1]

        def number(first, last, bits=bits):
            return int(bits[first : last + 1][::-1], 2)

        control = one.control
        assert control.stall == number(105, 108)
        assert control.yields == (bits[109] == "0")
        assert (7 if control.write_barrier is None else control.write_barrier) == number(110, 112)
        assert (7 if control.read_barrier is None else control.read_barrier) == number(113, 115)
        assert [place in control.waits for place in range(6)] == [bit == "1" for bit in bits[116:122]]


@settings(max_examples=200)
@given(
    stall=st.integers(0, 15),
    yields=st.booleans(),
    barriers=st.tuples(*[st.none() | st.integers(0, 5)] * 2),
    waits=st.sets(st.integers(0, 5)),
    others=st.integers(0, 2**41 - 1),
    reuse=st.integers(0, 15),
)
def test_any_control_code_is_read_back(stall, yields, barriers, waits, others, reuse):
    write, read = (7 if each is None else each for each in barriers)
    mask = sum(1 << each for each in waits)
    fields = stall | (not yields) << 4 | write << 5 | read << 8 | mask << 11 | reuse << 17
    found = machine_code._control(fields << 41 | others)
    assert found == machine_code.Control(stall, yields, *barriers, tuple(sorted(waits)))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_resources_and_live_registers_fit_on_every_architecture(arch):
    code, what = code_of("matmul/9_tuned", arch)
    assert code.resources == resources(*what, arch)[code.name]
    live = [one.live for one in code.instructions if one.live is not None]
    assert 0 < max(live) <= code.resources.registers
    assert [one.address for one in code.instructions] == list(range(0, 16 * len(code.instructions), 16))
    assert {one.line for one in code.instructions} <= set(range(len(what[0].splitlines()) + 1))


def test_each_kernel_of_a_source_has_its_own():
    found = machine_code.machine_code(TWO, (), (), "sm_90")
    assert set(found) == {"one", "two"}
    barriers = {
        name: sum(i.opcode.startswith("BAR") for i in code.instructions) for name, code in found.items()
    }
    assert barriers == {"one": 0, "two": 1}


def test_the_second_time_it_comes_from_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    first, second = {}, {}
    for found in (first, second):
        found |= {
            name: asdict(code) for name, code in machine_code.machine_code(TWO, (), (), "sm_90").items()
        }
        monkeypatch.setattr(machine_code, "assemble", None)
    assert sorted(first) == ["one", "two"] and second == first


@pytest.fixture
def path(monkeypatch, tmp_path):
    """A PATH of one empty folder, on a machine that has no wheel of NVIDIA's disassembler."""
    found = nvdisasm.program()
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nvdisasm.wheels, "util", SimpleNamespace(find_spec=lambda name: None))
    monkeypatch.setattr(nvdisasm, "WHEEL", "nvidia-cuda-nvdisasm-that-is-not-installed")
    for function in (nvdisasm.program, nvdisasm.version):
        function.cache_clear()
    yield tmp_path, found
    for function in (nvdisasm.program, nvdisasm.version):
        function.cache_clear()


class TestFinding:
    def test_one_of_a_toolkit_in_the_path_is_taken(self, path):
        folder, program = path
        (folder / "nvdisasm").symlink_to(program)
        assert nvdisasm.program() == folder / "nvdisasm"
        assert re.fullmatch(r"\d+\.\d+\.\d+", nvdisasm.version())
        assert machine_code.machine_code(TWO, (), (), "sm_90")["two"].instructions

    @pytest.mark.parametrize(
        ("system", "told"), [("linux", "pip install nvidia-cuda-nvdisasm"), ("darwin", "none for macOS")]
    )
    def test_without_one_it_says_what_to_do(self, path, monkeypatch, system, told):
        monkeypatch.setattr(nvdisasm.sys, "platform", system)
        with pytest.raises(nvdisasm.NoNvdisasm, match=told):
            machine_code.machine_code(TWO, (), (), "sm_90")

    def test_one_that_does_not_know_the_code_says_so_and_how_to_update(self, path):
        folder, _ = path
        script = folder / "nvdisasm"
        script.write_text(
            f"#!{shutil.which('sh', path='/bin:/usr/bin')}\necho 'nvdisasm fatal: unknown' >&2; exit 1\n"
        )
        script.chmod(0o755)
        with pytest.raises(CompileError, match=r"fatal: unknown.*pip install -U nvidia-cuda-nvdisasm"):
            nvdisasm.disassemble(b"")


def test_what_is_no_cubin_is_refused():
    with pytest.raises(CompileError, match="could not read this machine code"):
        nvdisasm.disassemble(b"no machine code")


def test_a_kernel_that_does_not_compile_has_the_compiler_s_message():
    with pytest.raises(CompileError, match="nothing"):
        machine_code.machine_code("__global__ void k() { nothing; }", (), (), "sm_90")
