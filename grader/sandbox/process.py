"""Where the answers of a submission run: a process with no network, no files but its own, and limits.

Tiers, the strongest first. With `container` what runs has a container of podman or docker (container.py).
With `bubblewrap` (Linux) what runs has namespaces of its own for processes,
network and mounts, a user that is nobody else's, and a filter of system calls: it sees the Python
installation, the compilers and this package, all read-only and without labkit/course and the notebooks, and
an empty home in memory. `process` is a process with a fresh folder and environment and limits alone: what it
runs can read files and use the network as the grader can.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import monotonic, sleep

from grader.sandbox import container
from grader.sandbox.limits import LIMITS, Limits
from grader.sandbox.seccomp import MACHINES, seccomp_filter
from grader.sandbox.watch import below, has_ended, kernel_bytes, memory_bytes, stored_bytes
from grader.sandbox.wire import BorderError
from labkit.c.compile import ZIG, zig_libraries
from labkit.paths import PACKAGE, PACKAGES

CONTAINER, BUBBLEWRAP, PROCESS = "container", "bubblewrap", "process"
TIERS = (CONTAINER, BUBBLEWRAP, PROCESS)
FILES = Path("/tmp")  # of a container, and of bubblewrap's sandboxes: a file system in memory
HOMES = {CONTAINER: container.HOME, BUBBLEWRAP: FILES / "home"}
WARNINGS = {
    PROCESS: (
        "Answers run without a sandbox: they can read this user's files, use the network and disturb each "
        "other. Grade only what you would run yourself, or install bubblewrap (Debian, Ubuntu: sudo apt "
        "install bubblewrap)."
    )
}
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")  # of /dev/zero memory could be had
# Of the folder of a virtual environment, of conda, or of a Python of one's own.
INSTALLED = (
    *("bin", "lib", "lib32", "lib64", "libexec", "include", "share", "etc", "ssl", "pyvenv.cfg"),
    *("compiler_compat", "targets", "nvvm"),
)
ZIG_INSIDE = "/zig"  # where a sandbox of bubblewrap has the libraries of ziglang: a name that tells nothing
TOOLS = ("bwrap", "prlimit", "setpriv")
NAMESPACES = ("ipc", "pid", "net", "uts", "cgroup-try")  # of a grader that is root
USERS = 2_000_000_000  # from here on: users for the sandboxes of a grader that is root
SPARE = 16  # processes and threads between the limit at which all is stopped and that of the kernel
KILLS = 5
# A machine that is short of memory ends a sandbox first; the limit on what the grader computes is not for it.
HARMLESS = 'ulimit -S -t "$(ulimit -H -t)"; echo 1000 2>/dev/null > /proc/self/oom_score_adj'
WATCH_SECONDS, POLL_SECONDS = 0.05, 0.25
END_SECONDS, END_POLL_SECONDS = 10, 0.005


class NoSandbox(RuntimeError):
    """The tier that is asked for is not to be had here; the message says how to get it."""


@cache
def best() -> str:
    """Return the strongest tier of this machine that needs no image."""
    return BUBBLEWRAP if not _missing() else PROCESS


def require(tier: str) -> None:
    """Raise NoSandbox unless `tier` works here."""
    if tier not in TIERS:
        raise NoSandbox(f"There is no isolation {tier!r}. Choose one of {', '.join(TIERS)}.")
    if tier == BUBBLEWRAP and (missing := _missing()):
        raise NoSandbox(missing)
    if tier == CONTAINER and (missing := container.missing(LIMITS)):
        raise NoSandbox(missing)


@cache
def _missing() -> str:
    """Say why bubblewrap does not work here; "" if it does."""
    if not sys.platform.startswith("linux"):
        return "Namespaces are Linux's: grade on Linux, or in a virtual machine or container that has it."
    if os.uname().machine not in MACHINES:
        return (
            f"Sandboxes are made for the processors {' and '.join(MACHINES)}; this is {os.uname().machine}."
        )
    for tool in TOOLS:
        if not shutil.which(tool):
            return f"{tool} is not installed. On Debian or Ubuntu: sudo apt install bubblewrap util-linux"
    with Sandbox(BUBBLEWRAP) as sandbox:
        tried = subprocess.run(
            sandbox.command([sys.executable, "-c", "import labkit"]),
            env=sandbox.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
    if tried.returncode:
        return f"bubblewrap is installed and does not work here: {tried.stderr.strip()}"
    return ""


class Sandbox:
    """A folder and a command for one program, and a watch that stops it at its limits.

    `shared` is a folder that the program sees under the same name and cannot change, but for the files
    `writable`; the program begins there or, if there are none, in its home. `with_gpu`: the machine's GPUs
    are to be seen inside. `variables` are set in its environment beside the usual ones. Without `forks` the
    program may start threads, and no other process. Use it as a context manager.
    """

    def __init__(
        self,
        tier: str,
        limits: Limits = LIMITS,
        with_gpu: bool = False,
        writable: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        forks: bool = True,
    ) -> None:
        self.tier, self.limits, self.with_gpu, self._writable = tier, limits, with_gpu, tuple(writable)
        self._own_variables = dict(variables or {})
        # short: a socket's path has 107 characters
        self.folder = Path(tempfile.mkdtemp(prefix=prefix(os.getpid())))
        self.home = HOMES.get(tier, self.folder / "home")
        self.shared = self.folder / "shared"
        self.shared.mkdir()
        if tier == PROCESS:
            self.home.mkdir()
        self._forks = forks
        self._container = container.Container(self.folder.name, self.shared, self._writable, forks)
        self.stopped_for = ""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.shared / "judge"))
        self._listener.listen(1)
        self._ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._dying: list[int] = []

    def command(self, program: Sequence[str]) -> list[str]:
        """Return the command that runs a program inside. `{connection_file}` is left for Jupyter."""
        if self.tier == PROCESS:
            return ["/bin/sh", "-c", f'{HARMLESS}; {self._ulimits()}; exec "$@"', "sh", *program]
        _publish(self.shared)
        if self.tier == CONTAINER:
            return self._container.command(program, self._variables(), self.limits, self.with_gpu)
        (self.folder / "filter").write_bytes(seccomp_filter(self._forks))
        # Not on the command line, which the program can read: it names folders of the grader's.
        (self.folder / "arguments").write_text("\0".join(self._bubblewrap()))
        words = ["prlimit", *self._limits(), "--"]
        if self._user:
            user = str(self._user)
            words += ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"]
        return [
            *("/bin/sh", "-c", f'{HARMLESS}; cd "$0" && exec "$@" 8< arguments 9< filter', str(self.folder)),
            *(shutil.which("bwrap") or "bwrap", "--args", "8", "--", *words, *program),
        ]

    def environment(self) -> dict[str, str]:
        """Return the environment variables of the command, and of the program unless it is in a container."""
        if self.tier == CONTAINER:
            return dict(os.environ)
        inherited = {
            name: os.environ[name] for name in ("PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ
        }
        path = os.pathsep.join([str(Path(sys.executable).parent), os.defpath])
        return inherited | {"PATH": path} | self._variables()

    def _variables(self) -> dict[str, str]:
        """Return the environment variables that the program gets in any tier."""
        return {
            "HOME": str(self.home),
            "LABKIT_DEVICE": "gpu" if self.with_gpu else "simt",
            "LABKIT_JUDGE": str(self.shared / "judge"),
            ZIG: ZIG_INSIDE if self.tier == BUBBLEWRAP else str(zig_libraries()),
            "LANG": "C.UTF-8",
            "LOGNAME": "student",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "TMPDIR": str(self.home),
            "USER": "student",
        } | self._own_variables

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        """Watch over the process that runs the command, and all below it."""
        self._process = process
        threading.Thread(target=self._watch, daemon=True, name=f"watch {process.pid}").start()

    def accepted(self, seconds: float, is_alive: Callable[[], bool]) -> socket.socket:
        """Accept the connection of a probe inside. Raises BorderError where none comes."""
        until = monotonic() + seconds
        self._listener.settimeout(POLL_SECONDS)
        while monotonic() < until and is_alive() and not self.stopped_for:
            with suppress(TimeoutError):
                return self._listener.accept()[0]
        raise BorderError("no connection")

    def seen(self, path: Path) -> Path | None:
        """Return where a folder of the sandbox is seen from outside; None while it has none."""
        if self.tier == PROCESS:
            return path
        if self.tier == CONTAINER:
            return self._container.seen(path)
        # The first is bubblewrap's own.
        pids = below(self._process.pid, 2)[0][1:] if self._process else []
        return Path(f"/proc/{pids[0]}/root/{path}") if pids else None

    def pids(self) -> list[int]:
        """Return its processes, by the grader's numbers."""
        if self._process is None:
            return []
        first = self._container.pid() if self.tier == CONTAINER else self._process.pid
        return [first, *below(first, self.limits.processes)[0]] if first else []

    def stop(self, reason: str = "") -> None:
        """Kill all that runs inside."""
        self.stopped_for = self.stopped_for or reason
        self._ended.set()
        if self._process is None:
            return
        # A namespace ends with its first process. Without, what is started meanwhile is seen next time.
        for _ in range(KILLS if self.tier == PROCESS else 0):
            self._process.send_signal(signal.SIGSTOP)
            for pid in below(self._process.pid, self.limits.processes)[0]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if self.tier == CONTAINER:
            self._container.remove(below(self._process.pid, self.limits.processes)[0])
        if self.tier == BUBBLEWRAP:
            self._dying = self._dying or below(self._process.pid, 2)[0][:1]
        self._process.kill()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._listener.close()
        # A namespace's first process is gone when all are; until then they count for this user's next one.
        until = monotonic() + END_SECONDS
        while not all(map(has_ended, self._dying)) and monotonic() < until:
            sleep(END_POLL_SECONDS)
        with suppress(RecursionError):  # folders in folders, of a process that is in no namespace
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _user(self) -> int:
        """Return the user for the inside if the grader is root: root may write many files below /proc."""
        return USERS + os.getpid() if os.getuid() == 0 else 0

    # A file of the grader's disk has a limit on its size. A home has one on its bytes, and there a large file
    # with holes is allowed: the simulator keeps the memory of a whole program in one.

    def _limits(self) -> list[str]:
        limits = self.limits
        return [
            *("--core=0", f"--nofile={limits.open_files}", f"--nproc={limits.processes + SPARE}"),
            *([f"--fsize={limits.disk_bytes}"] if self._writable else []),
        ]

    def _ulimits(self) -> str:
        """Return the limits for a shell, without one on processes: it would count all of this user's."""
        size = f"ulimit -f {self.limits.disk_bytes >> 9}; " if self._writable else ""
        return f"ulimit -c 0; {size}ulimit -n {self.limits.open_files}"

    def _bubblewrap(self) -> list[str]:
        words = ["--unshare-all"] if os.getuid() else [f"--unshare-{name}" for name in NAMESPACES]
        words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        if self._user:
            words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]  # which setpriv gives up
        if not self.with_gpu:
            words += ["--seccomp", "9"]
        words += ["--hostname", "sandbox", "--proc", "/proc", "--tmpfs", "/dev"]
        words += ["--size", str(self.limits.disk_bytes), "--perms", "1777", "--tmpfs", "/tmp"]
        words += ["--perms", "0777", "--dir", str(self.home)]
        for name in SYSTEM:
            path = Path(name)
            if path.is_symlink():  # /bin of a merged /usr
                words += ["--symlink", str(path.readlink()), name]
            elif path.is_dir():
                words += ["--ro-bind", name, name]
        gpus = map(str, Path("/dev").glob("nvidia*"))
        for name in (*DEVICES, *(sorted(gpus) if self.with_gpu else ())):
            words += ["--dev-bind", name, name]
        folders = _python_folders()
        seen = [*map(Path, SETTINGS), *folders, self.shared]
        for parent in sorted({parent for path in seen for parent in path.parents}):
            words += ["--perms", "0755", "--dir", str(parent)]  # those that are made for what is in them
        for path in seen:
            words += ["--ro-bind-try", str(path), str(path)]
        words += ["--ro-bind-try", str(zig_libraries()), ZIG_INSIDE]
        for name in self._writable:
            words += ["--bind", str(self.shared / name), str(self.shared / name)]
        for name in map(str, [*_secrets(folders), *_hidden(self.limits.hidden, seen)]):
            words += ["--tmpfs", name, "--remount-ro", name]
        # These are in memory, and of those only /tmp has a limit.
        words += ["--remount-ro", "/dev", "--remount-ro", "/"]
        words += ["--chdir", str(self.shared if self._writable else self.home)]
        return [*words, "--unsetenv", "JPY_PARENT_PID"]  # of a process that has no number here

    def _watch(self) -> None:
        """Look now and then, until the end, at what is used."""
        limits = self.limits
        assert self._process is not None
        while not self._ended.wait(WATCH_SECONDS):
            first = self._container.pid() if self.tier == CONTAINER else self._process.pid
            pids, tasks = below(first, limits.processes)
            if tasks > limits.processes:
                self.stop(f"It started more than {limits.processes} processes and threads and was stopped.")
            elif self._memory_bytes([first, *pids]) > limits.memory_bytes:
                self.stop(f"It used more than {limits.memory_bytes / 2**30:g} GiB of memory and was stopped.")
            elif self.tier == PROCESS and stored_bytes(self.home, limits.disk_bytes) > limits.disk_bytes:
                self.stop(f"It wrote more than {limits.disk_bytes / 2**20:g} MiB of files and was stopped.")

    def _memory_bytes(self, pids: Sequence[int]) -> int:
        """Return what is in processes, and what is not. Files count in a file system of the sandbox's own."""
        own = None if self.tier == PROCESS else self.seen(FILES)
        return memory_bytes(pids) + kernel_bytes(pids[-1], own)


def prefix(pid: int) -> str:
    """Return how the folders begin that a grader's process makes for a while."""
    return f"labkit-{pid}-"


def clear(pid: int) -> None:
    """Remove what a grader's process that was ended has left: programs of its sandboxes, and folders."""
    for path in Path(tempfile.gettempdir()).glob(f"{prefix(pid)}*"):
        with suppress(RecursionError):
            shutil.rmtree(path, ignore_errors=True)


def _publish(folder: Path) -> None:
    """Let another user read the contents of a folder. The permissions of its parent decide who reaches it."""
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777)


def _python_folders() -> list[Path]:
    """Return the folders that Python and this package are in, each before what is in it; of a clone what is
    needed alone.
    """
    packages = {Path(entry) for entry in sys.path if entry.endswith("-packages")}
    given = {Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    needed = {*filter(Path.is_dir, PACKAGES), PACKAGE.parent / "data"}
    pythons = {path for prefix in (sys.prefix, sys.base_prefix) for path in _parts(Path(prefix))}
    return sorted(pythons | packages | (given - {PACKAGE.parent}) | needed)


def _parts(prefix: Path) -> list[Path]:
    """Return what belongs to an installation of Python. Others may keep their work beside it: `python -m venv
    course; cd course`.
    """
    return [path for path in prefix.iterdir() if path.name in INSTALLED or path.name.endswith("-linux-gnu")]


def _hidden(names: Sequence[str], seen: Sequence[Path]) -> list[Path]:
    """Return those of the folders that could be seen, but for one that holds what has to be."""
    system = [path for path in map(Path, SYSTEM) if not path.is_symlink()]
    tops = {top: top.resolve() for top in (*system, *seen)}
    paths = [path.resolve() for path in map(Path, names) if path.is_dir()]
    needless = [path for path in paths if not any(top.is_relative_to(path) for top in tops.values())]
    return [
        top / path.relative_to(real)
        for path in needless
        for top, real in tops.items()
        if path.is_relative_to(real)
    ]


def _secrets(seen: list[Path]) -> list[Path]:
    """Return what must not be seen of the folders that are: criteria, solutions, and tests, which have
    answers too.
    """
    names = (
        PACKAGE / "course",
        PACKAGE / "notebooks",
        PACKAGE.parent / "notebooks",
        PACKAGE.parent / "tests",
    )
    return [path for path in names if path.is_dir() and any(path.is_relative_to(folder) for folder in seen)]
