"""What is built of the repository: a wheel has all that labkit needs far from it, an sdist all files."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path
from socket import create_server

import pytest
from served import answer

from labkit import __version__
from labkit.course import EXERCISES

pytest.importorskip("hatchling", reason="needs hatchling: make test installs it")
ROOT = Path(__file__).parents[2]
PACKAGES = ("simt", "labkit", "grader")
INSTALLED = (*PACKAGES, "notebooks", "data")


def files(*folders):
    """The repository's files in some folders, those of git where this is a clone."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *folders]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts}


def built(target, out):
    """The file that hatchling makes: a wheel or an sdist."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (file,) = out.iterdir()
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built("wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_has_every_file_of_the_package_the_notebooks_and_the_data(wheel):
    listed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    names = {name for name in listed if ".data/" not in name}
    wanted = {name if name.startswith(PACKAGES) else f"labkit/{name}" for name in files(*INSTALLED)}
    assert names == wanted
    for some in (
        "labkit/kernels/matmul/2_tiled.cu",
        "labkit/kernels/matmul/cpu_packing.h",
        "labkit/c/driver.c",
        "labkit/notebooks/solutions/10_capstone.ipynb",
        "labkit/data/h200/bench.json",
        "simt/compiler/include/cuda_runtime.h",
        "simt/data/gpus.csv",
        "grader/pages/student.html",
    ):
        assert some in names


def test_the_wheel_puts_its_part_of_jupyter_where_jupyter_looks(wheel):
    names = {name.partition(".data/data/")[2] for name in zipfile.ZipFile(wheel).namelist()} - {""}
    assert names == {
        "etc/jupyter/jupyter_server_config.d/labkit.json",
        "share/jupyter/lab/settings/overrides.d/labkit.json",
        *(
            name.replace("labkit/lab/extension", "share/jupyter/labextensions/labkit")
            for name in files("labkit/lab/extension")
        ),
    }


def test_the_sdist_has_every_file_of_the_repository(tmp_path):
    with tarfile.open(built("sdist", tmp_path)) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert files(".") <= names


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """`labkit` of the wheel, installed in an environment of its own; what it needs is linked to what
    is here.
    """
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--no-deps", "--no-index", "--disable-pip-version-check", wheel]
    subprocess.run(pip, check=True, capture_output=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for here in Path(sysconfig.get_path("purelib")).iterdir():
        if "labkit" not in here.name and not (packages / here.name).exists():
            (packages / here.name).symlink_to(here)
    link_what_is_missing(Path(sys.prefix, "share"), folder / "share")
    return folder / "bin" / "labkit"


def link_what_is_missing(here: Path, there: Path) -> None:
    """Link each file or folder of `here` into `there`, in folders that both have too."""
    for path in here.iterdir():
        target = there / path.name
        if not target.exists():
            target.symlink_to(path)
        elif path.is_dir() and not target.is_symlink():
            link_what_is_missing(path, target)


@pytest.fixture
def student(tmp_path, monkeypatch):
    """A folder far from the repository, and nothing in the environment that leads there."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("LABKIT_DEVICE", "simt")
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


AS_A_USER = """
import numpy as np, labkit
import simt

kernel = simt.RawModule(code='''extern "C" __global__ void twice(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}''').get_function("twice")
x = np.arange(100, dtype=np.float32)
kernel((4,), (32,), (x, np.int32(100)))
assert (x == 2 * np.arange(100)).all()
assert kernel.check((4,), (32,), (x, np.int32(100))) == []
(finding,) = kernel.check((4,), (32,), (x, np.int32(101)))
assert finding.line == 3 and finding.kind == "out of bounds", finding
print(labkit.__file__)
"""


@pytest.mark.slow  # fetches all packages that labkit asks for, and no others
@pytest.mark.skipif(os.name == "nt", reason="looks for bin/labkit")
def test_a_wheel_and_what_it_asks_for_are_all_that_a_user_needs(wheel, tmp_path, student):
    venv.create(folder := tmp_path / "alone", with_pip=True)
    python = folder / "bin" / "python"
    said(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    assert Path(said(python, "-c", AS_A_USER).strip()).is_relative_to(folder)
    assert "NVRTC" in said(folder / "bin" / "labkit", "doctor")


@pytest.mark.skipif(os.name == "nt", reason="looks for bin/labkit")
class TestInstalled:
    def test_the_package_is_the_wheels(self, installed, student):
        code = "import labkit; print(labkit.__file__, labkit.__version__)"
        file, version = said(installed.with_name("python"), "-c", code).split()
        assert Path(file).is_relative_to(installed.parents[1]) and version == __version__

    def test_a_launch_and_a_check(self, installed, student):
        file = said(installed.with_name("python"), "-c", AS_A_USER)
        assert Path(file.strip()).is_relative_to(installed.parents[1])

    def test_doctor_and_course(self, installed, student):
        assert "NVRTC" in said(installed, "doctor")
        assert f"{len(EXERCISES)} exercises" in said(installed, "course")

    def test_records_and_kernels(self, installed, student):
        code = (
            "from labkit import kernels, records; kernels.load('matmul/2_tiled', TILE=8); "
            "print(len(records.load()), len(records.recorded('h200')), len(records.sanitizer()))"
        )
        assert min(map(int, said(installed.with_name("python"), "-c", code).split())) > 100

    @pytest.mark.slow  # starts notebooks and servers
    def test_run_takes_the_students_copies(self, installed, student):
        assert "00_start_here" in said(installed, "run", "00")
        assert (student / "labkit-html" / "00_start_here.html").is_file()
        names = {path.name for path in (student / "labkit-notebooks").rglob("*.ipynb")}
        assert names == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}

    def test_release_wants_a_folder_and_fills_it(self, installed, student):
        refused = subprocess.run([installed, "release"], capture_output=True, text=True)
        assert refused.returncode == 1 and "labkit release my-course" in refused.stdout
        assert "written: 10_capstone.ipynb" in said(installed, "release", "my-course")

    @pytest.mark.slow  # starts notebooks and servers
    def test_lab_serves_the_students_work(self, installed, student):
        with create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        options = ["--no-browser", f"--port={port}", "--IdentityProvider.token=secret"]
        with Path("log").open("w") as log:
            lab = subprocess.Popen([installed, "lab", *options], stdout=log, stderr=log)
        try:
            page = answer(f"http://127.0.0.1:{port}/api/contents?token=secret", lab)
            assert page, Path("log").read_text()
            listed = page.read()
        finally:
            lab.terminate()
            lab.wait(60)
        assert "02_naive_cuda.ipynb" in {entry["name"] for entry in json.loads(listed)["content"]}, Path(
            "log"
        )
