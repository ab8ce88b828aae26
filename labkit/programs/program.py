"""A program from source text: built once, run with arguments and input, its output kept."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import IO, Literal

from labkit.core.cache import cache_dir, digest
from labkit.core.errors import CompileError
from labkit.programs.build import command

FILE_NAME = "program.cu"
BUILD_SECONDS, SECONDS = 120, 300
Mode = Literal["run", "check", "profile"]
_MESSAGE = re.compile(
    rf"^{re.escape(FILE_NAME)}[(:](\d+)(?:\)|:\d+)?:? (?:fatal )?(error|warning)\b[^:\n]*: (.*)$", re.M
)
_MISTAKE = re.compile(r"^labkit check: (?!\d+ mistake|no mistake)([^:]+): (.*)", re.M)


@dataclass(frozen=True)
class Outcome:
    """What a program did: its output, its exit code (128 + n: ended by signal n), and if it took too long."""

    stdout: str
    stderr: str
    code: int
    timed_out: bool = False

    @property
    def mistakes(self) -> list[tuple[str, str]]:
        """Return (kind, first line of the message) of each mistake that a checked run named."""
        return [(kind, text.strip()) for kind, text in _MISTAKE.findall(self.stderr)]


@dataclass(frozen=True)
class Program:
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
        on_text: Callable[[str, str], None] | None = None,
    ) -> Outcome:
        """Run it with arguments and input; `mode` as `labkit check` and `labkit profile` do.

        `on_text` gets ("stdout" or "stderr", text) while the program runs. `timeout` is in seconds.
        """
        environment = dict(os.environ)
        if mode != "run":
            environment["LABKIT_PROGRAM"] = mode
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [self.path, *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            texts: dict[str, list[str]] = {"stdout": [], "stderr": []}
            threads = [
                Thread(target=_read, args=(stream, name, texts[name], on_text), daemon=True)
                for name, stream in (("stdout", process.stdout), ("stderr", process.stderr))
            ]
            for thread in threads:
                thread.start()
            timed_out = _finish(process, stdin, timeout)
            for thread in threads:
                thread.join(timeout=10)
        code = process.returncode
        out, err = ("".join(texts[name]) for name in ("stdout", "stderr"))
        return Outcome(out, err, code if code >= 0 else 128 - code, timed_out)


def build_program(source: str, options: Sequence[str] = ()) -> Program:
    """Build a program from its source (once for the same source, options and compilers).

    Raises CompileError with nvcc's messages, and NoCompiler where nvcc or a host compiler is missing.
    """
    call = command([FILE_NAME, "-o", "program", *options])
    place = cache_dir() / "programs" / digest([source, *call]) / "program"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        # The source stays: messages show its lines, and debug information names its path.
        place.with_name(FILE_NAME).write_text(source)
        built = place.with_name(f"program-{os.getpid()}")
        call[call.index("program")] = built.name
        try:
            done = subprocess.run(
                call, cwd=place.parent, capture_output=True, text=True, timeout=BUILD_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise CompileError(f"nvcc has not finished after {BUILD_SECONDS} s") from None
        log = done.stdout + done.stderr
        if done.returncode:
            found = [(int(line), severity, text) for line, severity, text in _MESSAGE.findall(log)]
            raise CompileError(log, found)
        print(log, end="", file=sys.stderr)
        built.replace(place)
    return Program(source, tuple(options), place)


def _read(
    stream: IO[bytes] | None, name: str, texts: list[str], on_text: Callable[[str, str], None] | None
) -> None:
    assert stream is not None
    for line in stream:
        text = line.decode(errors="replace")
        texts.append(text)
        if on_text:
            on_text(name, text)


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


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
