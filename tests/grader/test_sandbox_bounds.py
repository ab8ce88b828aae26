"""What a program in a sandbox of bubblewrap can take and see: measured from outside, without a judge."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import psutil
import pytest

from grader.judging import pool
from grader.judging.engine import Attempt, Job
from grader.model import Submission
from grader.sandbox import process, watch
from grader.sandbox.limits import Limits
from grader.sandbox.machine_lock import MachineLock

SMALL = Limits(memory_bytes=2**27, disk_bytes=2**26, processes=64)
SECONDS = 20


@pytest.fixture(autouse=True)
def isolated():
    if process.best() != process.BUBBLEWRAP:
        why = "bubblewrap does not work here"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)


def ran(code, limits=SMALL, python=sys.executable):
    """Run a program in Python: what it prints, and why its sandbox stopped it."""
    with process.Sandbox(process.BUBBLEWRAP, limits) as sandbox:
        program = subprocess.Popen(
            sandbox.command([python, "-c", code]),
            env=sandbox.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        sandbox.watch(program)
        return program.communicate(timeout=SECONDS)[0], sandbox.stopped_for


# Each holds what it gets, in several processes, and then waits.
HELD = """
import os, socket, time
held = []
for _ in range(9):
    if os.fork() == 0:
        break
def fill(one):
    one.setblocking(False)
    try:
        while True: one.send(bytes({most}))
    except OSError: pass
try:
    while True:
{kind}
except OSError: pass
time.sleep({seconds})
"""
STREAMS = """
        for one in (pair := socket.socketpair()): fill(one)
        held += pair"""
DATAGRAMS = """
        there = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        there.bind(f"\\0{os.getpid()} {len(held)}")
        held.append(there)
        for _ in range(9):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
                one.connect(there.getsockname())
                fill(one)"""
NAMES = """
        open(f"/tmp/{os.getpid()} {len(held)} " + "x" * 200, "w").close()
        held.append(None)"""
# Every second page may be read: so each is a range of its own, of which the kernel keeps a record.
RANGES = """
        if not held:
            import ctypes
            libc = ctypes.CDLL(None)
            libc.mmap.restype = ctypes.c_void_p
            start = libc.mmap(None, ctypes.c_size_t(2**29), 0, 0x22, -1, ctypes.c_size_t(0))
        if libc.mprotect(ctypes.c_void_p(start + 8192 * len(held)), ctypes.c_size_t(4096), 1): break
        held.append(None)"""


@pytest.mark.parametrize(
    ("kind", "most"),
    [(STREAMS, 2**15), (DATAGRAMS, 2**14), (NAMES, 1), (RANGES, 1)],
    ids=["streams", "datagrams", "names", "ranges"],
)
def test_memory_that_is_in_no_process_is_counted(monkeypatch, kind, most):
    monkeypatch.setattr(watch, "_FEW", 0)
    said, why = ran(HELD.format(kind=kind, most=most, seconds=SECONDS))
    assert why == "It used more than 0.125 GiB of memory and was stopped.", said


def test_containers_are_watched_in_the_same_way(monkeypatch):
    """Here a process of ours stands for a container's first one."""
    with process.Sandbox(process.CONTAINER, SMALL) as sandbox:
        program = subprocess.Popen(
            [sys.executable, "-c", f"import time\nheld = b'x' * 2**28\ntime.sleep({SECONDS})"]
        )
        monkeypatch.setattr(sandbox._container, "pid", lambda: program.pid)
        monkeypatch.setattr(sandbox._container, "seen", lambda path: path)
        monkeypatch.setattr(sandbox._container, "remove", lambda clients: None)
        sandbox.watch(program)
        program.wait(SECONDS)
        assert sandbox.stopped_for == "It used more than 0.125 GiB of memory and was stopped."


def test_processes_of_one_sandbox_do_not_count_for_the_next():
    """When a sandbox is gone, so are its processes, of which its user may have only so many."""
    limits = Limits(processes=64)
    forty = "import os\nfor pid in [os.fork() or os._exit(0) for _ in range(40)]: os.waitpid(pid, 0)"
    for _ in range(2):
        assert "started more than 64 processes" in ran("import os\nwhile True: os.fork()", limits)[1]
        assert ran(forty, limits) == ("", "")


REFUSED = {
    "larger buffers": "socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**28)",
    "sockets of the Internet": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "files in memory": "os.memfd_create('mine')",
    "memory that is shared": "mmap.mmap(-1, 2**20)",
    "System V": "call(libc.shmget(0, 2**20, 0o1600))",
    "messages": "call(libc.msgget(0, 0o1600))",
    "filters": "call(libc.prctl(22, 2, None))",
    "pages in pipes": "call(libc.vmsplice(os.pipe()[1], None, 0, 0))",
    "queues of the kernel": "call(libc.syscall(206, 1, ctypes.byref(ctypes.c_ulong())))",
}


def test_memory_that_nobody_could_count_is_not_given():
    tries = "\n".join(
        f"try: print({name!r}, {call})\nexcept OSError as error: refused({name!r}, error)"
        for name, call in REFUSED.items()
    )
    prepared = """
import ctypes, errno, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(result):
    if result < 0: raise OSError(ctypes.get_errno(), "refused")
    return result
def refused(name, error):
    if error.errno not in (errno.EPERM, errno.EAFNOSUPPORT): print(name, error)
"""
    assert ran(prepared + tries) == ("", "")


def test_work_beside_an_installation_of_python_is_not_seen(tmp_path):
    """`python -m venv course; cd course; labkit grade subs`: what lies there is not installed there."""
    course = tmp_path / "course"
    venv.create(course, symlinks=True, with_pip=False)
    own = [course / "subs", course / "lib" / "grades"]  # the latter below a folder that has to be seen
    for folder in own:
        folder.mkdir()
        (folder / "Bob.ipynb").write_text("the answer")
    look = f"""
import os, sys
for folder in {[str(course), *map(str, own)]}:
    print(sorted(os.listdir(folder)) if os.path.isdir(folder) else None)
"""
    patched = pytest.MonkeyPatch()
    patched.setattr(sys, "prefix", str(course))
    try:
        said, why = ran(look, Limits(hidden=tuple(map(str, own))), str(course / "bin" / "python"))
    finally:
        patched.undo()
    seen, *hidden = said.splitlines()
    assert "'lib'" in seen and "subs" not in seen and why == "", said
    assert hidden == ["None", "[]"]


def test_a_folder_that_holds_the_installation_is_not_hidden():
    """Nor does it need to be: only what is installed is seen of it."""
    above = Path(sys.prefix).resolve().parent
    assert ran("import labkit; print(1)", Limits(hidden=(str(above),))) == ("1\n", "")


def test_turns_are_in_no_folder_that_others_may_write(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    turns = MachineLock()
    with turns.alone():
        assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    turns.close()
    (folder,) = (tmp_path / "cache").iterdir()
    folder.chmod(0o777)  # as another user would have made it, in a cache that several share
    turns = MachineLock()
    with turns.alone():
        (other,) = tmp_path.glob("labkit-turns*")
    turns.close()
    other.chmod(0o777)
    MachineLock().close()
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "cache", other])


def hang(*_):
    """Judge without an end, and without hearing that it shall end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with process.Sandbox(process.BUBBLEWRAP) as sandbox:
        program = subprocess.Popen(
            sandbox.command(["/bin/sleep", "1000"]), env=sandbox.environment(), stdin=subprocess.DEVNULL
        )
        sandbox.watch(program)
        while True:
            time.sleep(1)


def test_a_grader_that_hangs_leaves_nothing_when_it_is_interrupted(monkeypatch):
    monkeypatch.setattr(pool, "END_SECONDS", 0.1)
    with pool.Pool(1) as workers:
        workers.start(Attempt(Submission("Eve")), Job(("02",), 1, process.BUBBLEWRAP, hang))
        worker = psutil.Process(workers.pids()[0])
        folders = Path(tempfile.gettempdir())
        deadline = time.monotonic() + SECONDS
        while not any("sleep" in each.name() for each in worker.children(recursive=True)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        inside = worker.children(recursive=True)
        assert list(folders.glob(f"labkit-{worker.pid}-*"))
        workers.abandon()
    assert psutil.wait_procs(inside, timeout=SECONDS)[1] == []
    assert not list(folders.glob(f"labkit-{worker.pid}-*"))
