"""The columns of `labkit.show_code` for real kernels: what is linked, counted, compared and refused."""

import re
from html import unescape

import numpy as np
import pytest

import labkit
import simt
from labkit import kernels
from labkit.widgets.code_columns import columns, ptx_lines
from labkit.widgets.code_difference import difference, pairs
from labkit.widgets.show_code import offered
from simt.compiler import nvdisasm
from simt.compiler.nvrtc import compile_ptx

SAXPY = """extern "C" __global__ void saxpy(float* y, const float* x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}"""
ROOT = """extern "C" __global__ void root(float* y, const float* x)
{
    y[threadIdx.x] = sqrtf(x[threadIdx.x]) / x[0];
}"""
ROWS = re.compile(r'<span(?: data-k="([^"]*)")?[^>]*>(.*?)\n</span>')


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


needs_nvdisasm = pytest.mark.skipif(nvdisasm.program() is None, reason="no nvdisasm")


def kernel(code, name, *options):
    return simt.RawModule(code=code, options=options).get_function(name)


def lists(html):
    """Each column's rows by its name, as (keys, text)."""
    found = re.findall(r'<pre class="lkc-lines" data-name="(.*?)">(.*?)</pre>', html, re.S)
    return {
        name: [(keys.split(), unescape(text)) for keys, text in ROWS.findall(rows)] for name, rows in found
    }


def profiled():
    saxpy, n = kernel(SAXPY, "saxpy"), 1000
    x = np.ones(n, np.float32)
    return saxpy, saxpy.profile(8, 128, (x.copy(), x, np.float32(2), np.int32(n)))


@needs_nvdisasm
@pytest.mark.parametrize("gpu", ["T4", "H200", "RTX 4090"])
def test_each_instruction_has_the_keys_of_its_lines(gpu):
    saxpy = kernel(SAXPY, "saxpy")
    sass, shown = saxpy.sass(gpu), lists(labkit.show_code(saxpy, gpu=gpu).code["html"])
    rows = [(keys, text) for keys, text in shown["SASS"] if keys]
    assert len(rows) == sass.used
    for (keys, text), each in zip(rows, sass.instructions, strict=False):
        assert text.split()[:2] == [f"{each.address:04x}", str(each.control.stall)] and each.opcode in text
        assert [f"s{each.line}"] == [key for key in keys if key[0] == "s"]
    (fma,) = [keys for keys, text in rows if "FFMA" in text]
    assert "s5" in fma
    (ptx,) = [(keys, text) for keys, text in shown["PTX"] if set(keys) & {fma[0]}]
    assert "fma.rn.f32" in ptx[1] and ptx[0][1] == "s5"
    became = {keys[0]: int(text.split()[1]) for keys, text in shown["source"] if keys}
    lines = [each.line for each in sass.instructions[: sass.used]]
    assert became == {f"s{line}": lines.count(line) for line in set(lines)}


@needs_nvdisasm
def test_lines_of_the_source_beside_the_ptx_are_the_compilers():
    saxpy = kernel(SAXPY, "saxpy")
    module, sass = saxpy.module, saxpy.sass()
    ptx = compile_ptx(module.code, module.options, module.name_expressions).text
    exact, guessed = ptx_lines(sass, ptx), ptx_lines(sass, "")
    assert all(line == exact[number] for number, line in enumerate(guessed) if line and exact[number])
    (load,) = [i for i, text in enumerate(sass.ptx.splitlines()) if "setp" in text]
    assert exact[load] == 4


@needs_nvdisasm
def test_a_profile_counts_and_shades_and_the_latest_is_found():
    saxpy, profile = profiled()
    for html in (
        labkit.show_code(saxpy, profile=profile).code["html"],
        labkit.show_code(saxpy).code["html"],
    ):
        rows = {keys[0]: text.split() for keys, text in lists(html)["source"] if keys}
        assert int(rows["s5"][2]) > 0 and "--heat:1.00" in html
        issued = [int(text.split()[3]) for keys, text in lists(html)["SASS"] if keys]
        assert sum(issued) == profile.metrics["smsp__inst_executed.sum"]
    del profile
    assert "--heat" not in labkit.show_code(kernel(SAXPY, "saxpy")).code["html"]


@needs_nvdisasm
def test_counts_of_another_architecture_are_not_taken_for_its_own():
    saxpy, profile = profiled()
    assert (
        "no counts of machine code for T4" in labkit.show_code(saxpy, gpu="T4", profile=profile).code["html"]
    )


@needs_nvdisasm
def test_a_profile_of_another_kernel_is_left_out():
    _, profile = profiled()
    html = labkit.show_code(kernel(ROOT, "root"), profile=profile).code["html"]
    assert "of another source" in html and "--heat" not in html


@needs_nvdisasm
def test_a_large_kernel_is_written_whole():
    tuned = kernels.load("matmul/9_tuned")
    sass, module = tuned.sass(), tuned.module
    html = columns(sass, compile_ptx(module.code, module.options, module.name_expressions).text)
    assert sum(bool(keys) for keys, _ in lists(html)["SASS"]) == sass.used > 2000
    assert len(html) < 1_000_000


@needs_nvdisasm
def test_two_equal_kernels_do_not_differ():
    sass = kernel(SAXPY, "saxpy").sass()
    assert list(pairs(sass, sass)) == [(i, i) for i in range(sass.used)]
    assert "the same instructions" in difference(sass, sass)


@needs_nvdisasm
def test_fast_math_becomes_visible():
    view = labkit.show_code(kernel(ROOT, "root"), kernel(ROOT, "root", "-use_fast_math"))
    html = view.code["html"]
    plain, fast = lists(html).values()
    assert len(plain) == len(fast) and "root -use_fast_math" in html
    assert sum(bool(text.strip()) for _, text in fast) < sum(bool(text.strip()) for _, text in plain)
    assert [keys for keys, _ in plain] == [keys for keys, _ in fast]


@needs_nvdisasm
def test_every_instruction_of_both_stands_once_in_a_comparison():
    a, b = (kernels.load("matmul/2_tiled", TILE=tile).sass() for tile in (8, 16))
    both = list(pairs(a, b))
    for side, sass in enumerate((a, b)):
        assert [pair[side] for pair in both if pair[side] is not None] == list(range(sass.used))


@needs_nvdisasm
def test_the_widget_compiles_for_another_gpu_and_says_what_keeps_it():
    view = labkit.show_code(kernel(SAXPY, "saxpy"))
    view.asked = {"id": 1, "gpu": "T4"}
    assert view.code["id"] == 1 and "sm_75" in view.code["html"] and "T4" in offered()
    view.asked = {"id": 2, "gpu": "P100"}
    assert "makes no machine code for P100" in view.code["error"]


@needs_nvdisasm
def test_the_html_beside_the_widget_holds_everything():
    view = labkit.show_code(kernel(SAXPY, "saxpy"))
    assert view.code["html"] in view.html and "linkAll();" in view.html and "export default" not in view.html
    assert "FFMA" in repr(view)


def test_what_is_no_kernel_or_no_gpu_is_refused_in_a_sentence():
    saxpy = kernel(SAXPY, "saxpy")
    for wrong in (3, "matmul", kernels.load(kernels.names("matmul", "cpu")[0])):
        with pytest.raises(TypeError, match="takes a kernel in CUDA"):
            labkit.show_code(wrong)
    with pytest.raises(TypeError, match="profile is what"):
        labkit.show_code(saxpy, profile=3)
    with pytest.raises(ValueError, match="no figures of a GPU 'H900'"):
        labkit.show_code(saxpy, gpu="H900")
    with pytest.raises(ValueError, match="named by a text"):
        labkit.show_code(saxpy, gpu=9)


def test_without_the_disassembler_there_are_source_and_ptx(monkeypatch, tmp_path):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nvdisasm, "WHEEL", "a-wheel-that-is-not-there")
    for each in (nvdisasm.program, nvdisasm.version):
        each.cache_clear()
    monkeypatch.setattr(nvdisasm.wheels.util, "find_spec", lambda name: None)
    try:
        shown = labkit.show_code(kernel(SAXPY, "saxpy"))
    finally:
        for each in (nvdisasm.program, nvdisasm.version):
            each.cache_clear()
    found = lists(shown.code["html"])
    assert list(found) == ["source", "PTX"] and "There is no machine code here" in shown.code["html"]
    assert any("fma.rn.f32" in text and "s5" in keys for keys, text in found["PTX"])
