"""The strongest tier: what runs has a container of its own, by podman or docker.

The image has Python, a C compiler and labkit without what tells answers: containers/Containerfile. The engine
itself holds a container to its limits; the grader, whose limits are a little lower, says which was met.
"""

import hashlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import labkit
from grader.sandbox.limits import Limits
from labkit.paths import PACKAGE

ENGINES = ("podman", "docker")
IMAGE = f"labkit-sandbox:{labkit.__version__}"
HOME = Path("/tmp")  # in a container
NOBODY = 65534  # runs what the grader must not run as root
PROCESSES = 2**14  # of one user, in all containers together
SPARE_TASKS, SPARE_BYTES = 16, 2**28  # between limits at which the grader stops it and those of the engine
TRIAL_SECONDS, ASK_SECONDS = 300, 0.2  # the first container of a rootless podman copies the image
# Inside: reach the judge, and tell the hash of each of labkit's files.
TRIAL = """
import hashlib, os, socket, labkit.paths
socket.socket(socket.AF_UNIX).connect(os.environ["LABKIT_JUDGE"])
for package in labkit.paths.PACKAGES:
    for path in package.rglob("*.*"):
        if path.is_file() and not {"data", "__pycache__"} & set(path.parts):
            print(hashlib.sha256(path.read_bytes()).hexdigest(), path.relative_to(package.parent))
"""


class Container:
    """A container, from the start of its command until it is removed.

    It sees the folder `shared` under the same name, and may change its files `writable`. Without `forks` it
    starts no process.
    """

    def __init__(self, name: str, shared: Path, writable: Sequence[str] = (), forks: bool = True) -> None:
        self._name, self._shared, self._writable = name, shared, tuple(writable)
        self._waits = ["--wait" if forks else "--alone"] if writable else []
        self._pid, self._pid_file, self._asked_at = 0, shared.with_name("pid"), monotonic()
        self._lock, self._is_removed = threading.Lock(), False

    def command(
        self, program: Sequence[str], variables: Mapping[str, str], limits: Limits, with_gpu: bool = False
    ) -> list[str]:
        """Return the command that runs a program inside, with these environment variables."""
        keeper = [
            sys.executable,
            "-I",
            "-S",
            str(Path(__file__).with_name("keeper.py")),
            str(os.getpid()),
        ]
        size = f"--ulimit=fsize={limits.disk_bytes}:{limits.disk_bytes}"
        options = [
            *_options(limits),
            *([size] if self._writable else []),
            *self._sees(),
            *(self._gpus() if with_gpu else ()),
        ]
        named = [f"--env={name}={value}" for name, value in variables.items()]
        run = [engine(), "run", "--name", self._name, *options, *named, *self._own_options(), IMAGE]
        filtered = [] if with_gpu else ["python", "-I", "-m", "grader.sandbox.filtered", *self._waits]
        inside = ["python" if word == sys.executable else word for word in program]
        return [*keeper, *self._removing(), "--", *run, *filtered, *inside]

    def pid(self) -> int:
        """Return its first process, by the grader's numbers; 0 before it runs."""
        if not self._pid:
            with suppress(OSError, ValueError):  # it is not there yet
                self._pid = int(self._pid_file.read_text() if engine() == "podman" else self._inspected())
        return self._pid

    def _inspected(self) -> str:
        """Return the engine's answer, which is not asked for all the time: a look at a file is quicker."""
        if monotonic() < self._asked_at + ASK_SECONDS:
            return ""
        self._asked_at = monotonic()
        return _asked(["docker", "container", "inspect", "--format", "{{.State.Pid}}", self._name]).stdout

    def seen(self, path: Path) -> Path | None:
        """Return where a folder of the container is seen from outside; None before `pid` finds it."""
        return Path(f"/proc/{self._pid}/root/{path}") if self._pid else None

    def remove(self, clients: Iterable[int]) -> None:
        """Kill what runs inside. `clients` are the processes that start it, and may not have done so yet."""
        with self._lock:
            if self._is_removed:
                return
            self._is_removed = True
            if not _asked(self._removing()).stdout.strip():
                for pid in clients:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                _asked(self._removing())

    def _removing(self) -> list[str]:
        at_once = ["--time", "0"] if engine() == "podman" else []
        return [engine(), "rm", "--force", *at_once, self._name]

    def _sees(self) -> list[str]:
        shared = str(self._shared)
        writable = [f"--volume={shared}/{name}:{shared}/{name}" for name in self._writable]
        return [f"--volume={shared}:{shared}:ro", *writable, f"--workdir={shared if writable else HOME}"]

    def _own_options(self) -> list[str]:
        """Return the options that only podman has."""
        if engine() != "podman":
            return []
        return [
            "--read-only-tmpfs=false",
            "--http-proxy=false",
            f"--pidfile={self._pid_file}",
            *(["--userns=keep-id"] if os.getuid() else []),
        ]

    def _gpus(self) -> list[str]:
        return ["--device=nvidia.com/gpu=all"] if engine() == "podman" else ["--gpus=all"]


@cache
def engine() -> str:
    """Return the engine that has the image; "" where none has."""
    found = [each for each in ENGINES if shutil.which(each)]
    having = (each for each in found if not _asked([each, "image", "inspect", IMAGE]).returncode)
    return next(having, "")


@cache
def missing(limits: Limits) -> str:
    """Say why containers do not work here, and what mends it; "" if they do."""
    if not sys.platform.startswith("linux"):
        return "A container shares sockets with the grader, which takes Linux: grade there."
    if not any(map(shutil.which, ENGINES)):
        return "Neither podman nor docker is installed. On Debian or Ubuntu: sudo apt install podman"
    if not engine():
        return f"There is no image {IMAGE}. {_build()}"
    return _tried(limits)


def _tried(limits: Limits) -> str:
    """Say what goes wrong in a container that imports labkit; "" if all is well."""
    with TemporaryDirectory(prefix="labkit-") as folder, socket.socket(socket.AF_UNIX) as judge:
        shared = Path(folder, "shared")
        shared.mkdir()
        judge.bind(str(shared / "judge"))
        judge.listen(1)
        for path in (shared, shared / "judge"):
            path.chmod(0o777)
        container = Container(Path(folder).name, shared)
        variables = {"LABKIT_JUDGE": str(shared / "judge")}
        command = container.command([sys.executable, "-P", "-s", "-c", TRIAL], variables, limits)
        try:
            tried = _asked(command, TRIAL_SECONDS)
        except subprocess.TimeoutExpired:
            return f"{engine()} has not run {IMAGE} within {TRIAL_SECONDS} s."
        finally:
            container.remove([])
    if tried.returncode:
        return f"{engine()} does not run {IMAGE}: {tried.stderr.strip()}"
    for told in tried.stdout.splitlines():
        sum, name = told.split(maxsplit=1)
        if sum != _sum(PACKAGE.parent / name):
            return f"The image {IMAGE} was made of another labkit: its {name} differs. {_build()}"
    return ""


def _build() -> str:
    """Return the command that makes the image."""
    engine = next(filter(shutil.which, ENGINES))
    clone = PACKAGE.parent if (PACKAGE.parent / "containers").is_dir() else None
    place = f"Build it: cd {clone} && " if clone else f"Build it in a clone of labkit {labkit.__version__}: "
    ignored = "--ignorefile containers/Containerfile.dockerignore " if engine == "podman" else ""
    return f"{place}{engine} build --file containers/Containerfile {ignored}--tag {IMAGE} ."


def _options(limits: Limits) -> list[str]:
    """Return the options of both engines: what a container may not do, and how much it may take."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    processes = PROCESSES if hard == resource.RLIM_INFINITY else min(PROCESSES, hard)
    # Root is somebody else inside.
    user, group = (os.getuid(), os.getgid()) if os.getuid() else (NOBODY, NOBODY)
    memory = limits.memory_bytes + limits.disk_bytes + SPARE_BYTES  # its files are in memory
    return [
        *("--pull=never", "--log-driver=none", "--hostname=sandbox", f"--user={user}:{group}"),
        *("--network=none", "--ipc=private", "--cap-drop=ALL", "--security-opt=no-new-privileges"),
        "--security-opt=label=disable",  # SELinux would keep it from the judge's socket
        *("--read-only", f"--tmpfs={HOME}:rw,exec,nosuid,nodev,mode=1777,size={limits.disk_bytes}"),
        *(f"--memory={memory}", f"--memory-swap={memory}"),
        *(f"--pids-limit={limits.processes + SPARE_TASKS}", "--ulimit=core=0:0"),
        # Without these two, podman asks for more than a grader that is itself in a container may have.
        f"--ulimit=nofile={limits.open_files}:{limits.open_files}",
        f"--ulimit=nproc={processes}:{processes}",
    ]


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _asked(words: Sequence[str], seconds: float | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=seconds
    )
