"""Where there is no NVRTC: the course's own kernels come compiled, and any other is an error that says so."""

import sys
from importlib import metadata

import numpy as np
import pytest

import simt
from labkit import kernels, problem
from labkit.course.notebooks import catalog
from simt.common.cache import digest
from simt.compiler import nvdisasm, nvrtc, precompiled
from simt.compiler.nvrtc import COMPILER_WHEEL, HEADER_WHEELS, MissingTool, NoNvrtc

RUNGS = [name for family in kernels.FAMILIES for name in kernels.names(family)]
OWN = 'extern "C" __global__ void mine(float* x) { x[threadIdx.x] = 17; }'


@pytest.fixture
def no_nvrtc(monkeypatch, tmp_path):
    """A machine without the wheels that compile, and with an empty cache."""
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    absent, version = (COMPILER_WHEEL, *HEADER_WHEELS), nvrtc._version
    monkeypatch.setattr(nvrtc, "_version", lambda name: "" if name in absent else version(name))
    forgetful = (
        *(nvrtc._made_by, nvrtc._compiler_key, nvrtc.include_paths),
        kernels._load,
    )
    for function in forgetful:
        function.cache_clear()
    yield
    for function in forgetful:
        function.cache_clear()


@pytest.mark.slow  # the archive is made anew before a release, not with each change of a kernel
def test_the_archive_was_made_from_what_the_course_has_now():
    assert precompiled.manifest()["sources"] == digest(catalog.cuda_sources()), (
        "a kernel or a %%cuda cell has changed: python benchmarks/precompile.py"
    )


@pytest.mark.slow  # for the same reason
@pytest.mark.parametrize("name", RUNGS)
def test_the_rungs_load(no_nvrtc, name):
    kernel = kernels.load(name)
    assert kernel.num_regs > 0


class TestMachineCode:
    """Without NVRTC and without its disassembler, the notebooks' listings come with labkit."""

    @pytest.fixture(autouse=True)
    def no_nvdisasm(self, no_nvrtc, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setitem(sys.modules, "nvidia", None)
        found = metadata.version

        def version(name):
            if name == nvdisasm.WHEEL:
                raise metadata.PackageNotFoundError(name)
            return found(name)

        monkeypatch.setattr(metadata, "version", version)
        for function in (nvdisasm.program, nvdisasm.version):
            function.cache_clear()
        yield
        for function in (nvdisasm.program, nvdisasm.version):
            function.cache_clear()

    def test_a_listing_that_a_notebook_shows_is_there(self):
        assert kernels.load("transpose/4_unrolled").sass("H200").counts["LDG.32"] == 4

    def test_another_says_what_it_takes(self):
        with pytest.raises(MissingTool, match=r"pip install|none for macOS"):
            kernels.load("matmul/2_tiled").sass("T4")


def test_a_rung_runs_and_is_profiled_and_checked(no_nvrtc):
    kernel, product = kernels.load("matmul/2_tiled"), problem("matmul", 33, 31, 40)
    shape, args = kernels.launch("matmul/2_tiled", product), product.args(np)
    kernel(*shape, args)
    product.verify(product.output(args))
    assert kernel.profile(*shape, args).occupancy.blocks > 0
    assert kernel.check(*shape, args) == []


@pytest.mark.parametrize(
    ("system", "way_out"),
    [
        ("darwin", "makes none for macOS: run it on Linux or Windows, or"),
        ("linux", "pip install nvidia-cuda"),
    ],
)
def test_a_kernel_of_ones_own_says_what_it_takes(no_nvrtc, monkeypatch, system, way_out):
    monkeypatch.setattr(sys, "platform", system)
    with pytest.raises(NoNvrtc, match=way_out):
        simt.RawModule(code=OWN)


def test_a_rung_with_other_parameters_than_the_course_has_is_one_of_these(no_nvrtc):
    with pytest.raises(NoNvrtc, match="this is another"):
        kernels.load("matmul/2_tiled", TILE=7)


def test_it_holds_what_nvrtc_makes(monkeypatch, tmp_path):
    ours, theirs = precompiled.manifest()["packages"][COMPILER_WHEEL], nvrtc._version(COMPILER_WHEEL)
    if ours != theirs:
        pytest.skip(f"the archive was made by NVRTC {ours}, and {theirs} is installed")
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    tiled = kernels.source("matmul/2_tiled"), ("--std=c++17",)
    made = nvrtc.compile_ptx(*tiled)
    monkeypatch.setattr(nvrtc, "_Program", _absent)
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "empty"))
    assert nvrtc.compile_ptx(*tiled) == made


def _absent(*_):
    raise NoNvrtc("not here")
