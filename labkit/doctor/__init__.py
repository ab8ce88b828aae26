"""What is on this machine, what is missing, and the one command that mends it.

Imports nothing but the standard library at its top: the Makefile asks it what to install before anything is.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import distributions, version
from importlib.util import find_spec
from pathlib import Path

from labkit.c.compile import compiler_version, find_compiler
from labkit.cache import cache_dir

OK, MISSING, OPTIONAL = "OK", "missing", "optional"
BASE_PACKAGES = ("numpy", "pandas", "matplotlib", "ipython", "ipywidgets")


@dataclass(frozen=True)
class Row:
    """One line of the report.

    `state` is OK, MISSING (the course cannot run without it) or OPTIONAL (absent, and the course runs).
    `fix` is the command or step that mends it, or "".
    """

    name: str
    state: str
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class Gpu:
    "The first GPU as nvidia-smi describes it; `capability` is its compute capability, (9, 0) for Hopper."

    name: str
    driver: str
    capability: tuple[int, int]

    @property
    def extra(self) -> str | None:
        """The extra of labkit that fits: "cuda13", "cuda12", or None where the driver is too old for both.

        CUDA 13 needs driver 580 and a GPU from Turing (7.5) on; CUDA 12 needs driver 525 (CUDA Toolkit
        Release Notes, "CUDA Toolkit and Corresponding Driver Versions" and "Deprecated Architectures").
        """
        branch = int(self.driver.split(".")[0])
        if branch >= 580 and self.capability >= (7, 5):
            return "cuda13"
        return "cuda12" if branch >= 525 else None


def find_gpu() -> Gpu | None:
    "The first GPU that NVIDIA's driver shows, or None."
    query = ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
        name, driver, capability = answer.splitlines()[0].split(", ")
        major, minor = capability.split(".")
        return Gpu(name, driver, (int(major), int(minor)))
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return None  # no driver, no GPU, or words where figures belong


def suggested_extras() -> list[str]:
    "The extras that this machine calls for: CuPy for its GPU, a C compiler where it has none."
    gpu = find_gpu()
    cuda = [gpu.extra] if gpu and gpu.extra else []
    return cuda if find_compiler() else [*cuda, "cc"]


def report() -> list[Row]:
    "All rows: what the course cannot do without, what it can, and the machine itself."
    needed: list[Check] = [
        ("Python", _python),
        ("Packages", _packages),
        ("NVRTC (CUDA C++ to PTX)", _nvrtc),
        ("LLVM (PTX to this CPU)", _llvm),
    ]
    useful: list[Check] = [
        ("JupyterLab", _jupyter),
        ("C compiler", _c_compiler),
        ("GPU", _gpu),
        ("CuPy", _cupy),
        ("Sandbox (labkit grade)", _sandbox),
        ("Cache", _cache),
        ("Machine", _machine),
    ]
    return [_row(check, MISSING) for check in needed] + [_row(check, OPTIONAL) for check in useful]


class _Absent(Exception):
    "Raised by a check that finds its thing absent or unfit: what is wrong, and what to do about it."

    def __init__(self, detail: str, fix: str = "") -> None:
        super().__init__(detail)
        self.fix = fix


Check = tuple[str, Callable[[], str]]


def _row(check: Check, state_if_absent: str) -> Row:
    "Run one check, which returns its detail. A report has to survive whatever a broken installation raises."
    name, look = check
    try:
        return Row(name, OK, look())
    except _Absent as absent:
        return Row(name, state_if_absent, str(absent), absent.fix)
    except Exception as error:
        return Row(name, state_if_absent, f"{type(error).__name__}: {error}", _install())


def _python() -> str:
    return f"{platform.python_version()} at {sys.executable}"


def _packages() -> str:
    "Versions, of packages that can really be imported: a broken one raises here."
    found = []
    for name in BASE_PACKAGES:
        __import__({"ipython": "IPython"}.get(name, name))
        found.append(f"{name} {version(name)}")
    return ", ".join(found)


def _nvrtc() -> str:
    if sys.platform == "darwin":
        raise _Absent(
            "NVIDIA makes no NVRTC for macOS", "use Linux, Windows or a hosted notebook such as Colab"
        )
    from labkit.compile_cuda import nvrtc_version

    return f"{nvrtc_version()}, cuda-bindings {version('cuda-bindings')}"


def _llvm() -> str:
    import llvmlite
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    vectors = [name for name in ("avx2", "fma", "avx512f", "neon", "sve") if features.get(name)]
    return (
        f"llvmlite {llvmlite.__version__}, {binding.get_host_cpu_name()}: {' '.join(vectors) or 'no vectors'}"
    )


def _jupyter() -> str:
    absent = [name for name in ("jupyterlab", "ipykernel", "nbval") if not find_spec(name)]
    if absent:
        raise _Absent(f"{', '.join(absent)} not installed", _install("lab"))
    return ", ".join(f"{name} {version(name)}" for name in ("jupyterlab", "ipykernel", "nbval"))


def _c_compiler() -> str:
    compiler = find_compiler()
    if compiler is None:
        raise _Absent("none: the CPU versions written in C do not run", _install("cc"))
    return f"{shlex.join(compiler)}: {compiler_version(compiler).partition(chr(10))[0]}"


def _gpu() -> str:
    gpu = find_gpu()
    if gpu is None:
        raise _Absent("no NVIDIA GPU found: the simulator runs the kernels")
    major, minor = gpu.capability
    detail = f"{gpu.name}, compute capability {major}.{minor}, driver {gpu.driver}"
    if gpu.extra is None:
        raise _Absent(f"{detail}: too old for CUDA 12", "install NVIDIA driver 525 or newer")
    return detail


def _cupy() -> str:
    "CuPy's version, once it has run a kernel: that fails when wheel and driver do not fit."
    gpu = find_gpu()
    if gpu is None or gpu.extra is None:
        raise _Absent("of no use without a GPU")
    wheels = sorted({d.name for d in distributions() if d.name.startswith("cupy")})
    if not wheels:
        raise _Absent("not installed: the simulator runs the kernels", _install(gpu.extra))
    mend = f"{_pip()} uninstall --yes {' '.join(wheels)} && {_install(gpu.extra)}"
    if len(wheels) > 1:
        raise _Absent(f"{' and '.join(wheels)} overwrite each other", mend)
    try:
        import cupy

        cupy.RawModule(code='extern "C" __global__ void nothing() {}').get_function("nothing")((1,), (1,), ())
        cupy.cuda.Device().synchronize()
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise _Absent(f"{wheels[0]} cannot run a kernel with driver {gpu.driver}: {reason}", mend) from error
    from labkit.device import gpus  # here: it imports NumPy

    found = ", ".join(f"gpu:{each.index} {each.name}" for each in gpus())  # as LABKIT_DEVICE numbers them
    return f"{wheels[0]} {cupy.__version__}, CUDA {_cuda(cupy.cuda.runtime.runtimeGetVersion())}: {found}"


def _cuda(number: int) -> str:
    "CUDA's version number in words: 12090 is 12.9."
    return f"{number // 1000}.{number % 1000 // 10}"


def _sandbox() -> str:
    "The version of bubblewrap, once a sandbox of it has run Python."
    if not sys.platform.startswith("linux"):
        raise _Absent("teachers grade on Linux, whose namespaces keep submissions apart")
    if not shutil.which("bwrap"):
        raise _Absent("bubblewrap is not installed: teachers need it to grade", _system_package("bubblewrap"))
    try:
        from labkit.grading import sandbox  # here: it imports what only teachers have
    except ImportError as error:
        absent = f"{error.name} is not installed: teachers need it to grade"
        raise _Absent(absent, _install("grade")) from error
    try:
        sandbox.require(sandbox.BUBBLEWRAP)
    except sandbox.NoSandbox as error:
        raise _Absent(str(error), _namespaces()) from error
    return subprocess.run(["bwrap", "--version"], capture_output=True, text=True).stdout.strip()


def _namespaces() -> str:
    "The command that lets bubblewrap make namespaces where a setting of the kernel does not."
    if _setting("apparmor_restrict_unprivileged_userns") == "1":  # Ubuntu; from 25.04 on it has the profile
        profile = "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict"
        return (
            f"sudo apt install apparmor-profiles && sudo cp {profile} /etc/apparmor.d/ && "
            "sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict"
        )
    if _setting("unprivileged_userns_clone") == "0":  # older Debian
        return "sudo sysctl kernel.unprivileged_userns_clone=1"
    return ""


def _setting(name: str) -> str:
    "A setting of the kernel; empty where it has none of that name."
    path = Path("/proc/sys/kernel", name)
    return path.read_text().strip() if path.is_file() else ""


def _system_package(name: str) -> str:
    "The command that installs one of the system's packages; empty for a system that is not known here."
    manager = next(filter(shutil.which, ("apt", "dnf", "zypper")), None)
    return f"sudo {manager} install {name}" if manager else ""


def _cache() -> str:
    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    except OSError as error:
        raise _Absent(
            f"{folder}: {error.strerror}; everything is compiled anew", "set LABKIT_CACHE"
        ) from error
    if not os.access(folder, os.W_OK):
        raise _Absent(f"{folder} is read-only: what is new is compiled each time", "set LABKIT_CACHE")
    return f"{folder}, {size / 1e6:.1f} MB"


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.system()} {platform.machine()}, {cores} cores{_memory()}"


def _memory() -> str:
    "Memory as text, no more than the container may use; empty where the system does not tell."
    if not hasattr(os, "sysconf"):
        return ""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and (text := limit.read_text().strip()).isdigit():
        size = min(size, int(text))
    return f", {size / 2**30:.1f} GiB memory"


def _pip() -> str:
    "The pip of this very Python, which need not be the first on the PATH."
    return f"{shlex.quote(sys.executable)} -m pip"


def _install(extra: str = "") -> str:
    return f"{_pip()} install " + (f"'labkit[{extra}]'" if extra else "labkit")
