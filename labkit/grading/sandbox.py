"""Where the answers of a submission run: a Python kernel with no network, no files but its own, and limits.

Tiers, the strongest first. With `bubblewrap` (Linux) a kernel has namespaces of its own for users, processes,
network and mounts: it sees the Python installation, the compilers and this package, all read-only and without
labkit/course and the notebooks, and an empty home. `process` is a process with a fresh folder and environment
and limits alone: what it runs can read files and use the network as the grader can.
"""

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic

import labkit
from labkit.grading.wire import BorderError

BUBBLEWRAP, PROCESS = "bubblewrap", "process"
TIERS = (BUBBLEWRAP, PROCESS)
WARNINGS = {
    PROCESS: (
        "Answers run without a sandbox: they can read this user's files, use the network and disturb each "
        "other. Grade only what you would run yourself, or install bubblewrap (Debian, Ubuntu: sudo apt "
        "install bubblewrap)."
    )
}
PACKAGE = Path(labkit.__file__).parent
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
WATCH_SECONDS, POLL_SECONDS = 0.05, 0.25


@dataclass(frozen=True)
class Limits:
    """What the answers in one kernel may take.

    Seconds of a cell and of judging one answer; bytes of memory of all processes together, of files, and of
    what is shown; processes at the same time.
    """

    cell_seconds: float = 60
    answer_seconds: float = 120
    memory_bytes: int = 4 * 2**30
    disk_bytes: int = 2**29
    message_bytes: int = 2**20
    processes: int = 64


LIMITS = Limits()


class NoSandbox(RuntimeError):
    "The tier that is asked for is not to be had here; the message says how to get it."


@cache
def best() -> str:
    "The strongest tier of this machine."
    return BUBBLEWRAP if not _missing() else PROCESS


def require(tier: str) -> None:
    "Raise NoSandbox unless `tier` works here."
    if tier not in TIERS:
        raise NoSandbox(f"There is no isolation {tier!r}. Choose one of {', '.join(TIERS)}.")
    if tier == BUBBLEWRAP and (missing := _missing()):
        raise NoSandbox(missing)


@cache
def _missing() -> str:
    "Why bubblewrap does not work here; nothing if it does."
    if not sys.platform.startswith("linux"):
        return "Namespaces are Linux's: grade on Linux, or in a virtual machine or container that has it."
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed. On Debian or Ubuntu: sudo apt install bubblewrap"
    tried = subprocess.run(
        ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"],
        capture_output=True,
        text=True,
    )
    if tried.returncode:
        return f"bubblewrap is installed and does not work here: {tried.stderr.strip()}"
    return ""


class Sandbox:
    """A folder and a command for one kernel, and a watch that stops it at its limits.

    `folder` is shared with the kernel: the sockets to talk over. `with_gpu`: the machine's GPUs are to be
    seen inside. Use it as a context manager.
    """

    def __init__(self, tier: str, limits: Limits = LIMITS, with_gpu: bool = False) -> None:
        require(tier)
        self.tier, self.limits, self.with_gpu = tier, limits, with_gpu
        self.folder = Path(tempfile.mkdtemp(prefix="labkit-"))  # short: a socket's path has 107 characters
        self.stopped_for = ""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / "judge"))
        self._listener.listen(1)
        self._ended = threading.Event()
        self._pid = 0

    def command(self, arguments: list[str]) -> list[str]:
        "The command that runs Python with `arguments` inside. `{connection_file}` is left for Jupyter."
        python = [sys.executable, "-P", "-s", *arguments]
        limited = [
            sys.executable,
            "-I",
            "-S",
            str(PACKAGE / "grading" / "limited.py"),
            str(self.limits.disk_bytes),
        ]
        return [*limited, *(["bwrap", *self._bubblewrap(), "--"] if self.tier == BUBBLEWRAP else []), *python]

    def environment(self) -> dict[str, str]:
        "All environment variables that the kernel gets."
        inherited = {
            name: os.environ[name] for name in ("PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ
        }
        home = str(self.folder / "home") if self.tier == PROCESS else "/tmp/home"
        return inherited | {
            "HOME": home,
            "LABKIT_DEVICE": "gpu" if self.with_gpu else "simt",
            "LABKIT_JUDGE": str(self.folder / "judge"),
            "LANG": "C.UTF-8",
            "LOGNAME": "student",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "TMPDIR": home if self.tier == PROCESS else "/tmp",
            "USER": "student",
        }

    def watch(self, pid: int) -> None:
        "Watch over the processes below `pid`, which runs the command."
        self._pid = pid
        threading.Thread(target=self._watch, daemon=True, name=f"watch {pid}").start()

    def accepted(self, seconds: float, is_alive: Callable[[], bool]) -> socket.socket:
        "The connection of a probe inside. Raises BorderError where none comes."
        until = monotonic() + seconds
        self._listener.settimeout(POLL_SECONDS)
        while monotonic() < until and is_alive() and not self.stopped_for:
            with suppress(TimeoutError):
                return self._listener.accept()[0]
        raise BorderError("no connection")

    def stop(self, reason: str = "") -> None:
        "Kill all that runs inside."
        self.stopped_for = self.stopped_for or reason
        self._ended.set()
        if not self._pid:
            return
        # A namespace ends with its first process. Without, what is started meanwhile is seen next time.
        while self.tier == PROCESS and (running := _below(self._pid, self.limits.processes)):
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _bubblewrap(self) -> list[str]:
        words = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        words += ["--hostname", "sandbox", "--proc", "/proc", "--dev", "/dev"]
        words += [
            "--size",
            str(self.limits.disk_bytes),
            "--tmpfs",
            "/tmp",
            "--dir",
            "/tmp/home",
            "--chdir",
            "/tmp/home",
        ]
        for name in SYSTEM:
            path = Path(name)
            if path.is_symlink():  # /bin of a merged /usr
                words += ["--symlink", str(path.readlink()), name]
            elif path.is_dir():
                words += ["--ro-bind", name, name]
        if self.with_gpu:
            for name in sorted(map(str, Path("/dev").glob("nvidia*"))):
                words += ["--dev-bind", name, name]
        folders = _python_folders()
        for name in (*SETTINGS, *map(str, folders)):
            words += ["--ro-bind-try", name, name]
        for path in _secrets(folders):
            words += ["--tmpfs", str(path)]
        words += ["--bind", str(self.folder), str(self.folder)]
        return [*words, "--unsetenv", "JPY_PARENT_PID"]  # of a process that has no number here

    def _watch(self) -> None:
        "Until the end, look now and then at what is used."
        limits = self.limits
        while not self._ended.wait(WATCH_SECONDS):
            below = _below(self._pid, limits.processes)
            if len(below) > limits.processes:
                self.stop(f"It started more than {limits.processes} processes and was stopped.")
            elif sum(map(_resident_bytes, below)) > limits.memory_bytes:
                self.stop(f"It used more than {limits.memory_bytes / 2**30:g} GiB of memory and was stopped.")
            elif _stored_bytes(self.folder) > limits.disk_bytes:
                self.stop(f"It wrote more than {limits.disk_bytes / 2**20:g} MiB of files and was stopped.")


def _below(pid: int, most: int) -> list[int]:
    """Processes that `pid` and those below it have started, the first `most` + 1 of them.

    Not psutil's: that reads all processes of the machine, and in a fork bomb there is no end of them.
    """
    found: list[int] = []
    new = [pid]
    while new and len(found) <= most:
        parent = new.pop()
        for task in _read(f"/proc/{parent}/task", os.listdir):
            children = _read(
                f"/proc/{parent}/task/{task}/children", lambda path: Path(path).read_text().split()
            )
            new += [int(child) for child in children]
            found += [int(child) for child in children]
    return found


def _resident_bytes(pid: int) -> int:
    "Memory of a process, 0 if it has ended."
    words = _read(f"/proc/{pid}/statm", lambda path: Path(path).read_text().split())
    return int(words[1]) * resource.getpagesize() if words else 0


def _read(path: str, read: Callable[[str], list[str]]) -> list[str]:
    "Nothing where the process has ended meanwhile."
    try:
        return read(path)
    except OSError:
        return []


def _stored_bytes(folder: Path) -> int:
    "Bytes of the files below a folder, as far as they can be seen."
    total = 0
    for path, _, names in os.walk(folder, onerror=None):
        for name in names:
            with suppress(OSError):
                total += Path(path, name).lstat().st_blocks * 512
    return total


def _python_folders() -> list[Path]:
    "Folders that Python and this package are in, each before what is in it; of a clone what is needed alone."
    packages = {Path(entry) for entry in sys.path if entry.endswith("-packages")}
    given = {Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    needed = {PACKAGE, PACKAGE.parent / "data"}
    return sorted({Path(sys.prefix), Path(sys.base_prefix)} | packages | (given - {PACKAGE.parent}) | needed)


def _secrets(seen: list[Path]) -> list[Path]:
    "What must not be seen of the folders that are: criteria, solutions, and tests, which have answers too."
    names = (
        PACKAGE / "course",
        PACKAGE / "notebooks",
        PACKAGE.parent / "notebooks",
        PACKAGE.parent / "tests",
    )
    return [path for path in names if path.is_dir() and any(path.is_relative_to(folder) for folder in seen)]
