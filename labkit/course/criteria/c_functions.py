"""Criteria for C functions `matmul(A, B, C, M, N, K)`: right and nothing outside the arrays, and fast.

Speed is that of another function timed in turns with the answer, in the same way and on the same arrays: a
ratio. Whoever else works on the machine meets both, and makes a call slower, never faster: so the fastest
call of a round counts, and who falls short is timed again before it is said.
"""

from collections.abc import Mapping
from functools import singledispatch

from labkit import cpu, kernels
from labkit.c.function import CFunction
from labkit.core.compare import Mismatch
from labkit.core.errors import InvalidAccess, SimtError
from labkit.course import drawn
from labkit.course.criteria.kernels import NO_HINTS, Hints, case
from labkit.course.criteria.undisturbed import alone, refuse_if_busy
from labkit.course.exercise import Unmet, criterion
from labkit.kernels import verify as checks
from labkit.kernels.matmul.family import Matmul

Size = tuple[int, int, int]  # M, N, K

ROUNDS, SAMPLES, ATTEMPTS = 3, 3, 5
# One element; around a vector and a block; no two sizes alike; several blocks and a rest.
ANY_SHAPE = ((1, 1, 1), (7, 7, 7), (31, 31, 31), (33, 33, 33), (45, 29, 67), (100, 17, 333), (20, 333, 70))

MISALIGNED = (
    "A row has N floats, so rows begin at a multiple of 32 bytes only where 8 divides N. Load and store at "
    "any address: a vec with aligned(4), or _mm256_loadu_ps and _mm256_storeu_ps."
)


@criterion("{text}")
def right_in_c(function: CFunction, text: str, *sizes: Size, hints: Hints = NO_HINTS) -> None:
    """Ask for right results for matrices of `sizes`, and that nothing is read or written outside them.

    The function runs once on each, watched by sanitizers where there are any.
    """
    matmul = named(function, "matmul")
    for M, N, K in drawn.sizes(sizes, drawn.TILES):
        verify(matmul, Matmul(M, N, K), hints)


def verify(matmul: CFunction, problem: Matmul, hints: Hints = NO_HINTS) -> None:
    """Raise Unmet unless the function is right on `problem`, and stays inside its arrays."""
    problem = drawn.numbers(problem)
    args = problem.inputs()
    try:
        matmul(*args, problem.M, problem.N, problem.K, timeout=checks.TIMEOUT)
        problem.verify(args[-1])
    except (Mismatch, SimtError) as error:
        told = (str(problem), str(error), _hint(error, hints))
        raise Unmet("\n".join(filter(None, told))) from None


@criterion("at least {goal:g} times as fast as {than}, for M = {problem.M}, N = {problem.N}, K = {problem.K}")
def faster_in_c(
    function: CFunction, goal: float, rung: str, than: str, problem: Matmul, *, hint: str
) -> None:
    """Ask that it is at least `goal` times as fast as the `rung` of cpu.RUNGS on `problem`.

    `than` is what the student calls the rung; `hint` ends the message.
    """
    pair = {"yours": named(function, "matmul"), than: rung_beside(function, rung)}
    verify(pair["yours"], problem)  # nothing is as fast as doing nothing
    rounds: list[dict[str, float]] = []
    for _ in range(ATTEMPTS):
        rounds += [milliseconds(pair, problem) for _ in range(ROUNDS)]
        # What else the machine does only adds to a time, so the least is the nearest to each one's own.
        best = {name: min(each[name] for each in rounds) for name in pair}
        ratio = best[than] / best["yours"]
        if ratio >= goal:
            return
    refuse_if_busy()
    listed = ", ".join(f"{name} {time:.3g} ms" for name, time in best.items())
    raise Unmet(f"{problem}: {listed}\nIt is {ratio:.1f} times as fast; the goal is {goal:g} times.\n{hint}")


def milliseconds(functions: Mapping[str, CFunction], problem: Matmul) -> dict[str, float]:
    """Take one round: the time of the fastest of a few calls of each function, under its name."""
    times = {}
    for name, function in functions.items():
        with case(f"{problem}, {name}, in the optimised build"), alone():
            times[name] = fastest_call(function, problem)
    return times


@singledispatch
def fastest_call(function: CFunction, problem: Matmul) -> float:
    """Return the milliseconds of the fastest of a few calls. The grader times its own class another way."""
    args = (*drawn.numbers(problem).inputs(), *problem.sizes.values())
    return min(function.time(*args, samples=SAMPLES, timeout=checks.TIMEOUT).samples)


def named(function: CFunction, name: str, behind: str = "") -> CFunction:
    """Return the function `name` of the same source, with C code put `behind` it. Raises CompileError."""
    if function.name == name and not behind:
        return function
    return function.variant(function.source + behind, name)


def rung_beside(answer: CFunction, rung: str) -> CFunction:
    """Return a rung of cpu.RUNGS, to be timed as the answer is, and where it is."""
    return answer.variant(kernels.whole_source(cpu.RUNGS[rung]), "matmul", ())


def _hint(error: Mismatch | SimtError, hints: Hints) -> str:
    """Return the hint that fits; none for what ends the function, as its message says enough."""
    if isinstance(error, Mismatch):
        return hints.usual
    if not isinstance(error, InvalidAccess):
        return ""
    if "is not a multiple of" in str(error):
        return MISALIGNED
    return hints.out_of_bounds if "argument" in str(error) else ""  # not for a null or a wild pointer
