"""Criteria for what stands around a kernel: a verdict on a launch, a comparison of results, a clock."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from labkit import simt
from labkit.core.errors import InvalidAccess
from labkit.course.criteria.model_gpu import ModelGpu
from labkit.course.criteria.python import called, kind_of, number_of, shown
from labkit.course.drawn import fresh, further, generator
from labkit.course.exercise import Unmet, criterion

# A verdict on a launch: right, wrong or refused.

_COPY = """extern "C" __global__ void copy(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
extern "C" __global__ void turned(const float* in, float* out, int n)
{
    if (threadIdx.x < n) out[threadIdx.x] = in[n - 1 - threadIdx.x];
}
extern "C" __global__ void one_off(const float* in, float* out, int n)
{
    if (threadIdx.x < n) out[threadIdx.x] = in[threadIdx.x] + (threadIdx.x == n / 2);
}
extern "C" __global__ void part(const float* in, float* out, int n)
{
    if (threadIdx.x + 1 < n) out[threadIdx.x] = in[threadIdx.x];
}
extern "C" __global__ void idle(const float* in, float* out, int n) {}
extern "C" __global__ void outside(const float* in, float* out, int n) { out[n + threadIdx.x] = 0; }
"""


@dataclass(frozen=True)
class Trial:
    """A launch to be judged: what the student is told, a kernel of _COPY, the right verdict, and a hint.

    Its one block has `threads`. `out` holds a right result before the launch, unless it `is_fresh`; every
    right element is `each`, where that is given.
    """

    told: str
    kernel: str
    verdict: str
    hint: str
    threads: int = 64
    each: float | None = None
    is_fresh: bool = False

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return `out` before the launch, and what is expected there after it."""
        rng = generator(self)
        various = np.arange(1, 65) if rng is None else rng.integers(1, 1000, rng.integers(33, 65))
        various = various.astype(np.float32)
        expected = various if self.each is None else np.full_like(various, self.each)
        return np.full_like(expected, -1) if self.is_fresh else expected.copy(), expected

    def launch(self, out: np.ndarray, expected: np.ndarray) -> None:
        """Fill `out` from `expected` as this trial does; both are float32 of one length."""
        kernel = simt.RawModule(code=_COPY).get_function(self.kernel)
        kernel(1, self.threads, (expected, out, np.int32(len(out))))


@criterion("{text}")
def verdicts(verdict: Callable[..., Any], text: str, *trials: Trial) -> None:
    """Ask that `verdict(launch, out, expected)` gives each trial's verdict."""
    rng = generator(trials)
    # Also not in the order that is stated, and one of them twice.
    order = trials if rng is None else [trials[at] for at in rng.permutation([*range(len(trials)), 0])]
    for trial in order:
        put = _judge(verdict, trial)
        if trial.kernel == "idle" and trial.each is None and put is not None:
            told = (
                f"a kernel that writes nothing, where every right element is {put:g}, as you have put there"
            )
            _judge(
                verdict,
                replace(trial, told=told, each=put, hint=f"{STALE} {put:g} can be a result; NaN cannot."),
            )


def _judge(verdict: Callable[..., Any], trial: Trial) -> float | None:
    """Raise Unmet unless `verdict` is that of a trial. Return what stood in all of `out` at the launch.

    That is None where the elements differ, and where the value is no number of an ordinary size.
    """
    out, expected = trial.arrays()
    before = []

    def launch() -> None:
        before.append(out.copy())
        trial.launch(out, expected)

    got = called(verdict, launch, out, expected.copy())
    if not isinstance(got, str) or got != trial.verdict:
        hint = NOT_REFUSED if isinstance(got, str) and got == "refused" else trial.hint
        if not isinstance(got, str) or got not in VERDICTS:
            hint = "Return one of the three words " + ", ".join(map(repr, VERDICTS)) + "."
        raise Unmet(f"{trial.told}: the verdict is {shown(got)}.\n{hint}")
    put = before[0] if before else expected
    return float(put[0]) if abs(put[0]) < ORDINARY and (put == put[0]).all() else None


ORDINARY = 1e6
VERDICTS = ("right", "wrong", "refused")
WRITTEN = "Every element is right. Do you look at the array that the kernel writes?"
STALE = (
    "out may still hold the result of an earlier launch. Before the launch, fill it with a value that no "
    "right result can have."
)
NOT_REFUSED = "The launch was not refused: it has run. A refused one raises labkit.simt.LaunchError."
ELEMENTS = "An element is wrong. Compare each element of out with the same element of expected: all of them."
ASK = "Nothing was computed. A refused launch raises labkit.simt.LaunchError: catch it, and return refused."


_OUTSIDE = Trial("", "outside", "", "")


@criterion("any other error gets through")
def others_get_through(verdict: Callable[..., Any]) -> None:
    """Ask that the InvalidAccess of a launch leaves `verdict`."""
    out, expected = _OUTSIDE.arrays()
    try:
        got = verdict(partial(_OUTSIDE.launch, out, expected), out, expected)
    except InvalidAccess:
        return
    except (Exception, SystemExit) as error:
        raise Unmet(f"For an access outside out it raises {kind_of(error)}: {error}") from None
    raise Unmet(
        f"A launch writes outside out and raises InvalidAccess: the verdict is {got!r}.\n"
        "The numbers are not wrong, and the launch was not refused. Catch LaunchError alone, so that every "
        "other error reaches the reader."
    )


# A comparison: when do two products agree?


def _product(A: np.ndarray, B: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return A @ B in float32, its terms added up in that order."""
    return np.cumsum(A[:, order].T[:, :, None] * B[order][:, None, :], axis=0, dtype=np.float32)[-1]


@dataclass(frozen=True)
class Factors:
    """A and B with elements up to `scale`, and K terms per sum.

    With `cancels` every sum is 0; with `small_row` the elements of row 5 of A are ten thousand times smaller.
    With `positive` no term is negative; with `small_term` the last term of each sum is much smaller, too.
    With `alike` all terms of a sum are equal, so that roundings do not cancel.
    """

    K: int = 400
    scale: float = 1
    cancels: bool = False
    small_row: bool = False
    positive: bool = False
    small_term: bool = False
    alike: bool = False

    def matrices(self, use: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return A, B and their product in float64; each use has numbers of its own."""
        rng = np.random.default_rng(fresh(self.K, use))
        least = NEARLY if self.small_term else 0 if self.positive else -1
        A, B = (self.scale * rng.uniform(least, 1, shape) for shape in ((12, self.K), (self.K, 10)))
        A[5] *= 1e-4 if self.small_row else 1
        A[:, -1] *= SMALL if self.small_term else 1
        if self.alike:
            A[:], B[:] = A[:, :1], B[:1]
        A, B = A.astype(np.float32), B.astype(np.float32)
        if self.cancels:
            A[:, self.K // 2 :], B[self.K // 2 :] = A[:, : self.K // 2], -B[: self.K // 2]
        return A, B, A.astype(np.float64) @ B

    def __str__(self) -> str:
        kinds = {
            ", every sum is 0": self.cancels,
            ", smaller ones in row 5": self.small_row,
            ", no term is negative": self.positive,
            ", of which one is small": self.small_term,
            ", all terms of a sum alike": self.alike,
        }
        return f"K={self.K}, elements up to {self.scale:g}{''.join(what for what in kinds if kinds[what])}"


# A term of this part of a sum of two is a hundred times what rounding does to it. Its factors are nearly 1.
SMALL, NEARLY = 6.5e-6, 0.95
Spoil = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Result:
    """What a comparison is asked about, `told` in words. Right ones have `order`, wrong ones `spoil`."""

    factors: Factors
    told: str
    spoil: Spoil = _product
    order: str = "any"

    @property
    def is_right(self) -> bool:
        """Return True where rounding explains the result."""
        return self.spoil is _product

    def ask(self, agrees: Callable[..., Any], use: str) -> None:
        """Raise Unmet unless `agrees` tells what the result is. Each use has its own numbers and order."""
        A, B, expected = self.factors.matrices(use)
        rng = np.random.default_rng(fresh(0, f"order {use}"))
        forwards = np.arange(self.factors.K)
        orders = {"forwards": forwards, "backwards": forwards[::-1], "any": rng.permutation(forwards)}
        got = self.spoil(A, B, orders[self.order])
        rows, cols = rng.permutation(len(A))[:, None], rng.permutation(B.shape[1])
        verdict = _verdict(agrees, got[rows, cols], expected[rows, cols], A[rows[:, 0]], B[:, cols])
        if verdict == self.is_right:
            return
        off = np.abs(got - expected)
        if self.is_right:
            raise Unmet(
                f"A right result is rejected: {self.factors}, {self.told}. "
                f"It is off by at most {off.max():.2g}.\n{BOUND}"
            )
        far, why = (f" It is off by {off.max():.2g}.", BOUND) if np.isfinite(off).all() else ("", NAN)
        raise Unmet(f"A wrong result passes: {self.told} {self.factors}.{far}\n{why}")


ORDERS = {"forwards": "from first to last", "backwards": "from last to first", "any": "in some order"}


def right(*cases: Factors) -> tuple[Result, ...]:
    """Return right results, their terms added up in each of ORDERS."""
    return tuple(
        Result(factors, f"terms added up {told}", order=order)
        for factors in cases
        for order, told in ORDERS.items()
    )


def wrong(spoil: Spoil, what: str, *cases: Factors) -> tuple[Result, ...]:
    """Return results that `spoil` makes of A and B."""
    return tuple(Result(factors, what, spoil) for factors in cases)


def _another(rng: np.random.Generator, base: Result) -> Result:
    """Draw another scale and, for some hundred terms, another K: an even one, as halves may cancel."""
    factors, K = base.factors, base.factors.K
    if 8 < K < 1000:
        K = 2 * int(rng.integers(K // 3, K * 2 // 3))
    scale = float(f"{factors.scale * 10 ** rng.uniform(-0.5, 0.5):.2g}")
    return replace(base, factors=replace(factors, K=K, scale=scale))


@criterion("{text}")
def tells(agrees: Callable[..., Any], text: str, *results: Result) -> None:
    """Ask that right results pass, and wrong ones do not.

    There should be some of both kinds. Inside `drawn` they come in any order, and a few of them twice: who
    counts calls, or knows an earlier result again, learns nothing.
    """
    rng = generator("order", text)
    asked = further(results, _another, count=2)
    if rng is not None:
        again = rng.integers(len(asked), size=rng.integers(1, 4))
        asked = [asked[at] for at in rng.permutation([*range(len(asked)), *again])]
    for number, result in enumerate(asked):
        result.ask(agrees, f"{text} {number}")


def _verdict(agrees: Callable[..., Any], *given: np.ndarray) -> bool:
    verdict = called(agrees, *given)
    if isinstance(verdict, bool | np.bool_):
        return bool(verdict)
    if isinstance(verdict, np.ndarray) and verdict.ndim:
        raise Unmet(f"It returns an array of shape {verdict.shape}. Return one True or False, with .all().")
    raise Unmet(f"It returns {shown(verdict)}. Return True or False.")


def lost_term(A: np.ndarray, B: np.ndarray, order: np.ndarray, sign: int = 1) -> np.ndarray:
    """Return A B where one element lacks a term of this sign: that of middling size; of few the smallest."""
    got = _product(A, B, order)
    terms = A[5] * B[:, 3]
    own = np.sort(sign * terms[sign * terms > 0])
    got[5, 3] -= sign * own[len(own) // 2 if len(terms) > FEW else 0]
    return got


def half_sum(A: np.ndarray, B: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return A B with sums that are kept in 16 bits."""
    total = np.zeros((len(A), B.shape[1]), np.float16)
    for k in order:
        total = (total + A[:, k, None] * B[k]).astype(np.float16)
    return total.astype(np.float32)


def with_one(value: float, A: np.ndarray, B: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return A B with one element of that value, as a wrong kernel leaves NaN."""
    got = _product(A, B, order)
    got[7, 2] = value
    return got


def negated(A: np.ndarray, B: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return -A B, which no bound lets pass."""
    return -_product(A, B, order)


FEW = 8  # terms
RIGHT = right(Factors())[-1:]  # beside wrong results
WRONG = wrong(negated, "all signs are wrong.", Factors())  # beside right results

BOUND = (
    "Rounding grows with the number of terms K and with their sizes, not with the sum: a bound is "
    "K * 2**-24 * (abs(A) @ abs(B)), element by element, or a small multiple of it."
)
NAN = "Every comparison with NaN is False. Ask whether all differences are small, not whether one is large."

# A clock: how long does a launch take?


@criterion("{text}")
def times(time_ms: Callable[..., Any], text: str, hint: str, *settings: dict[str, float]) -> None:
    """Ask for the kernel's time on each ModelGpu, within 2 %."""
    for setting in further(settings, _other_setting):
        model = ModelGpu(**setting)
        got = called(time_ms, model.launch, model.synchronize, model.clock)
        ms = number_of(got)
        if ms is None:
            raise Unmet(f"It returns {got!r}. Return a number, in milliseconds.")
        if not abs(ms - model.kernel_ms) <= 0.02 * model.kernel_ms:
            what = ", ".join(f"{name}={value:g}" for name, value in setting.items())
            raise Unmet(
                f"ModelGpu({what}): it returns {ms:.4g}; the kernel takes {model.kernel_ms:g} ms."
                f"\n{_why(ms / model.kernel_ms, hint)}"
            )


def _other_setting(rng: np.random.Generator, base: dict[str, float]) -> dict[str, float]:
    return {name: round(value * rng.uniform(0.6, 1.6), 1) for name, value in base.items()}


def _why(ratio: float, hint: str) -> str:
    """Return the hint for a time that is too short, or `hint` for one that is too long."""
    for power, unit in ((-1, "seconds"), (1, "microseconds")):
        if abs(ratio / 1000.0**power - 1) < 0.02:
            return f"That is {unit}. Return milliseconds."
    return UNFINISHED if ratio < 1 else hint


UNFINISHED = (
    "launch() returns as soon as the kernel is in the queue, after 0.005 ms. Read clock() again when the "
    "kernel has ended: synchronize() waits for that. clock() counts seconds."
)
EARLIER = (
    "Other work was in the queue, and you waited for it, too. Begin with an empty queue, and read the clock "
    "again after one launch."
)
FIRST = "The first launch also loads the kernel's code. Launch once before you read the clock."
