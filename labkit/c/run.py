"""One run of a C function in driver.c's program: arguments in, its result or what went wrong out.

Programs run here, below this process, or where `elsewhere` says.
"""

import os
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labkit.c.arguments import Arguments
from labkit.c.calls import Calls, Left
from labkit.c.process import MAX_PRINTED_BYTES, Ended, run_limited
from labkit.c.report import (
    Memory,
    at_line,
    from_assert,
    from_exit,
    from_guards,
    from_sanitizer,
    line_of,
    split_report,
)
from simt.common.errors import Crash, LaunchError, SimtError, Timeout

if sys.platform != "win32":  # it has no pipes of this kind
    from labkit.c.stopwatch import Stopwatch

GUARD_BYTES = 64  # before and after each argument; a multiple of their alignment
MEMORY_BYTES = 2**31  # that a function may use besides its arguments
TIMING_SECONDS = 1
MOST_BESIDE = 2**20  # bytes of output besides the arguments: addresses, a result, samples
NO_MEMORY = 77  # driver.c's exit code
AFTER = struct.Struct("=qq8s16s")  # driver.c's struct after
NUMBERS = b"?bBhHiIlLqQfd"  # struct codes that driver.c gives
SANITIZER_OPTIONS = (
    "detect_leaks=0:handle_abort=1:handle_sigill=1:allocator_may_return_null=1:print_stacktrace=1:color=never"
)
ONE_THREAD = {"OMP_THREAD_LIMIT": "1"}  # environment: OpenMP is right in one thread, too
FORGED = "{} has written over what the program around it keeps."


@dataclass(frozen=True)
class Job:
    """A program to run, and its command-line arguments.

    It reads `data` from the file `input`, and writes at most `most` bytes to the file `output`. `options` are
    the sanitizers'; `timeout` is in seconds.
    """

    program: Path
    words: tuple[str, ...]
    data: bytes
    most: int
    options: str
    timeout: float


@dataclass(frozen=True)
class Done:
    """How a program ended, and what it left in its file `output`."""

    ended: Ended
    output: bytes


Runner = Callable[[Job], Done]


@contextmanager
def elsewhere(runner: Runner) -> Iterator[None]:
    """Return a context in which `runner` runs the programs."""
    _runners.append(runner)
    try:
        yield
    finally:
        _runners.pop()


def run_here(job: Job) -> Done:
    """Run a program below this process."""
    environment = _environment() | sanitizer_environment(job.options)
    with tempfile.TemporaryDirectory(prefix="labkit-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "input").write_bytes(job.data)
        ended = run_limited([str(job.program), *job.words], folder, environment, job.timeout)
        return Done(ended, read_output(folder / "output", job.most))


def sanitizer_environment(options: str) -> dict[str, str]:
    """Return the environment variables with the sanitizers' options."""
    return {"ASAN_OPTIONS": options, "UBSAN_OPTIONS": options}


def _environment() -> dict[str, str]:
    """Return ours, without LD_PRELOAD: a library there, such as Colab's allocator, stops a sanitizer."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


_runners: list[Runner] = [run_here]


@dataclass(frozen=True)
class CRun:
    """How a run ended. `started`: it reached the call; `after`: driver.c's output after the call."""

    ended: Ended
    printed: str
    report: str  # a sanitizer's
    started: bool
    addresses: Sequence[int]  # of the arguments
    after: bytes  # empty if the function did not return


def run_program(
    program: Path, arguments: Arguments, timeout: float, *, guard: int = GUARD_BYTES, samples: int = 0
) -> CRun:
    """Run a program on the arguments; `samples` and `guard` as driver.c takes them, `timeout` in seconds."""
    memory = memory_limit(arguments)
    megabytes = memory // 2**20
    options = f"{SANITIZER_OPTIONS}:hard_rss_limit_mb={megabytes}:max_allocation_size_mb={megabytes}"
    # Without guards AddressSanitizer has its own. It takes terabytes of addresses, but little memory.
    words = (memory if guard else 0, guard, samples, TIMING_SECONDS, *arguments.sizes)
    most = arguments.nbytes + MOST_BESIDE
    done = _runners[-1](Job(program, tuple(map(str, words)), arguments.data(), most, options, timeout))
    ended, output = done.ended, done.output
    start = 8 + 8 * len(arguments.values)  # after the number of arguments and their addresses
    started = len(output) >= start
    returned = ended.code == 0 and not ended.over and len(output) >= start + AFTER.size
    printed, report = (ended.printed, "") if returned else split_report(ended.printed)
    addresses = np.frombuffer(output[8:start], np.uint64).tolist() if started else []
    after = output[start:] if returned else b""
    return CRun(ended, printed, report, started, addresses, after)


def result(run: CRun, arguments: Arguments, name: str, source: str, timeout: float) -> tuple[Any, bytes]:
    """Return what function `name` returned, and the arrays that it left. Raises what went wrong."""
    number, data = _left(run, arguments, name, source, timeout)
    if len(data) != arguments.nbytes:
        raise SimtError(FORGED.format(name))
    return number, data


def times(run: CRun, arguments: Arguments, name: str, source: str, timeout: float) -> tuple[float, ...]:
    """Return the samples of function `name`, in milliseconds. Raises what went wrong."""
    _, data = _left(run, arguments, name, source, timeout)
    samples = np.frombuffer(data[: len(data) // 8 * 8])
    if not len(samples) or not (np.isfinite(samples) & (samples >= 0)).all():
        raise SimtError(FORGED.format(name))
    return tuple(samples.tolist())


def run_calls(program: Path, calls: Calls, timeout: float) -> Left:
    """Run a program that makes these calls, below this process. Raises OSError on Windows."""
    if sys.platform != "win32":
        with tempfile.TemporaryDirectory(prefix="labkit-", ignore_cleanup_errors=True) as name:
            folder, pids = Path(name), list[int]()
            with Stopwatch(folder, calls.file(), calls.known, lambda: pids) as watch:
                command = [str(program), *calls.words(MEMORY_BYTES)]
                environment = _environment() | ONE_THREAD

                def started(process: subprocess.Popen[bytes]) -> None:
                    pids.append(process.pid)

                ended = run_limited(command, folder, environment, timeout, started)
            return Left(ended, watch.left, watch.seconds)
    raise OSError("Windows has no pipes by which to time a program from outside.")


def _left(run: CRun, arguments: Arguments, name: str, source: str, timeout: float) -> tuple[Any, bytes]:
    """Return the number that the function returned, and the output that follows it."""
    if not run.after:
        raise _error(run, arguments, name, source.split("\n"), timeout)
    argument, offset, code, value = AFTER.unpack_from(run.after)
    code = code.rstrip(b"\0")
    if argument >= len(arguments.values) or len(code) > 1 or code not in NUMBERS:
        raise SimtError(FORGED.format(name))
    if argument >= 0:
        raise from_guards(arguments.named(argument), offset)
    return struct.unpack_from(code, value)[0] if code else None, run.after[AFTER.size :]


def read_output(path: Path, most: int) -> bytes:
    """Return the program's output; empty where the function has replaced the file by something else."""
    try:
        # It must not be a link, nor a pipe, on which reading would never end.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return b""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return b""
    with os.fdopen(handle, "rb") as file:
        return file.read(most)


def memory_limit(arguments: Arguments) -> int:
    """Return the limit in bytes: MEMORY_BYTES + twice the arguments; at most half the machine's memory.

    Timing keeps a copy of the arguments.
    """
    wanted = MEMORY_BYTES + 2 * arguments.nbytes
    if not hasattr(os, "sysconf"):  # Windows
        return wanted
    return min(wanted, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)


def _error(run: CRun, arguments: Arguments, name: str, source: Sequence[str], timeout: float) -> SimtError:
    """Explain why the function did not return."""
    if run.ended.over == "printing":
        return Crash(f"{name} printed more than {MAX_PRINTED_BYTES:,} bytes and was stopped.")
    if run.ended.over == "time":
        message = f"{name} ran for more than {timeout:g} s and was stopped. Does each of its loops end?"
        return Timeout(at_line(message, line_of(run.report), source))
    limit = f"{memory_limit(arguments):,} bytes of memory"
    if not run.started and run.ended.code == NO_MEMORY:
        return LaunchError(
            f"the arguments have {arguments.nbytes:,} bytes, and on this machine {name} gets {limit}. "
            "Pass smaller arrays"
        )
    if not run.started:
        reason = run.ended.printed or f"exit code {run.ended.code}, and no output"
        return SimtError(f"{name} was not started, or its output is gone: {reason}")
    if "rss limit exhausted" in run.report:
        return Crash(
            f"{name} used more than {limit} and was stopped. Does it call malloc in a loop, free never?"
        )
    arrays = [_memory(run, arguments, k) for k, value in enumerate(arguments.values) if value.ndim]
    return (
        from_assert(run.printed, source)
        or from_sanitizer(run.report, arrays, source)
        or from_exit(run.ended.code, run.report, source)
    )


def _memory(run: CRun, arguments: Arguments, k: int) -> Memory:
    return Memory(arguments.named(k), run.addresses[k])
