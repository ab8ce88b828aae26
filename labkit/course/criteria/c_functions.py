"""Criteria for C functions `matmul(A, B, C, M, N, K)`: right and nothing outside the arrays, and fast.

Speed is that of another function timed in turns with the answer, in the same way and on arrays of the same
sizes: a ratio. Time is the processor's for that process alone, taken from outside it, and each product that
is timed has numbers of its own and is verified. Whoever else works on the machine makes a call slower, never
faster: so the fastest call counts, and who falls short is timed again before it is said.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import randrange
from typing import Any

import numpy as np

from labkit import cpu, kernels
from labkit.c.function import CFunction, accesses_source
from labkit.course import fresh_inputs
from labkit.course.criteria.hints import (
    NO_HINTS,
    Hints,
    is_untouched,
    known_mistake,
    of_places,
    of_terms,
    places,
)
from labkit.course.criteria.kernels import case
from labkit.course.criteria.launches import Wrong
from labkit.course.criteria.undisturbed import alone, refuse_if_busy
from labkit.course.exercise import Unmet, criterion
from labkit.cpu.cache_lines import Cache, missed
from labkit.kernels import verify as checks
from labkit.kernels.matmul.family import Matmul
from simt.common.compare import Mismatch
from simt.common.errors import InvalidAccess, SimtError

Size = tuple[int, int, int]  # M, N, K

ROUNDS, CALLS, ATTEMPTS = 3, 4, 4
AGREED = 1.25  # two times of the same function that are no further apart
NEAR = 1.15  # whoever falls short by more does so on a machine that is not busy, too
GAIN = 1.5  # times as fast, from which on it is said that the compiler's own vectors made it so
YOURS = "yours"
MOST_LINES, LINES_OF_B = 2**22, 2**29  # that are written down; from here on: B's, see accesses.c
# One element; around a vector and a block; no two sizes alike; several blocks and a rest; a row, and a
# column, longer than an array of 1024 that an answer may keep.
ANY_SHAPE = (
    *((1, 1, 1), (7, 7, 7), (31, 31, 31), (33, 33, 33), (45, 29, 67), (100, 17, 333), (20, 333, 70)),
    *((3, 1301, 5), (2, 37, 1303)),
)
# All three arrays end with a cache line, so that the build which is timed ends there, too; 8 divides no N.
WHOLE_LINES = ((16, 9, 16), (16, 15, 32), (32, 39, 16))

BUSY = "The times of the same loops differ: this machine was busy with something else. Run the check again."
BY_ITSELF = (
    "Here the compiler does not make SIMD instructions of a loop by itself, as that is not what the exercise "
    "asks for: it asks for vectors that you write, as a vec or with _mm256_… functions."
)
MISALIGNED = (
    "A row has N floats, so rows begin at a multiple of 32 bytes only where 8 divides N. Load and store at "
    "any address: a vec with aligned(4), or _mm256_loadu_ps and _mm256_storeu_ps."
)


@criterion("{text}")
def right_in_c(function: CFunction, text: str, *sizes: Size, hints: Hints = NO_HINTS) -> None:
    """Ask for right results for matrices of `sizes`, and that nothing is read or written outside them.

    The function runs once on each, watched by sanitizers where there are any, and then the build that is
    timed: once with arrays that end where no memory is, once with arrays that begin there.
    """
    matmul = named(function, "matmul")
    problems = [Matmul(M, N, K) for M, N, K in fresh_inputs.sizes(sizes, fresh_inputs.TILES)]
    for problem in problems:
        verify(matmul, problem, hints)
    whole = [Matmul(*size) for size in WHOLE_LINES] if sizes == ANY_SHAPE else []
    verify_optimised(matmul, [*problems, *whole], hints)


def verify(matmul: CFunction, problem: Matmul, hints: Hints = NO_HINTS) -> None:
    """Raise Unmet unless the function is right on `problem`, and stays inside its arrays."""
    problem = fresh_inputs.numbers(problem)
    args = problem.inputs()
    try:
        matmul(*args, problem.M, problem.N, problem.K, timeout=checks.TIMEOUT)
        problem.verify(args[-1])
    except Mismatch as error:
        raise _wrong(str(problem), error, problem, args[-1], hints) from None
    except SimtError as error:
        raise _unmet(str(problem), error, _hint(error, hints)) from None


def verify_optimised(matmul: CFunction, problems: Sequence[Matmul], hints: Hints = NO_HINTS) -> None:
    """Raise Unmet unless the build that is timed is right on `problems`, too, each of them twice."""
    twice = [fresh_inputs.numbers(problem) for problem in problems for _ in range(2)]
    try:
        args = [(*problem.inputs(), *problem.sizes.values()) for problem in twice]
        matmul.make(args, timeout=checks.TIMEOUT)
    except SimtError as error:
        raise _unmet("In the optimised build, which is timed", error, _hint(error, hints)) from None
    for problem, given in zip(twice, args, strict=True):
        try:
            problem.verify(given[-4])
        except Mismatch as error:
            told = f"{problem}, in the optimised build, which is timed"
            raise _wrong(told, error, problem, given[-4], hints) from None


@criterion(
    "at least {goal:g} times as fast as {than}, for M = {problem.M}, N = {problem.N}, K = {problem.K}{simd}"
)
def faster_in_c(
    function: CFunction, goal: float, rung: str, than: str, problem: Matmul, *, hint: str, simd: str = ""
) -> None:
    """Ask that it is at least `goal` times as fast as the `rung` of cpu.RUNGS on `problem`.

    `than` is what the student calls the rung; `hint` ends the message. With `simd`, which says so in the
    criterion's text, vectors that the compiler makes of a loop by itself do not count: that is not asked.
    Then the rung is compiled in the vector notation in which students write. From that a compiler may make
    other instructions than from the intrinsics: without fused multiply-adds, one vector of sums is 1.5 times
    as fast on a Zen 5.
    """
    matmul = named(function, "matmul")
    pair = {
        YOURS: matmul.compiled("as written") if simd else matmul,
        than: rung_beside(function, rung, *(["-U__AVX2__"] if simd else ())),
    }
    verify(matmul, problem)
    best = fastest(pair, problem, lambda best: best[than] >= goal * best[YOURS])
    ratio = best[than] / best[YOURS]
    if ratio < goal:
        listed = ", ".join(f"{name} {time:.3g} ms" for name, time in best.items())
        short = f"It is {ratio:.1f} times as fast; the goal is {goal:g} times."
        by_itself = simd and best[YOURS] > GAIN * milliseconds({YOURS: matmul}, problem)[YOURS]
        raise Unmet(f"{problem}: {listed}\n{short}\n{BY_ITSELF if by_itself else hint}")
    if simd and not pair[YOURS].makes_vectors():
        raise Unmet(BY_ITSELF)


def fastest(
    functions: Mapping[str, CFunction], problem: Matmul, is_met: Callable[[Mapping[str, float]], bool]
) -> dict[str, float]:
    """Return the milliseconds of each function, timed in turns until `is_met` or ATTEMPTS are over.

    What else the machine does only adds to a time, so the least is the nearest to each one's own. Where even
    the two least of those that YOURS is held against differ, the machine was too busy to tell.
    """
    rounds: list[dict[str, float]] = []
    for _ in range(ATTEMPTS):
        rounds += [milliseconds(functions, problem) for _ in range(ROUNDS)]
        best = {name: min(each[name] for each in rounds) for name in functions}
        others = [time for each in rounds for name, time in each.items() if name != YOURS]
        if _agree(others) and is_met(best):
            return best
    if is_met(best | {YOURS: best[YOURS] / NEAR}):
        refuse_if_busy()
    if is_met(best):
        listed = ", ".join(f"{name}: {_listed([each[name] for each in rounds])} ms" for name in functions)
        raise Unmet(f"{problem}: {listed}\n{BUSY}")
    return best


def milliseconds(functions: Mapping[str, CFunction], problem: Matmul) -> dict[str, float]:
    """Take one round: the time of a call of each function, under its name. YOURS is verified."""
    times = {}
    for name, function in functions.items():
        problems = [replace(problem, seed=randrange(2**31)) for _ in range(CALLS)]
        args = [(*each.inputs(), *each.sizes.values()) for each in problems]
        with case(f"{problem}, {name}, in the optimised build"):
            with alone():
                times[name] = 1e3 * function.make(args, timeout=checks.TIMEOUT) / CALLS
            for each, given in zip(problems, args, strict=True):
                if name == YOURS:
                    each.verify(given[-4])
    return times


@dataclass(frozen=True)
class Fetches:
    """Cache lines of B that a function uses, and how often it fetches one."""

    lines_of_b: int
    of_b: int


def fetched(matmul: CFunction, problem: Matmul, lines: int) -> Fetches:
    """Return what a cache of so many lines fetches of B. It replaces the least recently used line.

    The accesses are those that the function makes: where the compiler can have it call a function for each.
    """
    traced = named(matmul, "labkit_traced", f"\n{accesses_source()}").compiled("accesses called")
    trace, count = np.zeros(MOST_LINES, np.uint32), np.zeros(1, np.int64)
    room = trace, np.int64(MOST_LINES), count
    traced.make([(*problem.inputs(), *problem.sizes.values(), *room)], timeout=checks.TIMEOUT)
    used = trace[: int(count[0])]
    is_b = used >= LINES_OF_B
    misses = missed(used, Cache(lines, lines)) if used.size else is_b
    return Fetches(len(np.unique(used[is_b])), int(misses[is_b].sum()))


def named(function: CFunction, name: str, behind: str = "") -> CFunction:
    """Return the function `name` of the same source, with C code put `behind` it. Raises CompileError."""
    if function.name == name and not behind:
        return function
    return function.variant(function.source + behind, name)


def rung_beside(answer: CFunction, rung: str, *options: str) -> CFunction:
    """Return a rung of cpu.RUNGS, to be timed as the answer is, and where it is."""
    return answer.variant(kernels.source_with_includes(cpu.RUNGS[rung]), "matmul", options)


def _agree(times: Sequence[float]) -> bool:
    least, second, *_ = sorted(times)
    return second <= AGREED * least


def _listed(times: Sequence[float]) -> str:
    return f"{min(times):.3g} to {max(times):.3g}"


def _unmet(what: str, error: Mismatch | SimtError, *hints: str) -> Unmet:
    return Unmet("\n".join(filter(None, (what, str(error), *hints))))


def _wrong(what: str, error: Mismatch, problem: Matmul, out: Any, hints: Hints) -> Unmet:
    """Make the error of a wrong result, with what its elements have in common."""
    wrong = Wrong(error, problem, out)
    seen = known_mistake(wrong, of_terms) or known_mistake(wrong, of_places) or places(wrong.where)
    fitting = (hints.untouched if is_untouched(wrong) else "") or hints.usual
    return _unmet(what, error, seen, fitting)


def _hint(error: SimtError, hints: Hints) -> str:
    """Return the hint that fits; none for what ends the function, as its message says enough."""
    if not isinstance(error, InvalidAccess):
        return ""
    if "is not a multiple of" in str(error):
        return MISALIGNED
    return (
        hints.out_of_bounds if re.search(r"(start|end) of (`|argument)", str(error)) else ""
    )  # not for a null or a wild pointer
