"""NVRTC through its wheel: PTX with lines, the compiler's messages, the assembler's figures, the cache."""

import pytest
from gallery import cases

from simt.common.errors import CompileError
from simt.compiler import nvrtc
from simt.compiler.nvrtc import compile_ptx, nvrtc_version, parse_resources, resources

SCALE = """#include <cstdio>
#include <cassert>
extern "C" __global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= FACTOR;
}"""


@pytest.fixture
def compilations(monkeypatch, tmp_path):
    """An empty cache, and a list that grows with every call of the compiler."""
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    calls, compile_ = [], nvrtc._Program.compile

    def counted(program, flags):
        calls.append(flags)
        return compile_(program, flags)

    monkeypatch.setattr(nvrtc._Program, "compile", counted)
    return calls


def test_ptx_has_the_lines_of_the_source():
    text = compile_ptx(SCALE, ["-DFACTOR=2.f"]).text
    assert ".visible .entry scale(" in text
    assert ".loc\t1 5 " in text


@pytest.mark.parametrize("kernel", ["(foat* x)", "(float* x, In n)", "(half* x)"])
def test_an_unknown_type_in_a_template_is_an_error_by_line(kernel):
    """NVRTC alone crashes here, and the process with it, as it looks for the name of an instance."""
    with pytest.raises(CompileError) as caught:
        compile_ptx("template <int N> __global__ void k" + kernel + " { x[0] = N; }", [], ["k<3>"])
    assert caught.value.lines[0][0] == 1


def test_the_cache_is_keyed_by_source_and_options(compilations):
    first = compile_ptx(SCALE, ["-DFACTOR=2.f"])
    assert compile_ptx(SCALE, ["-DFACTOR=2.f"]) == first
    assert len(compilations) == 1
    assert compile_ptx(SCALE, ["-DFACTOR=3.f"]) != first
    compile_ptx(SCALE + "\n", ["-DFACTOR=2.f"])
    assert len(compilations) == 3


def test_a_cubin_is_made_once_and_for_its_architecture(compilations):
    wgmma = 'extern "C" __global__ void k() { asm volatile("wgmma.fence.sync.aligned;"); }'
    first, again = (nvrtc.cubin(wgmma, (), (), "sm_90") for _ in range(2))
    assert first == again and first[:4] == b"\x7fELF"
    assert len(compilations) == 1
    with pytest.raises(CompileError, match="wgmma"):
        nvrtc.cubin(wgmma, (), (), "sm_80")


def test_errors_and_warnings_have_their_lines():
    source = SCALE.replace("int i =", "int unused; int i =").replace("x[i] *=", "y[i] *=")
    with pytest.raises(CompileError) as error:
        compile_ptx(source, ["-DFACTOR=2.f"])
    assert {(line, severity) for line, severity, _ in error.value.lines} == {(4, "warning"), (5, "error")}
    assert 'identifier "y" is undefined' in str(error.value)


def test_warnings_of_a_source_that_compiles_are_kept():
    source = SCALE.replace("int i =", "int unused; int i =")
    assert "never referenced" in compile_ptx(source, ["-DFACTOR=2.f"]).log


def test_the_language_standard_can_be_chosen():
    source = """__device__ consteval int two() { return 2; }
    extern "C" __global__ void f(int* x) { *x = two(); }"""
    with pytest.raises(CompileError):
        compile_ptx(source)
    assert ".visible .entry f(" in compile_ptx(source, ["--std=c++20"]).text


def test_an_unknown_option_is_the_compilers_error():
    with pytest.raises(CompileError, match="unrecognized option --nonsense"):
        compile_ptx(SCALE, ["--nonsense"])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_resources_of_an_architecture(arch):
    source = """extern "C" __global__ void tile(float* x) {
        __shared__ float a[256];
        a[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = a[255 - threadIdx.x];
    }"""
    found = resources(source, arch=arch)["tile"]
    assert found.shared_bytes == 1024
    assert 4 < found.registers < 32
    assert (found.local_bytes, found.spill_store_bytes, found.spill_load_bytes) == (0, 0, 0)


def test_too_few_registers_spill():
    body = "".join(f"float v{i} = x[i + {i}];" for i in range(64))
    total = " + ".join(f"v{i} * v{63 - i} * y" for i in range(64))
    source = f"""extern "C" __global__ void f(float* x, int i, float y) {{
        {body} __syncthreads(); x[i] = {total}; }}"""
    few, many = (resources(source, [f"--maxrregcount={n}"])["f"] for n in (24, 128))
    assert few.registers <= 24 < many.registers
    assert few.spill_store_bytes > 0 and few.spill_load_bytes > 0
    assert many.spill_store_bytes == 0


def test_the_assemblers_text_of_two_kernels():
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 16 bytes cumulative stack size, 2048 bytes smem
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Used 10 registers, used 0 barriers"""
    found = parse_resources(log)
    assert found["a"] == nvrtc.Resources(24, 2048, 16, 8, 12)
    assert found["b"] == nvrtc.Resources(10, 0, 0, 0, 0)


def test_version():
    major, minor = map(int, nvrtc_version().split("."))
    assert major >= 12 and minor >= 0


def test_dynamic_parallelism_is_named_with_its_line():
    source = "__global__ void child() {}\n__global__ void parent() {\n    child<<<1, 1>>>();\n}"
    with pytest.raises(CompileError, match="no dynamic parallelism") as caught:
        nvrtc.compile_ptx(source)
    assert [line for line, _, _ in caught.value.lines] == [3]


def test_ptx_is_the_same_in_every_folder(tmp_path, monkeypatch):
    source, texts = 'extern "C" __global__ void k(int* x) { *x = 1; } // anywhere', set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / name / "cache"))
        texts.add(nvrtc.compile_ptx(source).text)
    (text,) = texts
    assert '"kernel.cu"' in text


def test_warnings_about_cudas_own_headers_are_not_the_students():
    source = (
        '#include <cuda/std/climits>\nextern "C" __global__ void f(int* x) { int unused; x[0] = INT_MAX; }'
    )
    log = nvrtc.compile_ptx(source).log
    assert log.startswith('kernel.cu(2): warning #177-D: variable "unused"')
    with pytest.raises(CompileError, match=r'^kernel.cu\(2\): error: identifier "y" is undefined'):
        nvrtc.compile_ptx(source.replace("x[0]", "y[0]"))


(EARLY,) = (case.source for case in cases("clean") if case.name == "early_return")
SWAP = """#include <cuda/std/utility>
extern "C" __global__ void f(int* b) { cuda::std::swap(b[0], b[1]); }"""


@pytest.mark.parametrize(
    "option", ["--restrict", "-restrict", "--optimization-info=inline", "-opt-info=inline"]
)
def test_an_option_that_nvrtc_keeps_does_not_stay(option):
    """In one process NVRTC 13.5 would compile all that follows with it, too."""

    def made():
        return nvrtc.assemble(EARLY, (), (), "sm_90")[0], nvrtc._ptx(SWAP, (), (), "compute_90")

    before = made()
    assert b"f" in nvrtc._ptx(SWAP, [option], (), "compute_90")
    assert nvrtc.resources(SWAP, [option])["f"].registers > 0
    assert made() == before


def test_an_error_comes_back_from_the_compiler_s_own_process():
    with pytest.raises(CompileError) as alone:
        nvrtc.assemble("int x = y;", ["--restrict"], (), "sm_90")
    with pytest.raises(CompileError) as here:
        nvrtc.assemble("int x = y;", (), (), "sm_90")
    assert str(alone.value) == str(here.value)
    assert alone.value.lines == here.value.lines != []
