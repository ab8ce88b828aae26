"""Outside a sandbox: an answer that lives in one, with the face of one that is here.

The criteria of an exercise take these for kernels and functions. Each call is a request to probe.py; what
comes back is plain values, and the arrays that were passed are changed as by a call here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from numbers import Number
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from grader.judging.clock import Clock
from grader.judging.faults import is_mistake, ours
from grader.sandbox import gpu
from grader.sandbox.limits import Limits
from grader.sandbox.native import make, read_asked, run_asked
from grader.sandbox.probe import COUNTS
from grader.sandbox.wire import BorderError, Callback, Channel
from labkit.c.arguments import Arguments, bind
from labkit.c.calls import Calls, Left
from labkit.c.function import CFunction, Watch
from labkit.c.source import Function
from labkit.course.reimported import Elsewhere, Raised
from labkit.devices.timing import Timing
from labkit.figures import own_product
from labkit.kernels.matmul.family import Matmul
from labkit.model.doubled import doubled
from labkit.model.sampled import Argument, Contents, Tried, tried
from simt.common import errors
from simt.common.errors import CompileError, SimtError
from simt.common.limits import Dim3
from simt.common.occupancy import DEFAULT_GPU
from simt.common.occupancy import gpu as find_gpu
from simt.compiler.nvrtc import Resources
from simt.counters.profile import LaunchContext, Profile, Site
from simt.findings import Finding
from simt.kernel import PATIENCE_SECONDS, Blocks, Launch, Size, launch_of
from simt.launch.sample import Sample
from simt.module import AnyKernel
from simt.programs.program import SECONDS, AnyProgram, Mode, OnText, Outcome
from simt.programs.recording import record_of
from simt.programs.toolkit import NoCompiler
from simt.ptx import Instruction
from simt.timing.limits import Limit
from simt.timing.prediction import NoPrediction, Prediction

SLACK = 60  # seconds for compiling, beside what a launch may take
FORGED = "The answer's process sent something that is not a valid reply."
MOST_NAME = 100  # characters
_ERRORS: dict[str, type[SimtError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, SimtError)
} | {NoPrediction.__name__: NoPrediction}


class Stopped(SimtError):
    """The answer's process has ended or was stopped; the message says why."""


class Session:
    """Requests on an answer that `magic` begins, for as long as `clock` allows.

    `is_alive` tells whether the sandbox runs, `why_dead` in a sentence why it was stopped. `isolation` is the
    tier of sandboxes.
    """

    def __init__(
        self,
        channel: Channel,
        magic: str,
        isolation: str,
        limits: Limits,
        clock: Clock,
        is_alive: Callable[[], bool],
        why_dead: Callable[[], str],
    ) -> None:
        self.isolation = isolation
        self._channel, self._magic, self._limits, self._clock = channel, magic, limits, clock
        self._is_alive, self._why_dead = is_alive, why_dead

    def answer(self) -> Any:
        """Return the answer as a RemoteKernel, RemoteFunction, RemoteProgram or Python function; else None.

        Raises NoCompiler where the sandbox cannot build programs, and Stopped where it does not say whether
        there is an answer, or says that it is of another kind.
        """
        made = self.ask("describe")
        with _forged_is_stopped():
            if not made["magic"]:
                return None
            if made["magic"] != self._magic:
                raise Stopped(FORGED)
            if self._magic == "cuda":
                options, expressions = (tuple(map(str, made[name])) for name in ("options", "expressions"))
                module = RemoteModule(self, str(made["code"]), options, expressions)
                return RemoteKernel(module, str(made["name"]), 0)
            if self._magic == "program":
                if "missing" in made:
                    raise NoCompiler(str(made["missing"]))
                return RemoteProgram(self, str(made["source"]), tuple(map(str, made["options"])))
            if self._magic == "c":
                options = tuple(map(str, made["options"]))
                return RemoteFunction(
                    self, str(made["source"]), str(made["name"]), options, 0, made["declared"]
                )
            return self._python(made["name"])

    def ask(self, do: str, seconds: float = 0, callbacks: Sequence[Any] = (), **values: Any) -> Any:
        """Return the sandbox's value for a request, which may take `seconds` and SLACK.

        Raises what the answer raises there; Stopped where the sandbox ends or does not reply.
        """
        try:
            self._send({"do": do, **values})
            while (reply := self._receive(seconds)).keys() & {"call", "run"}:
                if "call" in reply and self._magic == "answer":
                    self._send(_called(callbacks, reply, values["args"]))
                elif "run" in reply and self._magic == "c":
                    with _forged_is_stopped():
                        asked = read_asked(reply["run"])
                    self._send(run_asked(asked, self.isolation, self._limits, self._left()))
                else:
                    raise Stopped(FORGED)
        except BorderError as error:
            is_late = self._left() <= 0
            why = self._clock.why() if is_late else f"The answer's process no longer replies: {error}."
            raise Stopped(self._why_dead() or why) from None
        with _forged_is_stopped():
            if "error" not in reply:
                return reply["value"]
            raised = _error(reply["error"])
        raise raised

    def make(self, program: bytes, calls: Calls, timeout: float) -> Left:
        """Make calls as native.make does."""
        return make(program, calls, self.isolation, self._limits, min(timeout, self._left()))

    def end(self) -> None:
        """Let the check cell end."""
        with suppress(BorderError):
            self._channel.send(None, seconds=1)
        self._channel.close()

    def _left(self) -> float:
        """Return the seconds until judging is stopped."""
        return self._clock.left()

    def _send(self, message: Any) -> None:
        self._channel.send(message, self._left())

    def _receive(self, seconds: float) -> Any:
        reply = self._channel.receive(min(self._left(), seconds + SLACK), self._is_alive)
        if not isinstance(reply, dict):
            raise BorderError("the reply is not valid")
        return reply

    def _python(self, name: str) -> Elsewhere:
        def call(*args: Any) -> tuple[Any, str]:
            callbacks = [arg for arg in args if callable(arg)]
            sent = [Callback(callbacks.index(arg)) if callable(arg) else arg for arg in args]
            reply = self.ask("call", callbacks=callbacks, args=sent)
            with _forged_is_stopped():
                _update(args, reply["arrays"])
                return reply["returned"], str(reply["borrowed"])[:MOST_NAME]

        return Elsewhere(str(name)[:MOST_NAME], call)


class RemoteModule:
    """The source of a kernel that is compiled in a sandbox, with the face of `simt.RawModule`."""

    def __init__(
        self, session: Session, code: str, options: Sequence[str], expressions: Sequence[str]
    ) -> None:
        self.session, self.code, self.lines = session, code, code.splitlines()
        self.options, self.name_expressions = tuple(options), tuple(expressions)

    def with_options(self, options: Sequence[str]) -> "RemoteModule":
        """Return the same source with other options."""
        return RemoteModule(self.session, self.code, options, self.name_expressions)

    def restart(self) -> None:
        """Leave it to each launch: the sandbox gives the variables their first values before every one."""

    def get_function(self, name: str) -> "RemoteKernel":
        """Compile the source in the sandbox, and return its kernel called `name`."""
        number = self.session.ask(
            "compile", code=self.code, options=self.options, expressions=self.name_expressions, name=name
        )
        with _forged_is_stopped():
            return RemoteKernel(self, name, int(number))


class RemoteKernel(AnyKernel):
    """A kernel in a sandbox, in the simulator there."""

    module: RemoteModule

    def __init__(self, module: RemoteModule, name: str, number: int) -> None:
        self.module, self.name, self._number = module, name, number

    def run_launch(self, launch: Launch) -> None:
        """Run a launch; see AnyKernel."""
        self._do("launch", launch)

    def check_launch(self, launch: Launch, tools: Sequence[str], blocks: Blocks) -> list[Finding]:
        """Check a launch; see AnyKernel."""
        reply = self._do("check", launch, tools=list(tools), blocks=blocks)
        with _forged_is_stopped():
            return [_finding(each) for each in reply["findings"]]

    def profile_launch(self, launch: Launch, blocks: Blocks, gpu: str) -> Profile:
        """Count a launch; see AnyKernel."""
        # Of the instructions behind the counts only the opcodes and lines come here, and no machine code.
        reply = self._do("profile", launch, gpu=gpu, blocks=blocks)
        with _forged_is_stopped():
            circumstances = LaunchContext(
                grid=launch.grid,
                block=launch.block,
                shared_bytes=int(reply["shared_bytes"]),
                resources=self._resources_for,
                gpu=find_gpu(gpu),
            )
            sample = reply["sample"] and Sample(_numbers(reply["sample"][0]), int(reply["sample"][1]))
            profile = Profile((), UNTOLD, self.module.lines, sample, circumstances, UNTOLD)
            profile.sites = [_site(each) for each in reply["sites"]]
            profile.by_warp = [int(each) for each in reply["by_warp"]]
            profile.unasked_waits = [int(each) for each in reply["unasked_waits"]]
        return profile

    def predict(
        self,
        grid: Size,
        block: Size,
        args: Sequence[object],
        shared_mem: int = 0,
        gpu: str = DEFAULT_GPU,
        timeout: float = PATIENCE_SECONDS,
    ) -> Prediction:
        """See Kernel. The sandbox has the machine code; its arrays are as large as those of `args`, and 0."""
        launch = launch_of(grid, block, args, shared_mem, max(timeout, PATIENCE_SECONDS))
        told = self._ask(
            "predict",
            launch.timeout,
            grid=launch.grid,
            block=launch.block,
            shared_mem=shared_mem,
            args=[None if isinstance(arg, np.ndarray) else arg for arg in args],
            arrays=[
                [list(arg.shape), arg.dtype.name] if isinstance(arg, np.ndarray) else None for arg in args
            ],
            gpu=gpu,
            timeout=launch.timeout,
        )
        return self._prediction(told, gpu)

    def tried(
        self, grid: Size, block: Size, args: Sequence[Argument], blocks: Sequence[int], gpu: str
    ) -> Tried:
        """See labkit.model.sampled: the sandbox draws the arrays, too, and hands out what blocks write."""
        launch = launch_of(grid, block, (), 0, PATIENCE_SECONDS)
        told = self._ask(
            "tried",
            3 * launch.timeout,
            grid=launch.grid,
            block=launch.block,
            args=[None if isinstance(arg, Contents) else arg for arg in args],
            contents=[astuple(arg) if isinstance(arg, Contents) else None for arg in args],
            blocks=list(blocks),
            gpu=gpu,
        )
        predicted = self._prediction(told, gpu)
        with _forged_is_stopped():
            numbers, values = [int(number) for number in told["blocks"]], told["values"]
            if not isinstance(values, np.ndarray) or values.dtype != np.float32:
                raise TypeError("no numbers")
            return Tried(predicted, numbers, _numbers(told["places"]), values)

    def _prediction(self, told: Any, gpu: str) -> Prediction:
        with _forged_is_stopped():
            seconds, low, high = map(float, told["times"])
            return Prediction(
                kernel=self.name,
                gpu=find_gpu(gpu),
                seconds=seconds,
                low=low,
                high=high,
                confidence=float(told["confidence"]),
                validated=bool(told["validated"]),
                parts=tuple(
                    Limit(str(name), float(taken), float(count), str(unit))
                    for name, taken, count, unit in told["parts"]
                ),
                hit_rates={str(level): float(rate) for level, rate in told["hit_rates"].items()},
                dram_bytes=float(told["dram_bytes"]),
            )

    @property
    def attributes(self) -> dict[str, int]:
        """Return the kernel's attributes, as the sandbox gives them."""
        told = self._ask("attributes")
        with _forged_is_stopped():
            return {str(name): int(value) for name, value in told.items()}

    def _resources_for(self, arch: str) -> Resources:
        told = self._ask("resources", arch=arch)
        with _forged_is_stopped():
            return Resources(**{name: int(value) for name, value in told.items()})

    def _do(self, do: str, launch: Launch, **wanted: Any) -> Any:
        """Have the sandbox launch the kernel, and take over what it leaves in the arrays."""
        sizes = {"grid": launch.grid, "block": launch.block, "shared_mem": launch.shared_mem}
        limit = max(launch.timeout, PATIENCE_SECONDS)  # several submissions share the machine
        reply = self._ask(do, limit, **sizes, args=list(launch.args), timeout=limit, **wanted)
        with _forged_is_stopped():
            _update(launch.args, reply["arrays"])
        return reply

    def _ask(self, do: str, seconds: float = 0, **values: Any) -> Any:
        return self.module.session.ask(do, seconds, of=self._number, **values)


class RemoteFunction(CFunction):
    """A C function in a sandbox."""

    def __init__(
        self,
        session: Session,
        source: str,
        name: str,
        options: Sequence[str],
        number: int,
        declared: Sequence[Any],
    ) -> None:
        self._session, self.source, self.name, self.options = session, source, name, tuple(options)
        with _forged_is_stopped():
            self._number = int(number)
            self.function = Function(str(declared[0]), tuple(map(str, declared[1])), bool(declared[2]))

    def variant(
        self, source: str | None = None, name: str | None = None, options: Sequence[str] | None = None
    ) -> "RemoteFunction":
        """See CFunction."""
        source = self.source if source is None else source
        name = self.name if name is None else name
        options = self.options if options is None else tuple(options)
        made = self._session.ask("compile_c", source=source, name=name, options=options)
        with _forged_is_stopped():
            number, declared = made["number"], made["declared"]
        return RemoteFunction(self._session, source, name, options, number, declared)

    def compiled(self, how: str) -> "RemoteFunction":
        """See CFunction."""
        made = self._session.ask("compiled_c", of=self._number, how=how)
        declared = (self.function.name, self.function.parameters, self.function.static)
        with _forged_is_stopped():
            options, number = tuple(map(str, made["options"])), made["number"]
        return RemoteFunction(self._session, self.source, self.name, options, number, declared)

    def makes_vectors(self) -> bool:
        """See CFunction."""
        return bool(self._session.ask("makes_vectors_c", of=self._number))

    def __call__(self, *args: Any, timeout: float = 10) -> Any:
        """See CFunction."""
        timeout = max(timeout, PATIENCE_SECONDS)
        reply = self._session.ask("call_c", timeout, of=self._number, args=list(args), timeout=timeout)
        with _forged_is_stopped():
            _update(args, reply["arrays"])
            returned = reply["returned"]
            if not isinstance(returned, Number | np.generic | None):
                raise Stopped(FORGED)
        return returned

    def make(self, calls: Sequence[Sequence[Any]], timeout: float = 60) -> float:
        """See CFunction. The calls are made in a sandbox of their own, and timed from outside it."""
        told = self._session.ask("program_c", of=self._number, args=list(calls[0]))
        with _forged_is_stopped():
            program = told.tobytes()
        made = Calls([bind(args, self.function) for args in calls])
        left = self._session.make(program, made, timeout)
        return made.update(left, self.name, self.source, timeout)

    def time(self, *args: Any, samples: int = 50, timeout: float = 60) -> Timing:
        """Raise an error: only the function's own process could say how long it took."""
        raise NotImplementedError("the time of a C function in a sandbox is taken by `make`")

    def _program(self, flags: Sequence[str], arguments: Arguments, watch: Watch | None = None) -> Path:
        raise NotImplementedError("a student's C is compiled in a sandbox alone")


@dataclass(frozen=True)
class RemoteProgram(AnyProgram):
    """A whole program in a sandbox."""

    session: Session
    source: str
    options: tuple[str, ...]

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
        """See AnyProgram. Nothing is told while it runs."""
        how: dict[str, Any] = {
            "stdin": stdin,
            "mode": mode,
            "timeout": timeout,
            "variables": dict(variables or {}),
            "record": record,
        }
        told = self.session.ask("run_program", timeout, arguments=list(arguments), **how)
        with _forged_is_stopped():
            out, err = (told[name].tobytes().decode(errors="replace") for name in ("stdout", "stderr"))
            seen = None if told["record"] is None else record_of(told["record"])
            return Outcome(out, err, int(told["code"]), bool(told["timed_out"]), seen)


@doubled.register
def _doubled(kernel: RemoteKernel) -> RemoteKernel:
    """Have the sandbox make that kernel."""
    number = kernel._ask("doubled")
    with _forged_is_stopped():
        return RemoteKernel(kernel.module, kernel.name, int(number))


@tried.register
def _tried(
    kernel: RemoteKernel, grid: Size, block: Size, args: Sequence[Argument], blocks: Sequence[int], gpu: str
) -> Tried:
    """Have the sandbox try the launch."""
    return kernel.tried(grid, block, args, blocks, gpu)


@own_product.measured.register
def _measured(kernel: RemoteKernel, problem: Matmul, *rungs: str) -> tuple[pd.DataFrame, str]:
    """Have another sandbox time the kernel on this machine's GPU."""
    module = kernel.module
    made = {"code": module.code, "options": module.options, "expressions": module.name_expressions}
    try:
        return gpu.measured(module.session.isolation, problem, rungs, name=kernel.name, **made)
    except BorderError as error:
        raise Stopped(f"The kernel's time could not be taken on the GPU: {error}.") from None


@contextmanager
def _forged_is_stopped() -> Iterator[None]:
    """Read a reply in here. An answer in Python runs in the process that replies, so a reply may be anything:
    that is its own fault. A mistake in what reads it is not.
    """
    try:
        yield
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        if is_mistake(error):
            raise
        raise Stopped(FORGED) from None


def _called(callbacks: Sequence[Callable[..., Any]], request: dict[str, Any], args: Sequence[Any]) -> Any:
    """Call one of the judge's functions for an answer in Python, and reply what it returned or raised.

    Raises what no call of the answer's can cause.
    """
    with _forged_is_stopped():
        _update(args, request["arrays"])
    reply: dict[str, Any]
    try:
        reply = {"value": callbacks[int(request["call"])](*request["given"])}
    except SimtError as error:
        reply = {"error": {"kind": type(error).__name__, "message": str(error)}}
    except Exception as error:  # it was called in a wrong way
        if ours(error) or is_mistake(error):
            raise
        reply = {"error": {"kind": "", "message": f"{type(error).__name__}: {error}"}}
    return reply | {"arrays": [arg if isinstance(arg, np.ndarray) else None for arg in args]}


def _update(args: Sequence[Any], arrays: Sequence[Any]) -> None:
    """Copy what the sandbox left in its arrays to those among `args`. Raises Stopped if they do not fit."""
    if len(arrays) != len(args):
        raise Stopped("The answer's process returned other arrays than it was given.")
    for mine, theirs in zip(args, arrays, strict=True):
        if isinstance(mine, np.ndarray):
            if not isinstance(theirs, np.ndarray) or (theirs.shape, theirs.dtype) != (mine.shape, mine.dtype):
                raise Stopped("The answer's process returned other arrays than it was given.")
            mine[...] = theirs


def _error(told: dict[str, Any]) -> Exception:
    """Make the error that a reply describes, of its own class if that is one of ours."""
    kind, message = _ERRORS.get(told["kind"]), str(told["message"])
    line = None if told["line"] is None else int(told["line"])
    if kind is None:
        return Raised(str(told["kind"]), message, line)
    finding = told.get("finding")
    error: SimtError = (
        CompileError(str(told["log"] or message))
        if kind is CompileError
        else kind(message, _finding(finding) if finding else None)
    )
    error.answer_line = line
    return error


def _finding(told: dict[str, Any]) -> Finding:
    return Finding(
        tool=str(told["tool"]),
        kind=str(told["kind"]),
        line=int(told["line"]),
        block=_place(told["block"]),
        thread=_place(told["thread"]),
        message=str(told["message"]),
        source=str(told["source"]),
        other_line=int(told["other_line"]),
        calls=tuple(map(int, told["calls"])),
        site=int(told["site"]),
        other_site=int(told["other_site"]),
    )


def _place(told: Sequence[Any]) -> Dim3:
    x, y, z = map(int, told)
    return x, y, z


def _site(told: Sequence[Any]) -> Site:
    line, parts, space, op, stride, *counts = told
    instruction = Instruction(tuple(map(str, parts)), UNTOLD, UNTOLD, int(line))
    whole = [None if stride is None else int(stride), *map(int, counts)]
    counted: dict[str, Any] = dict(zip(COUNTS, whole, strict=True))
    return Site(instruction, str(space), str(op), **counted)


def _numbers(told: Any) -> np.ndarray:
    """Return the array of whole numbers that a reply holds. Raises TypeError for anything else."""
    if not isinstance(told, np.ndarray) or told.dtype.kind not in "iu":
        raise TypeError("no whole numbers")
    return told


class _Untold:
    """In the place of what a sandbox does not hand out. Whoever reads it makes a mistake, and raises that."""

    def _refuse(self, *_: object) -> NoReturn:
        raise NotImplementedError("the sandbox does not hand this out: a criterion cannot go by it")

    __bool__ = __call__ = __eq__ = __getitem__ = __hash__ = __iter__ = __len__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()


UNTOLD: Any = _Untold()
