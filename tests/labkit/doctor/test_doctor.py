"""`labkit doctor` says what does not fit on a machine, and the one command that mends it there."""

import re
import shlex
import subprocess
import sys
import tomllib
import types
from importlib import import_module
from pathlib import Path

import pytest

from labkit import doctor, mend
from labkit.doctor import MISSING, OK, OPTIONAL, Gpu, Row, machine, nvdisasm, nvrtc, students
from simt.common import memory

ROOT = Path(__file__).parents[3]
GPU = import_module("labkit.doctor.gpu")
ROWS = (
    "Python",
    "Packages",
    "NVRTC (CUDA C++ to PTX)",
    "nvdisasm (machine code as text)",
    "LLVM (PTX to this CPU)",
    "JupyterLab",
    "C compiler",
    "GPU",
    "CuPy",
    "Sandbox (labkit grade)",
    "Cache",
    "Machine",
)
HOPPER = "NVIDIA H200, 580.95.05, 9.0"
MODPROBE = "sudo modprobe nvidia"
NVRTC, COMPILER, CARD, CUPY = "NVRTC (CUDA C++ to PTX)", "C compiler", "GPU", "CuPy"
NVDISASM = "nvdisasm (machine code as text)"
SANDBOX, MACHINE = "Sandbox (labkit grade)", "Machine"
PIP = f"{shlex.quote(sys.executable)} -m pip"


def row(name: str) -> Row:
    return next(row for row in doctor.report() if row.name == name)


def script(path: Path, lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)


@pytest.fixture
def path(monkeypatch, tmp_path):
    """A folder of commands that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def smi(path):
    """Makes an nvidia-smi that answers so."""
    return lambda answer, status=0: script(
        path / "nvidia-smi", f"printf '%s\\n' {shlex.quote(answer)}\nexit {status}"
    )


@pytest.fixture
def packages(monkeypatch, tmp_path):
    """Installs empty packages of these versions before all others."""

    def install(**versions):
        for name, number in versions.items():
            folder = tmp_path / "site" / f"{name}-{number}.dist-info"
            folder.mkdir(parents=True)
            (folder / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {number}\n"
            )
        monkeypatch.syspath_prepend(str(tmp_path / "site"))

    return install


@pytest.fixture
def system(monkeypatch, tmp_path):
    """Makes files of a machine that has nothing else in /proc, /sys, /dev, /etc and /run."""
    root = tmp_path / "root"
    for name in ("PROC", "SYS", "DEV", "ETC", "RUN"):
        for module in (machine, memory):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, root / name.lower())

    def make(**files):
        for name, content in files.items():
            file = root / name.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        return root

    return make


@pytest.fixture
def outside(monkeypatch, tmp_path):
    """An installed labkit, not that of a clone."""
    monkeypatch.setattr(mend, "ROOT", tmp_path)


class TestReport:
    def test_the_course_can_run_here(self):
        assert {row.name: row.state for row in doctor.report() if row.state == MISSING} == {}

    def test_students_are_told_in_plain_words(self):
        table = students.table([Row(name, OK, "x") for name in ROWS])
        assert [row.state for row in table.rows] == [students.READY] * 3
        assert not re.search("NVRTC|LLVM|PTX|Sandbox|CuPy", repr(table) + table._repr_html_())

    @pytest.mark.parametrize(
        ("name", "state", "told"),
        [
            ("LLVM (PTX to this CPU)", MISSING, "✗ Cells of CUDA: to be mended. It is gone.\n    mend it"),
            ("C compiler", OPTIONAL, "○ Cells of C: not here. There is no C compiler that works."),
            ("GPU", OPTIONAL, "○ GPU: not here. None is needed. The simulator runs your kernels"),
            ("CuPy", OPTIONAL, "○ GPU: not here. There is one, but CuPy"),
            ("Machine", OPTIONAL, "✗ Memory: to be mended."),
            ("Cache", OPTIONAL, "○ Cache: not here."),
            ("Sandbox (labkit grade)", OPTIONAL, ""),
        ],
    )
    def test_students_are_told_what_to_mend(self, name, state, told):
        rows = [
            Row(each, state, "It is gone", "mend it") if each == name else Row(each, OK, "x") for each in ROWS
        ]
        table = students.table(rows)
        assert told in repr(table) and ("mend it" in repr(table)) == bool(told)
        assert repr(table).count("✓") + bool(told) == len(table.rows)

    def test_the_report_has_what_students_are_told_of(self):
        assert {row.name for row in doctor.report()} == set(ROWS)

    def test_a_broken_package_is_a_row_not_a_crash(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        packages = row("Packages")
        assert packages.state == MISSING and "matplotlib" in packages.detail and "pip install" in packages.fix

    def test_a_cache_that_cannot_be_written_is_told(self, monkeypatch, tmp_path):
        (tmp_path / "file").touch()
        monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "file" / "below"))
        assert row("Cache").state == OPTIONAL and "LABKIT_CACHE" in row("Cache").fix

    def test_it_can_be_asked_before_anything_is_installed(self):
        code = "from labkit.doctor import suggested_extras; print(suggested_extras())"
        bare = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"]
        assert subprocess.run(bare, capture_output=True, text=True, check=True).stdout.startswith("[")


class TestMend:
    def test_a_clone_is_installed_from_where_it_is(self):
        assert mend.install("cc") == f"{PIP} install --editable {shlex.quote(f'{ROOT}[cc]')}"

    def test_an_installed_labkit_takes_an_extra_by_name(self, outside):
        assert mend.install("cc") == f"{PIP} install 'labkit[cc]'"

    def test_where_labkit_is_not_installed_its_name_is_nobodys(self, outside, monkeypatch):
        monkeypatch.setattr(mend, "installed", lambda name: "")
        assert mend.install("cc") == mend.install() == ""

    def test_on_colab_pip_is_a_magic(self, outside, monkeypatch):
        monkeypatch.setenv("COLAB_RELEASE_TAG", "release-colab")
        assert mend.install("cuda12") == "%pip install 'labkit[cuda12]'"
        both = "!pip uninstall --yes cupy-cuda13x && pip install 'labkit[cuda12]'"
        assert mend.other_cupy(["cupy-cuda13x"], "cuda12") == both

    def test_in_conda_its_own_packages_are_taken(self, monkeypatch, tmp_path, path):
        (tmp_path / "conda-meta").mkdir()
        monkeypatch.setattr(sys, "prefix", str(tmp_path))
        script(path / "mamba", "")
        begin = f"mamba install --prefix {tmp_path} --channel conda-forge "
        assert mend.cupy("cuda12") == begin + "'cupy>=14,<15' cuda-version=12 nvidia-ml-py"
        monkeypatch.setattr(sys, "platform", "linux")
        assert mend.compiler() == begin + "gcc"

    def test_where_uv_made_the_environment_it_installs(self, outside, monkeypatch, path):
        monkeypatch.setattr(mend, "find_spec", lambda name: None)
        script(path / "uv", "")
        python = shlex.quote(sys.executable)
        assert mend.install("cc") == f"uv pip install --python {python} 'labkit[cc]'"
        assert mend.pip("uninstall --yes a b") == f"uv pip uninstall --python {python} a b"

    def test_bounds_are_those_of_pyproject(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        needed = " ".join(project["dependencies"])
        for name in (nvrtc.BINDINGS, nvrtc.NVRTC, *nvrtc.HEADERS, nvrtc.CCCL, nvdisasm.NVDISASM):
            assert f"{name}>={nvrtc.MAJOR}.0,<{int(nvrtc.MAJOR) + 1};" in needed
        bounds = project["optional-dependencies"]["cuda12"][0].removeprefix("cupy-cuda12x[ctk]")
        assert f"'cupy{bounds}'" in Path(mend.__file__).read_text()


class TestNvrtc:
    def test_bindings_of_cuda_12_beside_nvrtc_13_are_told(self, packages):
        packages(cuda_bindings="12.9.2")
        found = row(NVRTC)
        assert found.state == MISSING and found.detail == "cuda-bindings 12.9.2: labkit takes CUDA 13"
        assert found.fix == f"{PIP} install 'cuda-bindings==13.*'"

    def test_an_older_nvrtc_is_told(self, packages):
        packages(nvidia_cuda_nvrtc="12.8.93", nvidia_cuda_crt="12.8.93")
        found = row(NVRTC)
        assert found.detail.startswith("nvidia-cuda-nvrtc 12.8.93 and nvidia-cuda-crt 12.8.93: ")
        assert found.fix.endswith("'nvidia-cuda-nvrtc==13.*' 'nvidia-cuda-crt==13.*'")

    @pytest.mark.parametrize(
        ("path", "fix"),
        [("/elsewhere", "unset LD_LIBRARY_PATH"), (None, "--force-reinstall 'nvidia-cuda-nvrtc==13.77.*'")],
    )
    def test_another_library_than_the_package_s_is_told(self, packages, monkeypatch, path, fix):
        from simt.compiler.nvrtc import nvrtc_version

        monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
        if path:
            monkeypatch.setenv("LD_LIBRARY_PATH", path)
        packages(nvidia_cuda_nvrtc="13.77.1")
        found = row(NVRTC)
        assert found.detail == f"NVRTC {nvrtc_version()} loads in place of the installed 13.77.1"
        assert fix in found.fix

    def test_headers_of_another_minor_version_that_compile_are_only_named(self, packages):
        packages(nvidia_cuda_crt="13.77.1")
        found = row(NVRTC)
        assert (found.state, found.fix) == (OK, "") and found.detail.endswith(", nvidia-cuda-crt 13.77.1")

    def test_headers_that_do_not_compile_are_brought_to_nvrtc_s_version(
        self, packages, monkeypatch, tmp_path
    ):
        from simt.compiler import nvrtc as compile_cuda

        monkeypatch.setattr(compile_cuda, "include_paths", lambda: ())
        monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
        packages(nvidia_cuda_crt="13.77.2")
        found, version = row(NVRTC), compile_cuda.nvrtc_version()
        assert found.state == MISSING and 'open source file "cuda_fp16.h"' in found.detail
        assert f"install --force-reinstall 'nvidia-cuda-nvrtc=={version}.*' " in found.fix
        assert f"'nvidia-cuda-crt=={version}.*' 'nvidia-cuda-cccl==13.*'" in found.fix

    def test_a_library_that_does_not_load_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cuda.bindings", None)
        found = row(NVRTC)
        assert found.state == MISSING and "it does not load: " in found.detail
        assert "--force-reinstall 'nvidia-cuda-nvrtc==13." in found.fix


@pytest.fixture
def disassembler():
    """The finder of the disassembler, which looks anew before and after the test."""
    from simt.compiler import nvdisasm as found

    for function in (found.program, found.version):
        function.cache_clear()
    yield found
    for function in (found.program, found.version):
        function.cache_clear()


class TestNvdisasm:
    def test_the_one_in_use_is_named(self, disassembler):
        found = row(NVDISASM)
        assert found.state == OK
        number, _, path = found.detail.partition(" at ")
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        assert f"V{number}" in told

    def test_without_one_it_says_how_to_install_it(self, disassembler, monkeypatch, path):
        monkeypatch.setitem(sys.modules, "nvidia", None)
        found = row(NVDISASM)
        assert found.state == OPTIONAL and "nvidia-cuda-nvdisasm not installed" in found.detail
        assert found.fix == f"{PIP} install --upgrade 'nvidia-cuda-nvdisasm==13.*'"

    def test_one_that_does_not_read_the_compiler_s_code_is_brought_to_its_version(
        self, disassembler, monkeypatch, path, tmp_path
    ):
        from simt.compiler.nvrtc import nvrtc_version

        monkeypatch.setitem(sys.modules, "nvidia", None)
        monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
        script(path / "nvdisasm", "echo 'nvdisasm fatal: unsupported architecture' >&2; exit 1")
        found = row(NVDISASM)
        assert found.state == OPTIONAL and "unsupported architecture" in found.detail
        assert found.fix.endswith(f"'nvidia-cuda-nvdisasm=={nvrtc_version()}.*'")

    def test_on_macos_there_is_none(self, monkeypatch):
        monkeypatch.setattr(sys, "platform", "darwin")
        found = row(NVDISASM)
        assert found.state == OPTIONAL and "makes no nvdisasm for macOS" in found.detail
        assert "Colab" in found.fix


class TestGpu:
    @pytest.mark.parametrize(
        ("driver", "capability", "extra"),
        [
            ("580.65.06", (9, 0), "cuda13"),
            ("580.65.06", (7, 5), "cuda13"),
            ("580.65.06", (7, 0), "cuda12"),  # CUDA 13 dropped Volta
            ("575.57.08", (9, 0), "cuda12"),
            ("525.60.13", (8, 0), "cuda12"),
            ("470.82.01", (8, 0), None),
        ],
    )
    def test_extra_by_driver_and_architecture(self, driver, capability, extra):
        assert Gpu("GPU", driver, capability).extra == extra

    @pytest.mark.parametrize(
        ("answer", "gpu"),
        [
            (f"{HOPPER}\n{HOPPER}", Gpu("NVIDIA H200", "580.95.05", (9, 0))),
            ("", None),
            ("No devices were found", None),
            ("NVIDIA H200, 580.95.05, [N/A]", None),
        ],
    )
    def test_reads_nvidia_smi(self, smi, answer, gpu):
        smi(answer)
        assert doctor.find_gpu() == gpu

    def test_none_without_nvidia_smi(self, path, monkeypatch):
        monkeypatch.setattr(GPU, "WSL_SMI", "/nonexistent")
        assert doctor.find_gpu() is None

    def test_extras_for_a_gpu_and_no_compiler(self, smi, monkeypatch):
        smi(HOPPER)
        monkeypatch.setattr(doctor, "find_compiler", lambda: None)
        assert doctor.suggested_extras() == ["cuda13", "cc"]

    @pytest.mark.gpu
    def test_a_real_gpu_is_found(self):
        assert row(CARD).state == OK


class TestDriver:
    def test_too_old_for_cuda_12(self, smi, path, system):
        smi("Tesla K80, 470.82.01, 3.7")
        script(path / "apt", "")
        found = row(CARD)
        assert found.detail.endswith("driver 470.82.01: too old for CUDA 12, which needs 525")
        assert (found.state, found.fix) == (OPTIONAL, "sudo apt install nvidia-driver")

    @pytest.mark.parametrize(
        ("complaint", "fix"),
        [
            ("Failed to initialize NVML: Driver/library version mismatch", "sudo reboot"),
            ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\nMake", MODPROBE),
            ('Field "compute_cap" is not a valid field to query.', "sudo ubuntu-drivers install"),
            ("Segmentation fault", ""),
        ],
    )
    def test_what_nvidia_smi_complains_of_is_told(self, smi, path, system, complaint, fix):
        script(path / "ubuntu-drivers", "")
        smi(complaint, status=9)
        first = complaint.splitlines()[0].rstrip(".")
        assert row(CARD).detail == f"nvidia-smi fails ({first}): the simulator runs the kernels"
        assert row(CARD).fix == fix

    def test_in_a_container_the_host_has_to_be_mended(self, smi, system):
        system(run__Xcontainerenv="")
        (machine.RUN / "Xcontainerenv").rename(machine.RUN / ".containerenv")
        smi("couldn't communicate with the NVIDIA driver", status=9)
        assert row(CARD).fix == "on the host: sudo modprobe nvidia"

    def test_no_card_and_no_driver_is_no_fault(self, path, system):
        system(sys__bus__pci__devices__0__vendor="0x10de\n", sys__bus__pci__devices__0__class="0x040300\n")
        assert (row(CARD).detail, row(CARD).fix) == (
            "no NVIDIA GPU found: the simulator runs the kernels",
            "",
        )

    def test_a_card_without_a_driver_is_told(self, path, system):
        system(sys__bus__pci__devices__0__vendor="0x10de\n", sys__bus__pci__devices__0__class="0x030200\n")
        script(path / "dnf", "")
        assert row(CARD).detail.startswith("an NVIDIA GPU is there, but no driver")
        assert row(CARD).fix == "sudo dnf install akmod-nvidia"

    def test_a_card_that_the_container_was_not_given_is_told(self, path, system):
        root = system(
            sys__bus__pci__devices__0__vendor="0x10de\n", sys__bus__pci__devices__0__class="0x030000\n"
        )
        (root / ".dockerenv").touch()
        assert row(CARD).fix.startswith("start the container with --gpus all (docker)")

    @pytest.mark.parametrize(
        ("distribution", "name"), [("ubuntu", "nvidia-utils-580"), ("debian", "nvidia-smi")]
    )
    def test_a_driver_without_nvidia_smi_is_told(self, path, system, distribution, name):
        version = (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23\nGCC version: 12.2.0\n"
        )
        system(dev__nvidia0="", proc__driver__nvidia__version=version)
        (machine.ETC / "os-release").parent.mkdir()
        (machine.ETC / "os-release").write_text(f"NAME=x\nID={distribution}\n")
        script(path / "apt", "")
        assert "nvidia-smi is not there" in row(CARD).detail
        assert row(CARD).fix == f"sudo apt install {name}"

    def test_wsl_takes_the_driver_of_windows(self, path, system, monkeypatch):
        monkeypatch.setattr(GPU, "WSL_SMI", "/nonexistent")
        system(proc__sys__kernel__osrelease="5.15.153.1-microsoft-standard-WSL2\n")
        assert row(CARD).detail.startswith("no NVIDIA GPU found in WSL")
        assert "driver in Windows, not in WSL" in row(CARD).fix

    def test_wsl_1_is_told(self, path, system, monkeypatch):
        monkeypatch.setattr(GPU, "WSL_SMI", "/nonexistent")
        monkeypatch.setenv("WSL_DISTRO_NAME", "Debian")
        system(proc__sys__kernel__osrelease="4.4.0-19041-Microsoft\n")
        assert row(CARD).fix == "in Windows: wsl --set-version Debian 2"

    def test_nvidia_smi_of_wsl_need_not_be_on_the_path(self, path, system, monkeypatch, tmp_path):
        script(tmp_path / "wsl" / "nvidia-smi", f"echo '{HOPPER}'")
        monkeypatch.setattr(GPU, "WSL_SMI", str(tmp_path / "wsl" / "nvidia-smi"))
        assert row(CARD).state == OK


class TestCupy:
    def test_a_gpu_without_cupy_asks_for_the_extra(self, smi, outside, monkeypatch):
        smi(HOPPER)
        monkeypatch.setattr(GPU, "distributions", list)
        assert row(CUPY).state == OPTIONAL and row(CUPY).fix == f"{PIP} install 'labkit[cuda13]'"

    def test_two_wheels_are_told(self, smi, outside, packages):
        smi(HOPPER)
        packages(cupy_cuda12x="14.2.0", cupy_cuda13x="14.2.0")
        assert row(CUPY).detail == "cupy-cuda12x and cupy-cuda13x overwrite each other"
        remove = f"{PIP} uninstall --yes cupy-cuda12x cupy-cuda13x"
        assert row(CUPY).fix == f"{remove} && {PIP} install 'labkit[cuda13]'"

    def test_a_driver_too_old_for_the_wheel_is_told(self, smi, outside, packages):
        smi("NVIDIA A100, 550.54.15, 8.0")
        packages(cupy_cuda13x="14.2.0")
        found = row(CUPY)
        assert found.detail == (
            "cupy-cuda13x needs driver 580 or newer and a GPU from Turing on; "
            "here are driver 550.54.15 and NVIDIA A100"
        )
        assert found.fix == f"{PIP} uninstall --yes cupy-cuda13x && {PIP} install 'labkit[cuda12]'"

    def test_a_toolkit_of_another_cuda_is_told(self, smi, outside, packages):
        smi(HOPPER)
        packages(cupy_cuda12x="14.2.0", cuda_toolkit="13.0.2")
        assert row(CUPY).detail == "cupy-cuda12x is for CUDA 12, its toolkit of 13.0"
        assert row(CUPY).fix == f"{PIP} install 'labkit[cuda12]'"

    def test_cuda_path_of_another_cuda_is_told(self, smi, packages, monkeypatch, tmp_path):
        smi(HOPPER)
        packages(cupy_cuda13x="14.2.0", cuda_toolkit="13.0.2")
        (tmp_path / "version.json").write_text('{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}')
        monkeypatch.setenv("CUDA_PATH", str(tmp_path))
        assert row(CUPY).detail == f"cupy-cuda13x is for CUDA 13, CUDA_PATH is {tmp_path}, of 12.4"
        assert row(CUPY).fix == "unset CUDA_PATH"

    def test_a_wheel_that_cannot_run_a_kernel_is_told(self, smi, packages, monkeypatch):
        def refuse(**_):
            raise RuntimeError("CUDA driver version is insufficient\nmore")

        smi(HOPPER)
        monkeypatch.delenv("CUDA_PATH", raising=False)
        packages(cupy_cuda13x="14.2.0", cuda_toolkit="13.0.2")
        monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(RawModule=refuse))
        assert row(CUPY).detail.endswith("with driver 580.95.05: CUDA driver version is insufficient")
        assert row(CUPY).fix.startswith(f"{PIP} uninstall --yes cupy-cuda13x && ")


class TestCompiler:
    def test_without_one_it_names_the_extra(self, monkeypatch, outside):
        monkeypatch.setattr(doctor, "find_compiler", lambda: None)
        compiler = row(COMPILER)
        assert compiler.state == OPTIONAL and compiler.fix == f"{PIP} install 'labkit[cc]'"

    def test_one_without_headers_is_told(self, path, monkeypatch):
        monkeypatch.delenv("CC", raising=False)
        script(path / "cc", 'echo "<stdin>:1:10: fatal error: math.h: No such file" >&2; exit 1')
        script(path / "apt", "")
        compiler = row(COMPILER)
        assert compiler.detail == "cc fails: <stdin>:1:10: fatal error: math.h: No such file"
        assert (compiler.state, compiler.fix) == (OPTIONAL, "sudo apt install libc6-dev")


def gigabytes(number: float) -> str:
    return str(int(number * 1e9))


MEMINFO = "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\n"


class TestMemory:
    def test_of_the_machine(self, system):
        system(proc__meminfo=MEMINFO)
        assert memory.free_on_host() == (12_000_000 * 1024, 16_000_000 * 1024, "")
        assert row(MACHINE).state == OK

    def test_a_container_s_limit_in_version_2(self, system):
        """Its own group is the root of the tree."""
        system(
            proc__meminfo=MEMINFO,
            proc__self__cgroup="0::/\n",
            **{
                "sys__fs__cgroup__memory.max": gigabytes(3),
                "sys__fs__cgroup__memory.current": gigabytes(1.5),
                "sys__fs__cgroup__memory.stat": f"anon 1\ninactive_file {gigabytes(1)}\n",
            },
        )
        assert memory.free_on_host() == (2.5e9, 3e9, "container")
        assert "2.5 GB of memory free of 3.0 (the limit of this container)" in row(MACHINE).detail

    def test_a_limit_of_version_2_on_a_group_above(self, system):
        system(
            proc__meminfo=MEMINFO,
            proc__self__cgroup="0::/hub/ann\n",
            **{
                "sys__fs__cgroup__hub__ann__memory.max": "max\n",
                "sys__fs__cgroup__hub__memory.max": gigabytes(4),
            },
        )
        assert memory.free_on_host() == (4e9, 4e9, "container")

    @pytest.mark.parametrize("folder", ["", "hub__"])
    def test_a_limit_of_version_1(self, system, folder):
        """In a container the name of the group is that outside; on a machine it is where the file lies."""
        place = f"sys__fs__cgroup__memory__{folder}memory."
        system(
            proc__meminfo=MEMINFO,
            proc__self__cgroup="5:cpu:/other\n4:memory:/hub\n0::/\n",
            **{
                "sys__fs__cgroup__memory__memory.limit_in_bytes": "9223372036854771712\n",
                f"{place}limit_in_bytes": gigabytes(3),
                f"{place}usage_in_bytes": gigabytes(2),
                f"{place}stat": f"inactive_file 7\ntotal_inactive_file {gigabytes(0.5)}\n",
            },
        )
        assert memory.free_on_host() == (1.5e9, 3e9, "container")

    def test_little_that_is_taken_already_can_be_given_back(self, system):
        system(proc__meminfo="MemTotal: 8000000 kB\nMemAvailable: 1000000 kB\n")
        found = row(MACHINE)
        assert found.state == OPTIONAL and "1.0 GB of memory free of 8.2; a notebook takes" in found.detail
        assert found.fix == "in JupyterLab: Kernel, Shut Down All Kernels"

    def test_little_in_a_container_takes_a_larger_one(self, system):
        system(
            proc__meminfo=MEMINFO,
            proc__self__cgroup="0::/\n",
            **{"sys__fs__cgroup__memory.max": gigabytes(1)},
        )
        assert "--memory 3g" in row(MACHINE).fix

    def test_little_in_wsl_is_a_setting_of_windows(self, system):
        system(
            proc__meminfo="MemTotal: 2000000 kB\nMemAvailable: 1500000 kB\n",
            proc__sys__kernel__osrelease="5.15.153.1-microsoft-standard-WSL2\n",
        )
        assert "in WSL" in row(MACHINE).detail and "wsl --shutdown" in row(MACHINE).fix

    def test_a_system_that_does_not_tell(self, system):
        assert memory.free_on_host() is None and row(MACHINE).state == OK


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading takes Linux")
class TestSandbox:
    def test_a_sandbox_that_works_has_its_version(self):
        from grader.sandbox import process

        if process.best() != process.BUBBLEWRAP:
            pytest.skip("needs bubblewrap")
        assert row(SANDBOX).state == OK and row(SANDBOX).detail.startswith("bubblewrap ")

    @pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
    def test_without_bubblewrap_it_says_what_to_install(self, path, manager):
        script(path / manager, "")
        found = row(SANDBOX)
        assert (found.state, found.fix) == (OPTIONAL, f"sudo {manager} install bubblewrap")
        assert "not installed" in found.detail

    def test_without_what_grades_it_names_the_extra(self, monkeypatch, path, outside):
        script(path / "bwrap", "")
        monkeypatch.setitem(sys.modules, "msgpack", None)
        for name in [name for name in sys.modules if name.startswith("grader.sandbox")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr("grader.sandbox", raising=False)
        found = row(SANDBOX)
        assert (found.state, found.detail[:7]) == (OPTIONAL, "msgpack")
        assert found.fix == f"{PIP} install 'labkit[grade]'"

    @pytest.mark.parametrize(
        ("settings", "fix"),
        [
            ({"apparmor_restrict_unprivileged_userns": "1"}, "extra-profiles/bwrap-userns-restrict"),
            (
                {"apparmor_restrict_unprivileged_userns": "0", "unprivileged_userns_clone": "0"},
                "sudo sysctl ",
            ),
            ({}, ""),
        ],
    )
    def test_where_bubblewrap_may_not_make_namespaces_it_says_what_lets_it(
        self, path, monkeypatch, settings, fix
    ):
        from grader.sandbox import process

        def refuse(tier):
            raise process.NoSandbox("setting up uid map: Permission denied")

        monkeypatch.setattr(process, "require", refuse)
        monkeypatch.setattr("grader.doctor._setting", lambda name: settings.get(name, ""))
        script(path / "bwrap", "")
        found = row(SANDBOX)
        assert found.state == OPTIONAL and "uid map" in found.detail and fix in found.fix
        assert bool(fix) == bool(found.fix)
