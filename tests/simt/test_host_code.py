"""The machine code of the host that kernels become."""

import io

import pytest
from elftools.elf.elffile import ELFFile

import simt
from simt.code.jit import machine_code
from simt.counters.counting import Counting
from simt.counters.recording import Recording
from simt.counters.traffic import TrafficRecorder
from simt.run.compile import compile_kernel
from simt.run.observer import Observer
from simt.sanitizer.sanitizer import Sanitizer
from simt.sanitizer.warp_look import LookKind, look_module

SOURCE = """extern "C" __global__ void turned(float* x) {
    __shared__ float s[32];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[31 - threadIdx.x];
}"""


def sections(code):
    return {section.name for section in ELFFile(io.BytesIO(code)).iter_sections()}


@pytest.mark.parametrize("is_brief", [False, True])
@pytest.mark.parametrize("observer", [Observer, Counting, Sanitizer, Recording, TrafficRecorder])
def test_kernels_have_no_unwinding_tables(observer, is_brief):
    """Registered tables whose ranges overlap make libgcc crash when anything walks the stack."""
    kernel = simt.RawModule(code=SOURCE).get_function("turned")
    compiled = compile_kernel(kernel.parsed, kernel.storage, (32, 1, 1), observer, False, is_brief)
    assert ".ltext" in sections(compiled.code) and ".eh_frame" not in sections(compiled.code)


@pytest.mark.parametrize("is_store", [False, True])
def test_looks_have_none_either(is_store):
    code = machine_code(look_module(LookKind("shared", 4, 4, is_store)), is_brief=False)
    assert ".ltext" in sections(code) and ".eh_frame" not in sections(code)
