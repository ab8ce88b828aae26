"""Criteria for whole programs: what one computes on the GPU, prints, how it ends, and what a check finds.

A program runs in the simulator on every machine, and its times are those predicted for one GPU. Criteria go
by the simulator's record of what it did; what it prints has to agree with that.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from labkit.course.exercise import Unmet, criterion
from labkit.course.fresh_inputs import fresh, further, one_of
from simt.programs.program import AnyProgram, Mode, Outcome
from simt.programs.recording import Arrays, Launched, Record
from simt.programs.server.memory import HOST_START

GPU, GPUS = "H200", ("H200", "H100 SXM5", "H100 PCIe")  # whose times are predicted: stated, and drawn
SECONDS = 20.0  # a run may take
_NUMBER = r"\s*(-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
TICK = 1e-9  # seconds: times of the model are sums of floats
_SHOWN = 8  # lines of what a program prints

Args = tuple[int, ...]
Draw = Callable[[np.random.Generator, Args], Args]


class ProgramRun(NamedTuple):
    """A run as a student would type it, and what came of it."""

    shown: str
    outcome: Outcome
    record: Record

    def unmet(self, why: str, hint: str = "") -> Unmet:
        """Return the failure of a criterion: the run, why, what the program printed, and a hint."""
        printed = [*self.outcome.stdout.splitlines(), *self.outcome.stderr.splitlines()]
        shown = "\n".join(f"    {line[:150]}" for line in printed[:_SHOWN]) or "    (nothing)"
        return Unmet(f"{self.shown}: {why}\nIt prints\n{shown}" + f"\n{hint}" * bool(hint))


class Work(NamedTuple):
    """What a kernel of a program has to compute: float32 numbers, all launches together `result(*args)`.

    From `inputs` of the arrays behind its pointers, a launch computes `formula(args, *inputs)`, or the first
    numbers of that: a part of the result.
    """

    kernel: str
    result: Callable[..., np.ndarray]
    formula: Callable[..., np.ndarray]
    inputs: int


class Part(NamedTuple):
    """What a launch has computed: the address, the numbers, and how many at most it has changed."""

    start: int
    numbers: np.ndarray
    changed: int


def part_of(work: Work, args: Args, arrays: Sequence[Arrays]) -> Part | None:
    """Return what a launch has computed, by what its arrays held before and after; None for something else.

    Which pointer is which input follows from the numbers: a program may change the order of parameters.
    """
    before, after = ([_as_floats(getattr(each, when)) for each in arrays] for when in ("before", "after"))
    changed = [_last_change(was, now) for was, now in zip(before, after, strict=True)]
    best = None
    for inputs in product(before, repeat=work.inputs):
        size = min((each.size for each in inputs), default=0)
        expected = work.formula(args, *(each[:size] for each in inputs)).astype(np.float32)
        for array, now, most in zip(arrays, after, changed, strict=True):
            differs = np.flatnonzero(now[: expected.size] != expected[: now.size])
            right = int(differs[0]) if differs.size else min(now.size, expected.size)
            if most <= right and (best is None or right > best.numbers.size):
                best = Part(array.start, now[:right], most)
    return best


def _last_change(was: np.ndarray, now: np.ndarray) -> int:
    """Return how many numbers lie up to the last one whose bits have changed."""
    changes = np.flatnonzero(now.view(np.uint32) != was.view(np.uint32))
    return int(changes[-1]) + 1 if changes.size else 0


def ran(program: AnyProgram, args: Args, mode: Mode = "run", gpu: str = GPU) -> ProgramRun:
    """Run a program with arguments. Raises Unmet where it does not come to its end."""
    words = [str(each) for each in args]
    seed, variables = fresh(1, f"{mode} {words}"), {"LABKIT_GPU": gpu}
    outcome = program.run(*words, mode=mode, timeout=SECONDS, variables=variables, record=seed)
    nothing = Record(ended=False, is_whole=True, gpu=gpu, found=[])
    shown = f"./program {shlex.join(words)}" + f" (mode {mode})" * (mode != "run")
    run = ProgramRun(shown, outcome, outcome.record or nothing)
    if outcome.timed_out:
        raise run.unmet(f"it has not ended after {SECONDS:g} s and was stopped.")
    if outcome.code > 128:
        raise run.unmet(f"it was ended by signal {outcome.code - 128}.")
    if not run.record.is_whole:
        raise run.unmet("it launches more kernels, or makes more calls, than the check looks at.")
    return run


def drawn_gpu() -> str:
    """Return the GPU whose times are predicted."""
    return one_of(GPU, GPUS)


def succeeded(program: AnyProgram, args: Args, gpu: str = GPU) -> ProgramRun:
    """Run a program with arguments. Raises Unmet where its exit code is not 0."""
    run = ran(program, args, gpu=gpu)
    if run.outcome.code:
        raise run.unmet(f"its exit code is {run.outcome.code}; a program that succeeds returns 0.")
    return run


def number(run: ProgramRun, name: str) -> float:
    """Return the number behind `name:` in what a program prints. Raises Unmet where there is none."""
    found = re.findall(rf"\b{re.escape(name)}:{_NUMBER}", run.outcome.stdout)
    if not found:
        raise run.unmet(f'it does not print a line such as "{name}: 12.5".')
    return float(found[-1])


# What a run computes on the GPU.


def launches_of(run: ProgramRun, kernel: str, hint: str = "") -> list[Launched]:
    """Return the launches of a kernel that succeeded. Raises Unmet where there is none."""
    found = [each for each in run.record.launches if each.kernel == kernel and not each.code]
    if not found:
        raise run.unmet(f"no launch of the kernel {kernel} succeeds.", hint)
    return found


def computed(run: ProgramRun, args: Args, work: Work, hint: str = "") -> None:
    """Raise Unmet unless launches of the kernel compute the result, and it comes from them to the host."""
    parts: list[Part] = []
    expected = work.result(*args).astype(np.float32)
    for launch in launches_of(run, work.kernel, hint):
        if launch.arrays is None:
            raise run.unmet(f"the arrays of {work.kernel} are larger than the check looks at.")
        part = part_of(work, args, launch.arrays)
        if part is None:
            raise run.unmet(f"a launch of {work.kernel} computes something else than the result.", hint)
        parts.append(part)
    stretches = _regions([(part.start, part.numbers.view(np.uint8)) for part in parts])
    in_a_row = any(_contains(stretch, expected) for stretch in stretches)
    if not in_a_row and not _holds([part.numbers for part in parts], expected):
        raise run.unmet(f"the launches of {work.kernel} do not compute the whole result.", hint)
    if not _reaches_host(run.record, expected):
        raise run.unmet("the result is not copied from the GPU to the host.", hint)


def _as_floats(contents: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(contents[: contents.size // 4 * 4]).view(np.float32)


def _holds(parts: Sequence[np.ndarray], expected: np.ndarray) -> bool:
    """Say whether parts, one behind the other, make the expected array; what does not fit is left out."""
    at = 0
    for part in parts:
        if part.size and np.array_equal(part, expected[at : at + part.size]):
            at += part.size
    return at >= expected.size or any(np.array_equal(part, expected) for part in parts)


def _reaches_host(record: Record, expected: np.ndarray) -> bool:
    """Say whether copies, or kernels that write to memory of the host, bring the expected numbers there."""
    first = min((each.at for each in record.launches), default=0)
    copies = [
        (each.to, each.contents) for each in record.copies if each.at > first and each.contents is not None
    ]
    of_host = [
        array.after
        for launch in record.launches
        for array in launch.arrays or ()
        if array.start >= HOST_START
    ]
    return _holds([_as_floats(contents) for _, contents in copies], expected) or any(
        _contains(memory, expected) for memory in (*_regions(copies), *of_host)
    )


def _regions(pieces: Sequence[tuple[int, np.ndarray]]) -> Iterator[np.ndarray]:
    """Put pieces (address, bytes) where they lie, later ones over earlier ones; return gapless stretches."""
    stretches: list[list[int]] = []
    for begin, end in sorted((to, to + contents.size) for to, contents in pieces):
        if stretches and begin <= stretches[-1][1]:
            stretches[-1][1] = max(end, stretches[-1][1])
        else:
            stretches.append([begin, end])
    for begin, end in stretches:
        stretch = np.zeros(end - begin, np.uint8)
        for to, contents in pieces:
            if begin <= to < end:
                stretch[to - begin : to - begin + contents.size] = contents
        yield stretch


def _contains(contents: np.ndarray, expected: np.ndarray) -> bool:
    """Say whether bytes hold these numbers in a row."""
    return expected.tobytes() in contents.tobytes()


@criterion("{text}")
def prints(
    program: AnyProgram,
    text: str,
    *cases: Args,
    by: Work,
    of: Callable[..., float],
    draw: Draw,
    hint: str,
    name: str = "sum",
    relative: float = 1e-6,
) -> None:
    """Ask that for each case, its arguments, the program prints `name: value` with the value `of(*args)`, and
    that the kernel computes what the value is of.
    """
    for args in further(cases, draw):
        run = succeeded(program, args)
        got, expected = number(run, name), of(*args)
        if not abs(got - expected) <= relative * max(1, abs(expected)):
            raise run.unmet(f"{name} is {got:.10g}; it should be {expected:.10g}.", hint)
        computed(run, args, by, hint)


@criterion("{text}")
def computes(program: AnyProgram, text: str, *cases: Args, work: Work, draw: Draw, hint: str) -> None:
    """Ask that the kernel, launched as the program launches it, computes the same of other numbers."""
    for args in further(cases, draw):
        run = succeeded(program, args)
        for launch in launches_of(run, work.kernel, hint):
            if isinstance(launch.tried, str):
                raise run.unmet(f"on other numbers, {work.kernel} fails: {launch.tried}", hint)
            if launch.tried is None or launch.arrays is None:
                continue
            real, other = (part_of(work, args, arrays) for arrays in (launch.arrays, launch.tried))
            if real is None or other is None or other.numbers.size < max(1, real.changed):
                raise run.unmet(
                    f"on other numbers, {work.kernel} does not compute the result of these.", hint
                )


@criterion("{text}")
def fails(
    program: AnyProgram,
    text: str,
    *cases: Args,
    draw: Draw,
    code: int,
    message: str,
    hint: str,
    silent: str = "sum",
) -> None:
    """Ask that the program ends with exit code 1, `message` on stderr, and no result `silent`, since a launch
    has failed with CUDA's error `code` and another call has returned it.
    """
    for args in further(cases, draw):
        run = ran(program, args)
        if f"{silent}:" in run.outcome.stdout:
            raise run.unmet(f'it prints a result, and there is none: CUDA says "{message}".', hint)
        if run.outcome.code != 1:
            raise run.unmet(f"its exit code is {run.outcome.code}; it should be 1.", hint)
        if message not in run.outcome.stderr:
            raise run.unmet(f'stderr does not say "{message}".', hint)
        failed = [each for each in run.record.returned if each.code == code]
        has_failed = any("Launch" in each.function for each in failed) or any(
            each.code == code for each in run.record.launches
        )
        if not has_failed:
            raise run.unmet(f'it launches no kernel that fails with "{message}".', hint)
        if all("Launch" in each.function for each in failed):
            raise run.unmet("it never asks CUDA for the error of the launch.", hint)


@criterion("{text}")
def no_mistake(
    program: AnyProgram,
    text: str,
    *cases: Args,
    draw: Draw,
    hints: dict[str, str],
    by: Work,
    kinds: Sequence[str] = (),
) -> None:
    """Ask that a checked run finds nothing, or nothing of these `kinds`; `hints` are by kind.

    A program without the kernel in which a mistake is to be found has not mended it.
    """
    for args in further(cases, draw):
        run = ran(program, args, mode="check")
        found = [(kind, told) for kind, told in run.record.found if not kinds or kind in kinds]
        if found:
            kind, told = found[0]
            raise Unmet(
                f"{run.shown}: {len(found)} found, the first\n    {kind}: {told}\n"
                f"{hints.get(kind, '')}".rstrip()
            )
        if not run.record.ended:
            raise run.unmet("it ended before the check could say what it found.")
        launches_of(run, by.kernel)
        if not kinds:
            computed(run, args, by)


# Times by events.


def timed(run: ProgramRun, kernel: str, hint: str, name: str = "ms") -> float:
    """Return the milliseconds that a program prints. Raises Unmet unless they are what cudaEventElapsedTime
    gave, or the mean over the launches of the kernel between the events.
    """
    got, launched = number(run, name), launches_of(run, kernel)
    for each in run.record.elapsed:
        between = sum(each.started < launch.at < each.stopped for launch in launched)
        if any(_is_near(got * count, each.ms) for count in {1, between}):
            return got
    raise _unlike(run, got, name, hint)


def timed_whole(run: ProgramRun, hint: str, name: str = "ms") -> float:
    """Return the milliseconds that a program prints. Raises Unmet unless they lie between two events around
    all copies and kernels, in every stream.
    """
    got, spans = number(run, name), run.record.spans
    found = [each for each in run.record.elapsed if _is_near(got, each.ms)]
    if not found:
        raise _unlike(run, got, name, hint)
    begin, end = min(each.begin for each in spans), max(each.end for each in spans)
    if not any(each.begin <= begin + TICK and each.end >= end - TICK for each in found):
        raise run.unmet(
            f"{name} is {got:.4g}; from the first copy to the end of the last, in all streams, it is "
            f"{1e3 * (end - begin):.4g} ms.",
            hint,
        )
    return got


def _is_near(printed: float, ms: float) -> bool:
    return abs(printed - ms) <= 1e-3 * abs(ms)


def _unlike(run: ProgramRun, got: float, name: str, hint: str) -> Unmet:
    told = ", ".join(f"{each.ms:.4g}" for each in run.record.elapsed[:3]) or "no"
    return run.unmet(f"{name} is {got:.4g}; cudaEventElapsedTime gave {told} ms.", hint)
