"""Containers as sandboxes: what the image holds, what a container may not do, and that none is left behind.

What needs podman or docker and the image is skipped where they are missing; docs/grading.md says how to build
the image.
"""

import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from functools import cache
from pathlib import Path

import pytest
from course_tables import SOLVED, mutant

from grader.judging import judge
from grader.model import GRADED, Answer, Submission
from grader.sandbox import container
from grader.sandbox.limits import LIMITS, Limits
from grader.sandbox.process import CONTAINER, NoSandbox, Sandbox, require
from labkit.paths import PACKAGES

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading takes Linux")

ROOT = Path(__file__).parents[2]
KEEPER = ROOT / "grader" / "sandbox" / "keeper.py"
PYTHON = [sys.executable, "-P", "-s"]


@cache
def why_not():
    """Why containers cannot be tried here."""
    return container.missing(LIMITS)


@pytest.fixture
def containers():
    if why_not():
        pytest.skip(why_not())


@pytest.fixture
def forget():
    """The engines that are found in a test are not those of the others."""
    found = (container.engine, container.missing)
    for each in found:
        each.cache_clear()
    yield
    for each in found:
        each.cache_clear()


def script(path, lines):
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)


class TestImage:
    def test_its_requirements_are_those_of_pyproject(self):
        made = subprocess.run(
            [sys.executable, "containers/requirements.py", "ipykernel", "msgpack", "cuda13"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = project["optional-dependencies"]
        assert made[:-4] == project["dependencies"]
        assert made[-4] in extras["lab"] and made[-3] in extras["grade"] and made[-2:] == extras["cuda13"]

    def test_a_requirement_that_pyproject_has_not_is_refused(self):
        requirements = runpy.run_path(str(ROOT / "containers" / "requirements.py"))["requirements"]
        with pytest.raises(KeyError, match="nothing"):
            requirements({"dependencies": [], "optional-dependencies": {}}, ["nothing"])

    def test_what_comes_into_it_is_enough_for_the_probe(self, tmp_path):
        left_out = shutil.ignore_patterns("course", "notebooks", "__pycache__")
        for package in PACKAGES:
            shutil.copytree(package, tmp_path / package.name, ignore=left_out)
        shutil.copytree(ROOT / "data", tmp_path / "labkit" / "data")
        code = "import grader.sandbox.probe, labkit.figures.own_product; print(labkit.__file__)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == str(tmp_path / "labkit" / "__init__.py"), done.stderr

    def test_without_an_engine_it_is_said_how_to_get_one(self, forget, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(NoSandbox, match="sudo apt install podman"):
            require(CONTAINER)

    @pytest.mark.parametrize("engine", container.ENGINES)
    def test_without_the_image_it_is_said_how_to_build_it(self, forget, monkeypatch, tmp_path, engine):
        script(tmp_path / engine, "exit 125")
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(NoSandbox) as raised:
            require(CONTAINER)
        command = str(raised.value).rpartition(": ")[2]
        ignored = " --ignorefile containers/Containerfile.dockerignore" if engine == "podman" else ""
        assert command == (
            f"cd {ROOT} && {engine} build --file containers/Containerfile{ignored} --tag {container.IMAGE} ."
        )
        assert all((ROOT / word).is_file() for word in command.split() if word.startswith("containers/"))

    def test_an_engine_that_fails_is_quoted(self, forget, monkeypatch, tmp_path):
        script(tmp_path / "docker", '[ "$1" = run ] && { echo "no such runtime" >&2; exit 125; }; exit 0')
        monkeypatch.setenv("PATH", str(tmp_path))
        assert container.missing(LIMITS) == f"docker does not run {container.IMAGE}: no such runtime"

    def test_an_image_of_another_labkit_is_refused(self, forget, monkeypatch, tmp_path):
        script(tmp_path / "docker", '[ "$1" = run ] && echo "0123 grader/probe.py"; exit 0')
        monkeypatch.setenv("PATH", str(tmp_path))
        assert "another labkit: its grader/probe.py differs. Build it: " in container.missing(LIMITS)

    def test_the_image_has_no_criteria_solutions_or_tests(self, containers):
        code = """
import labkit, pathlib
package, source = pathlib.Path(labkit.__file__).parent, pathlib.Path("/source")
print([name for name in ("course", "notebooks") if (package / name).exists()])
print([*pathlib.Path("/").rglob("*.ipynb"), *source.iterdir()])
"""
        assert run(code)[0].splitlines() == ["[]", "[]"]


class TestFilter:
    def test_system_calls_are_refused_and_the_program_runs(self):
        if not (setpriv := shutil.which("setpriv")):
            pytest.skip("needs setpriv, of util-linux")
        code = "import os\ntry: os.memfd_create('x')\nexcept PermissionError: print('refused')"
        filtered = [sys.executable, "-m", "grader.sandbox.filtered", sys.executable, "-c", code]
        done = subprocess.run([setpriv, "--no-new-privs", *filtered], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("refused\n", "")

    def test_a_program_alone_starts_threads_and_no_process(self):
        if not (setpriv := shutil.which("setpriv")):
            pytest.skip("needs setpriv, of util-linux")
        code = (
            "import os, threading\nthread = threading.Thread(target=print, args=('a thread',))\n"
            "thread.start(), thread.join()\ntry: os.fork()\nexcept PermissionError: print('no process')"
        )
        filtered = [sys.executable, "-m", "grader.sandbox.filtered", "--alone"]
        command = [setpriv, "--no-new-privs", *filtered, sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("a thread\nno process\n", "")


class TestKeeper:
    def test_it_ends_as_its_client_does(self):
        done = subprocess.run([*PYTHON, str(KEEPER), str(os.getpid()), "true", "--", "sh", "-c", "exit 3"])
        assert done.returncode == 3

    def test_it_removes_the_container_of_a_grader_that_is_gone(self, tmp_path):
        removed = tmp_path / "removed"
        words = [*PYTHON, str(KEEPER), "{}", "touch", str(removed), "--", "sleep", "61.5"]
        grader = (
            "import os, subprocess, time\n"
            f"words = [word.format(os.getpid()) for word in {words}]\n"
            "subprocess.Popen(words, start_new_session=True)\n"
            "time.sleep(60)"
        )
        process = subprocess.Popen([sys.executable, "-c", grader])
        wait_for(lambda: b"sleep\x0061.5" in running())
        process.kill()
        process.wait()
        wait_for(removed.exists)
        wait_for(lambda: b"sleep\x0061.5" not in running())


def wait_for(is_so, seconds=20):
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def running():
    """The command lines of all processes."""
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += path.read_bytes() + b"\n"
        except OSError:
            continue
    return found


def started(sandbox, code, *words):
    process = subprocess.Popen(
        sandbox.command([*PYTHON, "-c", code, *words]),
        env=sandbox.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    sandbox.watch(process)
    return process


def run(code, **limits):
    """What code prints in a container, and why it was stopped."""
    with Sandbox(CONTAINER, Limits(**limits)) as sandbox:
        return started(sandbox, code).communicate(timeout=60)[0], sandbox.stopped_for


def exists(name):
    """Tell whether the engine knows a container of this name."""
    words = [container.engine(), "container", "inspect", name]
    return subprocess.run(words, capture_output=True).returncode == 0


@pytest.mark.slow  # each container takes a second or more to start
@pytest.mark.usefixtures("containers")
class TestContainer:
    def test_it_has_no_rights_and_is_somebody_else(self):
        code = """
import os
told = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
print(told["CapEff"], told["CapBnd"], told["NoNewPrivs"], os.getuid() != 0, os.getgid() != 0)
"""
        assert run(code)[0] == f"{'0' * 16} {'0' * 16} 1 True True\n"

    def test_it_has_no_network_and_no_file_to_change_but_in_its_home(self):
        code = """
import os, pathlib, socket
print(os.listdir("/sys/class/net"))
for folder in ("/", "/etc", "/opt/labkit", "/source", os.environ["LABKIT_JUDGE"][:-5]):
    try:
        pathlib.Path(folder, "new").touch()
        print("changed", folder)
    except OSError:
        pass
pathlib.Path.home().joinpath("new").touch()
print(os.listdir(pathlib.Path(os.environ["LABKIT_JUDGE"]).parent))
"""
        assert run(code)[0].splitlines() == ["['lo']", "['judge']"]

    def test_memory_beyond_the_limit_stops_it(self):
        printed, why = run("x = [bytes(1) * 2**24 for _ in range(60)]; print('alive')", memory_bytes=2**28)
        assert (printed, why) == ("", "It used more than 0.25 GiB of memory and was stopped.")

    def test_processes_beyond_the_limit_stop_it(self):
        code = """
import os, time
try:
    while os.fork():
        pass
except OSError:
    pass
time.sleep(60)
"""
        assert "processes and threads" in run(code, processes=20)[1]

    def test_files_beyond_the_limit_are_not_written(self):
        code = """
import errno
try:
    for number in range(9):
        with open(f"/tmp/{number}", "wb") as file:
            file.write(bytes(2**22))
except OSError as error:
    print(errno.errorcode[error.errno], number)
"""
        assert run(code, disk_bytes=2**24) == ("ENOSPC 4\n", "")

    def test_stopping_it_kills_what_runs_inside(self):
        with Sandbox(CONTAINER) as sandbox:
            process = started(sandbox, "import time; print('here', flush=True); time.sleep(60)")
            assert process.stdout.readline() == "here\n"
            wait_for(lambda: sandbox.seen(Path("/tmp")))
            inside = sandbox.seen(Path("/tmp")).parents[1]
            assert exists(sandbox.folder.name) and inside.exists()
            sandbox.stop("enough")
            assert not exists(sandbox.folder.name)
            wait_for(lambda: not inside.exists())
            assert process.wait(10)

    def test_one_that_is_stopped_at_once_does_not_start_later(self):
        with Sandbox(CONTAINER) as sandbox:
            process = started(sandbox, "import time; time.sleep(60)")
            time.sleep(0.05)
            sandbox.stop()
            process.wait(10)
        time.sleep(2)
        assert not exists(sandbox.folder.name)

    def test_a_grader_that_is_killed_leaves_none(self):
        code = (
            "import subprocess, sys, time\n"
            "from grader.sandbox.process import CONTAINER, Sandbox\n"
            "sandbox = Sandbox(CONTAINER)\n"
            "command = sandbox.command([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
            "subprocess.Popen(command, env=sandbox.environment(), start_new_session=True)\n"
            "print(sandbox.folder, flush=True)\n"
            "time.sleep(60)"
        )
        grader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        folder = Path(grader.stdout.readline().strip())
        wait_for(lambda: exists(folder.name))
        grader.send_signal(signal.SIGKILL)
        grader.wait()
        wait_for(lambda: not exists(folder.name))
        shutil.rmtree(folder)

    @pytest.mark.parametrize("lab", ["01", "02", "09"])  # in C, CUDA, Python
    def test_solutions_have_all_points(self, lab):
        answers = {id: Answer(id, source) for id, source in SOLVED.items() if id.startswith(f"{lab}.")}
        graded = judge.grade(Submission("Ada", answers=answers), (lab,), 7, CONTAINER)
        assert graded.isolation == CONTAINER
        for result in graded.results:
            assert (result.state, result.points, result.failure) == (GRADED, result.most, "")

    def test_a_mistake_costs_no_more_than_its_points(self):
        wrong = mutant("02.2", (" || col >= N", ""))
        answers = {
            "02.1": Answer("02.1", SOLVED["02.1"]),
            "02.2": Answer("02.2", wrong),
            "02.3": Answer("02.3", SOLVED["02.3"]),
        }
        first, second, third, fourth = judge.grade(
            Submission("Bob", answers=answers), ("02",), 7, CONTAINER
        ).results
        assert (first.points, third.points, fourth.points) == (first.most, third.most, 0)
        assert second.points < second.most and "invalid global read" in second.failure
