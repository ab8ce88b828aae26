"""Where the lab runs: conda's and Binder's lists of requirements, Colab's versions, and a notebook in each.

Conda, Colab and mybinder.org themselves are not tried: pip stands for them, with the same versions and steps.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import psutil
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from served import answer

from labkit.course.notebooks import badges

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COLAB = ROOT / "tests" / "colab.txt"
BINDER_BYTES = 2 * 2**30  # what mybinder.org gives a session
OPENED = "notebooks/00_start_here.ipynb"


def pip_bounds() -> dict[str, SpecifierSet]:
    """Package -> bounds, of the base install and the extras; CuPy's wheels count as cupy."""
    extras = PROJECT["optional-dependencies"].values()
    requirements = [Requirement(line) for lines in (PROJECT["dependencies"], *extras) for line in lines]
    return {re.sub("^cupy-.*", "cupy", r.name): r.specifier for r in requirements}


def dependencies(name: str) -> list:
    """What a file for conda lists."""
    return yaml.safe_load((ROOT / name).read_text())["dependencies"]


def conda_lines(name: str) -> list[str]:
    """The packages with bounds that conda installs from a file."""
    return [line for line in dependencies(name) if ">=" in line]


def entries(path: Path) -> list[str]:
    """The lines of a list, without its comments."""
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


class TestConda:
    @pytest.mark.parametrize("name", ["environment.yml", "environment-gpu.yml"])
    def test_has_the_bounds_of_pip(self, name):
        bounded = {r.name: r.specifier for r in map(Requirement, conda_lines(name))}
        assert bounded == {package: pip_bounds().get(package) for package in bounded} != {}

    def test_has_all_that_working_with_the_notebooks_needs(self):
        lab = {Requirement(line).name for line in PROJECT["optional-dependencies"]["lab"]}
        assert lab < {Requirement(line).name for line in conda_lines("environment.yml")}
        assert dependencies("environment.yml")[-1] == {"pip": ["-e ."]}

    def test_a_gpu_is_in_a_file_of_its_own(self):
        """An environment.yml has no way to say: not on macOS, for which conda-forge has no CuPy."""
        gpu = {Requirement(line).name for line in conda_lines("environment-gpu.yml")}
        cuda = {
            re.sub("-cuda.*", "", Requirement(line).name)
            for line in PROJECT["optional-dependencies"]["cuda13"]
        }
        assert gpu == cuda == {Requirement(line).name for line in dependencies("environment-gpu.yml")}
        assert not any(line.startswith(tuple(gpu)) for line in conda_lines("environment.yml"))

    def test_conda_and_binder_pin_one_minor_version_of_a_python_that_pip_takes(self):
        pinned = dependencies("environment.yml")[0].removeprefix("python=")
        assert SpecifierSet(PROJECT["requires-python"]).contains(pinned)
        assert entries(ROOT / "binder" / "runtime.txt") == [f"python-{pinned}"]


class TestBinder:
    def test_installs_the_course_as_it_lies_there_without_cupy(self):
        assert entries(ROOT / "binder" / "requirements.txt") == ["-e .[lab]"]
        assert "gcc" in entries(ROOT / "binder" / "apt.txt")
        assert not any(
            "cupy" in line for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"]]
        )

    def test_has_only_files_that_it_reads(self):
        """Beside an environment.yml here, requirements.txt would not be read."""
        assert {path.name for path in (ROOT / "binder").iterdir()} == {
            "apt.txt",
            "requirements.txt",
            "runtime.txt",
        }

    def test_opens_a_notebook_that_is_there(self):
        assert badges.repository(ROOT).binder().endswith(f"?urlpath=lab/tree/{OPENED}")
        assert (ROOT / OPENED).is_file()


def test_colab_has_what_the_base_install_asks_for():
    pins = {r.name: str(r.specifier).removeprefix("==") for r in map(Requirement, entries(COLAB))}
    assert {"numpy", "matplotlib", "ipython", "ipywidgets", "ipykernel", "pandas"} < set(pins)
    base = {r.name: r.specifier for r in map(Requirement, PROJECT["dependencies"])}
    assert [name for name, version in pins.items() if name in base and version not in base[name]] == []


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A repository of its own with the files of this one as they are, tagged as this version."""
    folder = tmp_path_factory.mktemp("clone") / "labkit"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no clone")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    run(["git", "init", "--quiet"], folder)
    run(["git", "add", "--all"], folder)
    author = ["-c", "user.name=labkit", "-c", "user.email=labkit@localhost"]
    run(["git", *author, "commit", "--quiet", "--message", "all"], folder)
    run(["git", "tag", badges.repository(ROOT).tag], folder)
    return folder


def run(command, folder, **environment):
    """Run a command in a folder, without a choice of device. Its text; AssertionError with it if it fails.

    It finds only the modules of its own Python, and not those of the tests' PYTHONPATH.
    """
    own = {name: value for name, value in os.environ.items() if name not in ("LABKIT_DEVICE", "PYTHONPATH")}
    environment = {**own, **environment}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def fresh_python(folder):
    """The Python of a new virtual environment."""
    run([sys.executable, "-m", "venv", folder], ROOT)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def installed(python):
    """Package -> version, of all that a Python has."""
    lines = run([python, "-m", "pip", "list", "--format=freeze"], ROOT).splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    """A Python with Colab's versions; without labkit until a notebook installs it."""
    python = fresh_python(tmp_path_factory.mktemp("colab"))
    run([python, "-m", "pip", "install", "--quiet", "--requirement", COLAB], ROOT)
    return python


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Colab's NumPy has no wheel for this Python")
class TestColab:
    @pytest.mark.parametrize("name", ["notebooks/02_naive_cuda", "notebooks/solutions/00_start_here"])
    def test_a_notebook_alone_installs_labkit_and_moves_nothing_else(self, colab, clone, tmp_path, name):
        alone, cache = tmp_path / "content", tmp_path / "cache"
        alone.mkdir()
        shutil.copy(clone / f"{name}.ipynb", alone)
        before = installed(colab)
        execute = ["--to", "notebook", "--execute", "--output-dir", tmp_path / "out"]
        run(
            [colab, "-m", "nbconvert", *execute, f"{Path(name).name}.ipynb"],
            alone,
            LABKIT_CACHE=str(cache),
            # The address in the notebook leads to the clone.
            GIT_CONFIG_COUNT="1",
            GIT_CONFIG_KEY_0=f"url.{clone.as_uri()}.insteadOf",
            GIT_CONFIG_VALUE_0=f"https://github.com/{badges.repository(clone).name}",
        )
        after = installed(colab)
        assert "labkit" in after and not {"cupy-cuda12x", "cupy-cuda13x", "jupyterlab"} & set(after)
        assert before.items() <= after.items()
        left = {path.name for path in alone.iterdir()} - {"progress.jsonl"}  # what its checks earned
        assert left == {f"{Path(name).name}.ipynb"}


@pytest.mark.slow
class TestBinderSteps:
    def test_the_course_opens_and_runs_within_the_memory_of_a_session(self, clone, tmp_path):
        python = fresh_python(tmp_path / "venv")
        run([python, "-m", "pip", "install", "--quiet", "-r", "binder/requirements.txt"], clone)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = ["--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token="]
        environment = {**os.environ, "LABKIT_CACHE": str(tmp_path / "cache")}
        environment.pop("LABKIT_DEVICE", None)
        environment.pop("PYTHONPATH", None)
        lab = subprocess.Popen(
            [python, "-m", "jupyterlab", *options],
            cwd=clone,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert any(f"127.0.0.1:{port}/lab" in line for line in lab.stderr)  # or it has ended
            with answer(f"http://127.0.0.1:{port}/lab/tree/{OPENED}", lab) as page:
                assert page.status == 200 and b"JupyterLab" in page.read()
            command = [python, "-m", "labkit", "run", "--solved", "00", "--out", tmp_path / "pages"]
            notebook = subprocess.Popen(
                command,
                cwd=clone,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            peak = peak_bytes(lab, notebook)
            assert notebook.returncode == 0, notebook.stdout.read()
            assert peak < BINDER_BYTES, f"{peak / 2**20:.0f} MiB"
        finally:
            lab.terminate()
            lab.communicate()


def peak_bytes(*processes):
    """The most memory that processes and all that they start hold together, until the last of them ends."""
    peak = 0
    while processes[-1].poll() is None:
        held = 0
        for process in processes:
            for each in [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]:
                try:
                    held += each.memory_info().rss
                except psutil.NoSuchProcess:  # it has ended meanwhile
                    continue
        peak = max(peak, held)
        try:
            processes[-1].wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    return peak


@pytest.mark.slow
def test_cupy_for_cuda_12_and_labkit_compile_with_its_nvrtc(tmp_path):
    """NVRTC 13 compiles nothing for the drivers and GPUs that the extra cuda12 is for."""
    wheels = [line for line in PROJECT["optional-dependencies"]["cuda12"] if line.startswith("cupy")]
    cupy = wheels[0].replace("[ctk]", "")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "site"]
    run([*pip, cupy, "nvidia-cuda-nvrtc-cu12"], ROOT)
    both = """
import simt
from labkit import device, doctor
print(device().kind)
from cupy.cuda import nvrtc
code = '#include <cuda_fp16.h>\\nextern "C" __global__ void k(half* x) { *x = 1; }'
print(simt.RawModule(code=code).ptx.partition("release ")[2][:2], nvrtc.getVersion()[0])
print(doctor.nvrtc.nvrtc().partition(".")[0])
"""
    paths = os.pathsep.join(map(str, (tmp_path / "site", ROOT)))
    told = run([sys.executable, "-c", both], tmp_path, PYTHONPATH=paths, LABKIT_CACHE=tmp_path / "cache")
    assert told.split() == ["simulator", "12", "12", "12"]
