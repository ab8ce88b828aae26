"""Inside a sandbox: run an answer as the judge outside asks, and hand out what it gives.

A check cell calls `serve`. A request names an operation and its arguments; the reply holds values, never a
verdict: expected results and goals are not known here.
"""

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import simt
from grader.sandbox.native import run_outside
from grader.sandbox.wire import Callback, Channel
from labkit import magic
from labkit.answers import answer_line, borrowing
from labkit.c.function import CFunction
from labkit.c.run import elsewhere
from labkit.kernels.matmul.family import Matmul
from labkit.model.doubled import doubled
from labkit.model.sampled import Contents, tried
from simt.common.errors import SimtError
from simt.counters.profile import Profile, Site
from simt.programs.program import Program, Unbuilt

SOCKET = "LABKIT_JUDGE"  # environment: where the judge listens
MOST_TOLD = 20_000  # characters of an error

COUNTS = (
    *("stride", "instructions", "active", "branches", "divergent", "requests", "threads", "sectors"),
    *("passes", "conflicts", "useful_bytes", "used_bytes", "turns"),
)


def serve(exercise: str = "") -> None:
    """Answer the judge's requests, on the answer to `exercise` if there is one, until it has no more."""
    with socket.socket(socket.AF_UNIX) as connected:
        connected.connect(os.environ[SOCKET])
        channel = Channel(connected)
        bench = _ProbeServer(channel, magic.answers.get(exercise))
        # What the answer prints while it is judged, nobody reads, and it would count as shown.
        with (
            elsewhere(partial(run_outside, channel)),
            Path(os.devnull).open("w") as nowhere,
            redirect_stdout(nowhere),
        ):
            while (request := channel.receive()) is not None:
                channel.send(bench.reply(request))


class _ProbeServer:
    """What has been made of the answer, by number; 0 is the answer itself."""

    def __init__(self, channel: Channel, answer: Any) -> None:
        self._channel, self._made = channel, [answer]

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        operation: Callable[..., Any] = getattr(self, f"do_{request.pop('do')}")
        try:
            return {"value": operation(**request)}
        except Exception as error:
            return {"error": told(error, self._made[0])}

    def do_describe(self) -> dict[str, Any]:
        """Say what kind of answer it is, and how it was compiled."""
        answer = self._made[0]
        if answer is None:
            return {"magic": ""}
        if isinstance(answer, simt.Kernel):
            module = answer.module
            made = {"code": module.code, "options": module.options, "expressions": module.name_expressions}
            return {"magic": "cuda", "name": answer.name, **made}
        if isinstance(answer, CFunction):
            made = {"source": answer.source, "options": answer.options, "declared": _declared(answer)}
            return {"magic": "c", "name": answer.name, **made}
        if isinstance(answer, Unbuilt):
            return {"magic": "program", "missing": answer.why}
        if isinstance(answer, Program):
            return {"magic": "program", "source": answer.source, "options": answer.options}
        return {"magic": "answer", "name": answer.__name__}

    # Kernels.

    def do_compile(self, code: str, options: Sequence[str], expressions: Sequence[str], name: str) -> int:
        module = simt.RawModule(code=code, options=options, name_expressions=expressions)
        return self._keep(module.get_function(name))

    def do_doubled(self, of: int) -> int:
        return self._keep(doubled(self._made[of]))

    def do_attributes(self, of: int) -> dict[str, int]:
        return self._made[of].attributes

    def do_resources(self, of: int, arch: str) -> dict[str, int]:
        return vars(self._made[of].resources_for(arch))

    def do_launch(self, of: int, args: list[Any], **launch: Any) -> dict[str, Any]:
        self._restarted(of)(args=args, **launch)
        return {"arrays": _arrays(args)}

    def do_check(self, of: int, args: list[Any], **launch: Any) -> dict[str, Any]:
        findings = self._restarted(of).check(args=args, **launch)
        return {"findings": [vars(finding) for finding in findings], "arrays": _arrays(args)}

    def do_profile(self, of: int, args: list[Any], **launch: Any) -> dict[str, Any]:
        profile: Profile = self._restarted(of).profile(args=args, **launch)
        sample = None if profile.sample is None else [profile.sample.numbers, profile.sample.total]
        return {
            "sites": [_plain(site) for site in profile.sites],
            "by_warp": list(profile.by_warp),
            "unasked_waits": list(profile.unasked_waits),
            "sample": sample,
            "shared_bytes": profile.launch.shared_bytes,
            "arrays": _arrays(args),
        }

    def do_predict(
        self, of: int, args: list[Any], arrays: Sequence[Sequence[Any] | None], **launch: Any
    ) -> dict[str, Any]:
        """Predict the time of a launch whose arrays have these shapes and types."""
        given = [arg if array is None else np.zeros(*array) for arg, array in zip(args, arrays, strict=True)]
        return _prediction(self._restarted(of).predict(args=given, **launch))

    def do_tried(
        self, of: int, args: list[Any], contents: Sequence[Sequence[Any] | None], **launch: Any
    ) -> dict[str, Any]:
        """Predict the time of a launch on drawn arrays, and hand out what some of its blocks write."""
        given = [
            arg if drawn is None else Contents(tuple(drawn[0]), *drawn[1:])
            for arg, drawn in zip(args, contents, strict=True)
        ]
        found = tried(self._made[of], args=given, **launch)
        written = {"blocks": list(found.blocks), "places": found.places, "values": found.values}
        return _prediction(found.predicted) | written

    def _restarted(self, of: int) -> Any:
        """Return a kernel whose module remembers no earlier launch."""
        self._made[of].module.restart()
        return self._made[of]

    def do_measured(
        self,
        code: str,
        options: Sequence[str],
        expressions: Sequence[str],
        name: str,
        problem: dict[str, Any],
        rungs: Sequence[str],
    ) -> dict[str, Any]:
        """Time the kernel and rungs on this machine's GPU, and say what is wrong with it."""
        from labkit.devices.select import RawModule
        from labkit.figures import own_product

        module = RawModule(code=code, options=options, name_expressions=expressions)
        times, wrong = own_product.measured(module.get_function(name), Matmul(**problem), *rungs)
        return {"rows": times.astype(object).where(times.notna(), None).to_dict("records"), "wrong": wrong}

    # Functions in C.

    def do_compile_c(self, source: str, name: str, options: Sequence[str]) -> dict[str, Any]:
        function = CFunction(source, name, options)
        return {"number": self._keep(function), "declared": _declared(function)}

    def do_compiled_c(self, of: int, how: str) -> dict[str, Any]:
        function = self._made[of].compiled(how)
        return {"number": self._keep(function), "options": function.options}

    def do_makes_vectors_c(self, of: int) -> bool:
        return self._made[of].makes_vectors()

    def do_call_c(self, of: int, args: list[Any], timeout: float) -> dict[str, Any]:
        return {"returned": self._made[of](*args, timeout=timeout), "arrays": _arrays(args)}

    def do_program_c(self, of: int, args: list[Any]) -> np.ndarray:
        """Return the program of the optimised build."""
        return np.frombuffer(self._made[of].program(*args), np.uint8)

    # Whole programs.

    def do_run_program(self, arguments: Sequence[str], **how: Any) -> dict[str, Any]:
        """Run the answer; return its exit code, as bytes what it prints, and the record of what it did."""
        outcome = self._made[0].run(*arguments, **how)
        texts = {name: _bytes(getattr(outcome, name)) for name in ("stdout", "stderr")}
        record = None if outcome.record is None else asdict(outcome.record)
        return texts | {"code": outcome.code, "timed_out": outcome.timed_out, "record": record}

    # Functions in Python.

    def do_call(self, args: list[Any]) -> dict[str, Any]:
        """Call the answer. Functions among the arguments are the judge's."""
        here = [self._stub(arg, args) if isinstance(arg, Callback) else arg for arg in args]
        with borrowing() as found:
            returned = self._made[0](*here)
        return {"returned": returned, "arrays": _arrays(args), "borrowed": found[0] if found else ""}

    def _stub(self, callback: Callback, args: list[Any]) -> Callable[..., Any]:
        """Make a function that has the judge call its own, which may change the arrays among `args`."""

        def call(*given: Any) -> Any:
            self._channel.send({"call": callback.number, "given": given, "arrays": _arrays(args)})
            reply = self._channel.receive()
            for mine, theirs in zip(args, reply["arrays"], strict=True):
                if isinstance(mine, np.ndarray):
                    mine[...] = theirs
            if "error" in reply:
                raise _ERRORS.get(reply["error"]["kind"], RuntimeError)(reply["error"]["message"])
            return reply["value"]

        return call

    def _keep(self, made: Any) -> int:
        self._made.append(made)
        return len(self._made) - 1


def _prediction(found: Any) -> dict[str, Any]:
    """Return a predicted time as plain values."""
    return {
        "times": [found.seconds, found.low, found.high],
        "confidence": found.confidence,
        "validated": found.validated,
        "parts": [[each.name, each.seconds, each.count, each.unit] for each in found.parts],
        "hit_rates": dict(found.hit_rates),
        "dram_bytes": found.dram_bytes,
    }


_ERRORS = {kind.__name__: kind for kind in SimtError.__subclasses__()} | {"SimtError": SimtError}


def told(error: Exception, answer: Any) -> dict[str, Any]:
    """Return an error as plain values: kind, message, finding, and its line in an answer in Python."""
    finding, log = getattr(error, "finding", None), getattr(error, "log", None)
    return {
        "kind": type(error).__name__,
        "message": str(error)[:MOST_TOLD],
        "finding": None if finding is None else vars(finding),
        "log": log and log[:MOST_TOLD],
        "line": answer_line(error, answer),
    }


def _declared(function: CFunction) -> list[Any]:
    """Return how the function is declared: only the sandbox reads the source."""
    return [function.function.name, list(function.function.parameters), function.function.static]


def _arrays(args: Sequence[Any]) -> list[np.ndarray | None]:
    """Return the arrays among arguments, in their places."""
    return [arg if isinstance(arg, np.ndarray) else None for arg in args]


def _bytes(text: str) -> np.ndarray:
    """Return a text as an array: a message has room for it."""
    return np.frombuffer(text.encode(), np.uint8)


def _plain(site: Site) -> list[Any]:
    counts = (getattr(site, name) for name in COUNTS)
    return [site.line, list(site.instruction.parts), site.space, site.op, *counts]
