"""A program from source text: built once, run with arguments and input, its output kept."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO, Literal

from simt.common.cache import cache_dir, digest
from simt.common.errors import CompileError
from simt.programs.build import command
from simt.programs.messages import explained
from simt.programs.recording import Record, Watching

FILE_NAME = "program.cu"
BUILD_SECONDS, SECONDS = 120, 300
NOT_FOUND = 127  # a shell's exit code where there is no such command
MOST_BYTES = 2**20  # of each of stdout and stderr
Mode = Literal["run", "check", "profile"]
_MESSAGE = re.compile(
    rf"^{re.escape(FILE_NAME)}[(:](\d+)(?:\)|:\d+)?:? (?:fatal )?(error|warning)\b[^:\n]*: (.*)$", re.M
)
_MISTAKE = re.compile(r"^labkit check: (?!\d+ mistake|no mistake)([^:]+): (.*)", re.M)


@dataclass(frozen=True)
class Outcome:
    """What a program did: its output, its exit code (128 + n: ended by signal n), and if it took too long.

    `record` is what the simulator saw, where that was asked for and the program was not stopped.
    """

    stdout: str
    stderr: str
    code: int
    timed_out: bool = False
    record: Record | None = None

    @property
    def mistakes(self) -> list[tuple[str, str]]:
        """Return (kind, first line of the message) of each mistake that a checked run named."""
        return [(kind, text.strip()) for kind, text in _MISTAKE.findall(self.stderr)]


OnText = Callable[[str, str], None]


class AnyProgram(ABC):
    """A program that can be run: built here, in a sandbox, or not at all."""

    source: str
    options: tuple[str, ...]

    @abstractmethod
    def run(
        self,
        *arguments: str,
        stdin: str = "",
        mode: Mode = "run",
        timeout: float = SECONDS,
        variables: Mapping[str, str] | None = None,
        on_text: OnText | None = None,
        record: int | None = None,
    ) -> Outcome:
        """Run it with arguments and input; `mode` as `labkit check` and `labkit profile` do.

        `on_text` gets ("stdout" or "stderr", text) while the program runs. `timeout` is in seconds.
        `variables` are set in its environment. A program that prints more than MOST_BYTES is ended.

        With `record`, a seed, it runs in the simulator, which also tries its launches on numbers drawn from
        the seed; the outcome has a record, and the program sees none of labkit's variables.
        """


@dataclass(frozen=True)
class Unbuilt(AnyProgram):
    """A program that this machine cannot build; `why` says what is missing, and how to get it."""

    source: str
    options: tuple[str, ...]
    why: str

    def run(
        self,
        *arguments: str,
        stdin: str = "",
        mode: Mode = "run",
        timeout: float = SECONDS,
        variables: Mapping[str, str] | None = None,
        on_text: OnText | None = None,
        record: int | None = None,
    ) -> Outcome:
        """Return what a shell says of a missing command."""
        return Outcome("", f"{self.why}\n", NOT_FOUND)


@dataclass(frozen=True)
class Program(AnyProgram):
    """A built program."""

    source: str
    options: tuple[str, ...]
    path: Path

    def run(
        self,
        *arguments: str,
        stdin: str = "",
        mode: Mode = "run",
        timeout: float = SECONDS,
        variables: Mapping[str, str] | None = None,
        on_text: OnText | None = None,
        record: int | None = None,
    ) -> Outcome:
        """See AnyProgram."""
        told, environment = dict(variables or {}), os.environ | dict(variables or {})
        if mode != "run":
            environment["LABKIT_PROGRAM"] = mode
        out, err = os.pipe(), os.pipe()
        watching = None if record is None else Watching(mode, told, record, out[1], err[1])
        if watching:
            environment = watching.environment(told)
        environment.pop("FORCE_COLOR", None)  # Jupyter sets it, and no terminal reads this
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [self.path, *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=out[1],
                stderr=err[1],
                pass_fds=watching.files if watching else (),
                start_new_session=True,
            )
            os.close(out[1])
            os.close(err[1])
            if watching:
                watching.begin(process.pid)
            printed = _Printed(process, on_text)
            threads = [
                Thread(target=printed.read, args=(os.fdopen(end, "rb"), name), daemon=True)
                for end, name in ((out[0], "stdout"), (err[0], "stderr"))
            ]
            for thread in threads:
                thread.start()
            is_stopped = True
            try:
                is_stopped = timed_out = _finish(process, stdin, timeout)
            finally:
                seen = watching.finish(is_stopped) if watching else None
            for thread in threads:
                thread.join(timeout=10)
            _kill(process)  # what it has started and left behind
        code = process.returncode
        shown_out, shown_err = ("".join(printed.texts[name]) for name in ("stdout", "stderr"))
        return Outcome(shown_out, shown_err, code if code >= 0 else 128 - code, timed_out, seen)


def build_program(source: str, options: Sequence[str] = ()) -> Program:
    """Build a program from its source (once for the same source, options and compilers).

    Raises CompileError with nvcc's messages, and NoCompiler where nvcc or a host compiler is missing.
    """
    call = command([FILE_NAME, "-o", "program", *options])
    place = cache_dir() / "programs" / digest([source, *call]) / "program"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        # The source stays: messages show its lines, and debug information names its path.
        # Another process may be building the same: each file appears whole, or not at all.
        built = place.with_name(f"program-{os.getpid()}")
        built.write_text(source)
        built.replace(place.with_name(FILE_NAME))
        call[call.index("program")] = built.name
        try:
            done = subprocess.run(
                call, cwd=place.parent, capture_output=True, text=True, timeout=BUILD_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise CompileError(f"nvcc has not finished after {BUILD_SECONDS} s") from None
        log = done.stdout + "".join(explained(done.stderr.splitlines(keepends=True)))
        if done.returncode:
            found = [(int(line), severity, text) for line, severity, text in _MESSAGE.findall(log)]
            raise CompileError(log, found)
        print(log, end="", file=sys.stderr)
        built.replace(place)
    return Program(source, tuple(options), place)


@dataclass(frozen=True)
class _Printed:
    """What a program prints, as it comes."""

    process: subprocess.Popen[bytes]
    on_text: OnText | None
    texts: dict[str, list[str]] = field(default_factory=lambda: {"stdout": [], "stderr": []})

    def read(self, stream: IO[bytes], name: str) -> None:
        """Read a stream to its end; end a program that prints too much."""
        left = MOST_BYTES
        while line := stream.readline(left + 1):
            left -= len(line)
            if left < 0:
                self._keep(
                    "stderr", f"labkit: the program printed more than {MOST_BYTES:,} bytes to {name}\n"
                )
                _kill(self.process, wait=False)
                return
            self._keep(name, line.decode(errors="replace"))

    def _keep(self, name: str, text: str) -> None:
        self.texts[name].append(text)
        if self.on_text:
            self.on_text(name, text)


def _finish(process: subprocess.Popen[bytes], stdin: str, timeout: float) -> bool:
    """Give a program its input and wait for it; end it, with its children, when time is up or on Ctrl-C."""
    try:
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it may end without reading it all
            process.stdin.write(stdin.encode())
            process.stdin.close()
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        _kill(process)
        return True
    except BaseException:
        _kill(process)
        raise
    return False


def _kill(process: subprocess.Popen[bytes], wait: bool = True) -> None:
    if sys.platform != "win32":  # where labkit builds no programs
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if wait:
        process.wait()
