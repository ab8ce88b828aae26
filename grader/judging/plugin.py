"""nbval's plug-in: kernels run in sandboxes, and what a check cell hands out is judged here, outside.

nbval collects the notebooks of merge.py and runs their cells. In the place of its kernel comes one in a
sandbox, and in the place of its comparison of outputs, for check cells, the exercise's criteria.
"""

import math
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty
from time import monotonic, perf_counter
from traceback import format_exc
from typing import Any

import pytest
import zmq
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import KernelManager
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

from grader.judging.clock import Clock, Late
from grader.judging.faults import AGAIN, fit, guarded, ours, strange
from grader.judging.remote import Session, Stopped
from grader.sandbox.limits import LIMITS, Limits
from grader.sandbox.machine_lock import MachineLock
from grader.sandbox.process import Sandbox
from grader.sandbox.relay import Relay
from grader.sandbox.wire import BorderError, Channel
from labkit.course.criteria.undisturbed import taking_turns
from labkit.course.exercise import Exercise
from labkit.course.feedback import Feedback
from labkit.course.reimported import Raised

START_SECONDS = 60
POLL_SECONDS = 0.25
END_SECONDS = 5  # for a check cell to end, and for the last of its output to arrive
_TRACEBACK = "Traceback (most recent call last)"
_AROUND = ("get_ipython().run_cell_magic(", "[... skipping hidden")  # in IPython's frames above a cell's own
ENDED = "The answer has ended the process that runs it."
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Judgement:
    """What came of an exercise: its feedback, or in a sentence what was wrong with the grader or its machine;
    the seconds that judging took; and, for instructors, the traceback of an error in the grader.
    """

    feedback: Feedback | None = None
    broken: str = ""
    seconds: float = 0.0
    inside: str = ""


@dataclass
class Grading:
    """The plug-in of one run of pytest: what it is to judge, and how; `judged` is filled by exercise.

    `clock` measures the whole submission.
    """

    exercises: Mapping[str, Exercise]
    seed: int
    isolation: str
    clock: Clock
    limits: Limits = LIMITS
    judged: dict[str, Judgement] = field(default_factory=dict)
    turns: MachineLock = field(default_factory=MachineLock)

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Any, parent: Any) -> Generator[None, list[Any], list[Any]]:
        """Collect our kind of notebook in the place of nbval's."""
        collectors = yield
        return [
            GradedFile.from_parent(parent, path=file_path, grading=self)
            if isinstance(each, IPyNbFile)
            else each
            for each in collectors
        ]


class GradedFile(IPyNbFile):
    """A notebook of merge.py, and its kernel in a sandbox."""

    def __init__(self, *args: Any, grading: Grading, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.grading = grading
        self.setups: list[IPyNbCell] = []

    def collect(self) -> Iterator[pytest.Item]:
        """Collect setup cells as nbval does, and answer and check cells as ours."""
        kinds = {"answer": AnswerCell, "check": CheckCell}
        for cell in super().collect():
            role = cell.cell.metadata.get("labkit", {}).get("role")
            kind = kinds.get(role, IPyNbCell)
            made = kind.from_parent(
                self, name=cell.name, cell_num=cell.cell_num, cell=cell.cell, options=cell.options
            )
            if kind is IPyNbCell:
                self.setups.append(made)
            yield made

    def setup(self) -> None:
        """Start the kernel."""
        self.kernel = SandboxedKernel(self.grading.isolation, self.grading.limits)

    def revive(self) -> None:
        """Start a new kernel in the place of one that an answer has ended."""
        self.timed_out = False
        if not self.kernel.is_alive():
            self.kernel.stop()
            self.setup()
            for cell in self.setups:
                cell.runtest()

    def teardown(self) -> None:
        """Stop the kernel, and all that runs beside it."""
        if self.kernel is not None:
            self.kernel.stop()


class AnswerCell(IPyNbCell):
    """The cell of a student."""

    def setup(self) -> None:
        """Make sure that a kernel runs, if there is time left."""
        if self.parent.grading.clock.left() > 0:
            self.parent.revive()

    def runtest(self) -> None:
        """Run the cell; why it fails is the feedback."""
        grading, kernel = self.parent.grading, self.parent.kernel
        exercise = grading.exercises[self.cell.metadata.labkit.exercise]
        start = perf_counter()
        try:
            if grading.clock.left() <= 0:
                raise Late
            with grading.turns.beside(grading.clock.paused):
                clock = grading.clock.part(grading.limits.cell_seconds + END_SECONDS, "Running the cell")
                with kernel.within(clock.left(), clock.why), clock.enforced(kernel.stop_for):
                    super().runtest()
        except NbCellError as error:
            why, inside = _told(error, exercise)
            self._failed(exercise, kernel.stopped_for or why, start, inside)
            raise
        except Late:
            self._failed(exercise, kernel.stopped_for or grading.clock.why(), start)
            self.raise_cell_error("late")
        except Exception as error:
            if cause := ours(error):
                grading.judged[exercise.id] = Judgement(broken=cause, inside=format_exc())
            else:  # what its process sends makes nbval raise
                self._failed(exercise, kernel.stopped_for or strange(error), start, format_exc())
            raise

    def _failed(self, exercise: Exercise, why: str, start: float, inside: str = "") -> None:
        feedback = fit(exercise.not_judged("the answer cell runs", why))
        seconds = perf_counter() - start
        self.parent.grading.judged[exercise.id] = Judgement(feedback, seconds=seconds, inside=inside)


class CheckCell(IPyNbCell):
    """The cell that hands out what the answer gives."""

    def setup(self) -> None:
        """Fail where the kernel has ended: that is the answer's fault."""

    def runtest(self) -> None:
        """Judge the answer above, unless it has failed.

        What a criterion raises may be the answer's, see `guarded`; whatever else is raised meanwhile is not.
        """
        grading = self.parent.grading
        exercise = grading.exercises[self.cell.metadata.labkit.exercise]
        if exercise.id in grading.judged:
            pytest.skip("the answer cell has failed")
        start, kernel = perf_counter(), self.parent.kernel
        errors: list[str] = []
        try:
            with grading.turns.beside(grading.clock.paused):
                clock = grading.clock.part(grading.limits.answer_seconds, "Judging this answer")
                with clock.enforced(kernel.stop_for):
                    feedback = self._judged(guarded(exercise, errors), clock)
            judgement = Judgement(fit(feedback))
        except Late:
            why = kernel.stopped_for or clock.why()
            judgement = Judgement(fit(exercise.not_judged("the answer is judged in time", why)))
        except Exception as error:  # what an answer makes its criteria raise is told in its feedback
            errors.append(format_exc())
            judgement = Judgement(broken=ours(error) or AGAIN)
        judgement.seconds = perf_counter() - start
        judgement.inside = "\n".join(errors)
        grading.judged[exercise.id] = judgement
        if judgement.feedback is None or not judgement.feedback.ok:
            self.raise_cell_error(judgement.broken or repr(judgement.feedback))

    def _judged(self, exercise: Exercise, clock: Clock) -> Feedback:
        grading, kernel = self.parent.grading, self.parent.kernel
        if not kernel.is_alive():
            return exercise.not_judged("the answer cell runs", kernel.stopped_for or ENDED)
        request = kernel.execute_cell_input(self.cell.source, allow_stdin=False)
        try:
            channel = Channel(kernel.accepted(min(grading.limits.cell_seconds, clock.left())))
        except BorderError:
            why = (
                kernel.stopped_for
                or "The answer's process returned no values: has the answer changed labkit?"
            )
            return exercise.not_judged("the answer returns values", why)
        tier, limits = grading.isolation, grading.limits
        session = Session(
            channel, exercise.magic, tier, limits, clock, kernel.is_alive, lambda: kernel.stopped_for
        )
        try:
            answer = session.answer()
            if answer is None:
                return exercise.not_judged("the answer cell has run", "The cell ran, but it left no answer.")
            turns = grading.turns
            with taking_turns(lambda: turns.alone(clock.paused), turns.refuse_if_busy):
                return exercise.judge(answer, grading.seed)
        except Stopped as why:
            return exercise.not_judged("the answer returns values", str(why))
        finally:
            session.end()
            kernel.finish(request)


class SandboxedKernel(RunningKernel):
    """nbval's kernel, in a sandbox; `stopped_for` tells in a sentence why it was stopped, if it was."""

    def __init__(self, isolation: str, limits: Limits) -> None:
        self._sandbox = sandbox = Sandbox(isolation, limits)
        self._until = math.inf  # when messages are not waited for any more
        self._why: Callable[[], str] = str  # tells what was late
        self._context = zmq.Context()
        name = sandbox.folder.name
        self.km = KernelManager(
            transport="ipc",
            ip=str(sandbox.home / name),
            connection_file=str(sandbox.shared / "kernel.json"),
            context=self._context,
        )
        self.km.write_connection_file()
        self.km.kernel_spec_manager = _InSandbox(sandbox)  # the command lets it see what is there now
        self._relay = Relay(
            sandbox.folder,
            lambda: sandbox.seen(sandbox.home),
            (f"{name}-{port}" for port in self.km.ports),
            limits.message_bytes,
            lambda: sandbox.stop(f"It printed more than {limits.message_bytes >> 20} MiB and was stopped."),
        )
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            self.km.start_kernel(cwd=str(sandbox.folder), env=sandbox.environment(), **quiet)
            sandbox.watch(self.km.provisioner.process)  # type: ignore[union-attr]
            self.kc = self.km.client(ip=str(sandbox.folder / name))
            self.kc.start_channels(stdin=False, hb=False)
            self.kc.wait_for_ready(timeout=START_SECONDS)
            self._ensure_iopub_up()
        except BaseException:
            self.stop()
            raise

    @property
    def stopped_for(self) -> str:
        """Return which limit the answers met."""
        return self._sandbox.stopped_for

    @contextmanager
    def within(self, seconds: float, why: Callable[[], str] = str) -> Iterator[None]:
        """Wait for messages for so long at most, however many come; `why` says what was late."""
        self._until, self._why = monotonic() + seconds, why
        try:
            yield
        finally:
            self._until, self._why = math.inf, str

    def get_message(self, stream: str, timeout: float | None = None) -> Any:
        """Get a message as nbval does; stop waiting for a kernel that has ended or sends anything else."""
        until = min(self._until, monotonic() + (START_SECONDS if timeout is None else timeout))
        while monotonic() < until:
            try:
                message = super().get_message(stream, min(POLL_SECONDS, max(0.0, until - monotonic())))
            except Empty:
                if self.is_alive():
                    continue
                break
            except Exception:  # whatever strange bytes make ZeroMQ and Jupyter raise
                message = None
            if is_message(message):
                return message
            self._sandbox.stop("The answer's process sends what is no message of Jupyter's.")
        if (
            stream == "iopub" and self._until < math.inf and self.is_alive()
        ):  # Jupyter drops what it cannot hold
            self._sandbox.stop("The cell shows so many pieces, one by one, that the last of them were lost.")
        raise Empty

    def accepted(self, seconds: float) -> socket.socket:
        """Accept the connection of a check cell. Raises BorderError where none comes."""
        return self._sandbox.accepted(seconds, self.is_alive)

    def finish(self, request: str) -> None:
        """Wait for the end of a check cell; stop a kernel that does not end it."""
        try:
            with self.within(END_SECONDS):
                self.await_reply(request)
        except (Empty, RuntimeError):
            self._sandbox.stop("The check cell did not end.")

    def stop_for(self, reason: str) -> None:
        """Stop the answer, which fails for this reason."""
        self._sandbox.stop(reason)

    def interrupt(self) -> None:
        """Stop the kernel: nbval's way with a cell that does not come to its end."""
        seconds = self._sandbox.limits.cell_seconds
        late = self._why() if monotonic() >= self._until else ""
        late = late or f"The cell ran for more than {seconds:g} s and was stopped."
        self._sandbox.stop(late if self.is_alive() else ENDED)

    def is_alive(self) -> bool:
        """Say whether the kernel runs."""
        return not self._sandbox.stopped_for and super().is_alive()

    def stop(self) -> None:
        """Stop it and what runs beside it, and remove its folder."""
        self._sandbox.stop()
        if hasattr(self, "kc"):
            self.kc.stop_channels()
        if self.km.has_kernel:
            self.km.shutdown_kernel(now=True)
        self._context.destroy(linger=0)
        self._relay.stop()
        self._sandbox.__exit__()


class _InSandbox(KernelSpecManager):
    """Knows one kernel: Python in a sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__()
        kernel = ("-P", "-s", "-m", "ipykernel_launcher", "-f", "{connection_file}")
        self._command = sandbox.command([sys.executable, *kernel])

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return our kernel, whatever the notebook calls its own."""
        return KernelSpec(argv=self._command, display_name="sandbox", language="python")


# What nbval reads in the content of a message that it gets.
_CONTENT: dict[str, dict[str, type]] = {
    "status": {"execution_state": str},
    "stream": {"name": str, "text": str},
    "display_data": {"data": dict, "metadata": dict},
    "execute_result": {"data": dict, "metadata": dict, "execution_count": int},
    "error": {"ename": str, "evalue": str, "traceback": list},
    "execute_reply": {"status": str},
    "kernel_info_reply": {"status": str},
}


def is_message(message: Any) -> bool:
    """Tell whether this is a message as Jupyter has them, as far as nbval looks at it."""
    if not isinstance(message, dict) or not isinstance(message.get("parent_header"), dict):
        return False
    kind, content = message.get("msg_type"), message.get("content")
    if not isinstance(kind, str) or not isinstance(content, dict):
        return False
    told = content.get("traceback", [])
    return all(isinstance(content.get(name), type) for name, type in _CONTENT.get(kind, {}).items()) and (
        kind != "error" or all(isinstance(line, str) for line in told)
    )


def _told(error: NbCellError, exercise: Exercise) -> tuple[str, str]:
    """Return what a cell's error says, without colours, and of its traceback the frames in the cell; and, for
    instructors, the whole of an error that is not the cell's own: no C or CUDA C++ has a traceback in Python.
    """
    told = _COLOURS.sub("", error.inner_traceback or str(error)).strip()
    if _TRACEBACK in told and exercise.magic != "answer":
        kind = told.rpartition("\n")[2].partition(":")[0]
        return strange(Raised(kind, "")), told
    parts = (part for part in told.split("\n\n") if not part.lstrip("\n").startswith("File "))
    return "\n\n".join(part for part in parts if not any(words in part for words in _AROUND)), ""
