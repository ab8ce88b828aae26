"""Criteria for what stands around a kernel: a verdict on a launch, a comparison of results, a clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from labkit import simt
from labkit.core.errors import InvalidAccess
from labkit.course.criteria.model_gpu import ModelGpu
from labkit.course.criteria.python import called, kind_of, number_of
from labkit.course.drawn import fresh, further, generator
from labkit.course.exercise import Unmet, criterion

# A verdict on a launch: right, wrong or refused.

_COPY = """extern "C" __global__ void copy(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
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
        out, expected = trial.arrays()
        got = called(verdict, partial(trial.launch, out, expected), out, expected.copy())
        if not isinstance(got, str) or got != trial.verdict:
            hint = NOT_REFUSED if isinstance(got, str) and got == "refused" else trial.hint
            raise Unmet(f"{trial.told}: the verdict is {got!r}.\n{hint}")


WRITTEN = "Every element is what it should be. Is the array that you look at the one that the kernel writes?"
STALE = (
    "What stands in out may be left from an earlier launch. Before the launch, put something there that no "
    "right result can be."
)
NOT_REFUSED = "The launch was not refused: it has run. A refused one raises labkit.simt.LaunchError."
ASK = "Nothing was computed. A refused launch raises labkit.simt.LaunchError: catch it, and say so."


_OUTSIDE = Trial("", "outside", "", "")


@criterion("any other error gets through")
def others_get_through(verdict: Callable[..., Any]) -> None:
    """Ask that the InvalidAccess of a launch leaves `verdict`."""
    out, expected = _OUTSIDE.arrays()
    try:
        got = verdict(partial(_OUTSIDE.launch, out, expected), out, expected)
    except InvalidAccess:
        return
    except Exception as error:
        raise Unmet(f"Of an access outside out it makes {kind_of(error)}: {error}") from None
    raise Unmet(
        f"A launch writes outside out and raises InvalidAccess: the verdict is {got!r}.\n"
        "That is no verdict on numbers, and no refusal. Catch LaunchError alone, so that every other error "
        "reaches the reader."
    )


# A comparison: when do two products agree?


def _product(A: np.ndarray, B: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """Return A @ B in float32, its terms added up in that order."""
    total = np.zeros((len(A), B.shape[1]), np.float32)
    for k in order:
        total += A[:, k, None] * B[k]
    return total


@dataclass(frozen=True)
class Factors:
    """A and B with elements up to `scale`, and K terms per sum.

    With `cancels` every sum is 0; with `small_row` the elements of row 5 of A are ten thousand times smaller.
    """

    K: int = 400
    scale: float = 1
    cancels: bool = False
    small_row: bool = False

    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return A, B and their product in float64."""
        rng = np.random.default_rng(fresh(self.K))
        A, B = (self.scale * rng.uniform(-1, 1, shape) for shape in ((12, self.K), (self.K, 10)))
        A[5] *= 1e-4 if self.small_row else 1
        A, B = A.astype(np.float32), B.astype(np.float32)
        if self.cancels:
            A[:, self.K // 2 :], B[self.K // 2 :] = A[:, : self.K // 2], -B[: self.K // 2]
        return A, B, A.astype(np.float64) @ B

    def __str__(self) -> str:
        what = ", every sum is 0" if self.cancels else ", smaller ones in row 5" if self.small_row else ""
        return f"K={self.K}, elements up to {self.scale:g}{what}"


def _other_factors(rng: np.random.Generator, base: Factors) -> Factors:
    """Draw another scale and, unless it is 1, another K.

    K is even, as half of the terms may cancel the others.
    """
    K = base.K if base.K == 1 else 2 * int(rng.integers(base.K // 3, base.K * 2 // 3))
    return replace(base, K=K, scale=float(f"{base.scale * 10 ** rng.uniform(-0.5, 0.5):.2g}"))


@criterion("{text}")
def accepts(agrees: Callable[..., Any], text: str, *cases: Factors) -> None:
    """Ask that right results pass, added up forwards and backwards."""
    for factors in further(cases, _other_factors):
        A, B, expected = factors.matrices()
        forwards = range(factors.K)
        for how, order in (("first to last", forwards), ("last to first", forwards[::-1])):
            got = _product(A, B, order)
            if not _verdict(agrees, got, expected, A, B):
                raise Unmet(
                    f"A right result is rejected: {factors}, terms added up from {how}. It is off by at "
                    f"most {np.abs(got - expected).max():.2g}.\n{BOUND}"
                )


@criterion("{text}")
def rejects(
    agrees: Callable[..., Any], text: str, spoil: Callable[..., np.ndarray], what: str, *cases: Factors
) -> None:
    """Ask that `spoil(A, B)`, a wrong product, does not pass."""
    for factors in further(cases, _other_factors):
        A, B, expected = factors.matrices()
        got = spoil(A, B)
        if _verdict(agrees, got, expected, A, B):
            off = np.abs(got - expected)
            far, why = ("", NAN) if np.isnan(off).any() else (f" It is off by {off.max():.2g}.", BOUND)
            raise Unmet(f"A wrong result passes: {what} {factors}.{far}\n{why}")


def _verdict(
    agrees: Callable[..., Any], got: np.ndarray, expected: np.ndarray, A: np.ndarray, B: np.ndarray
) -> bool:
    rng = generator("order of rows and columns")
    if rng is not None:
        rows, cols = rng.permutation(len(A))[:, None], rng.permutation(B.shape[1])
        got, expected, A, B = got[rows, cols], expected[rows, cols], A[rows[:, 0]], B[:, cols]
    verdict = called(agrees, got, expected, A, B)
    if np.ndim(verdict):
        shape = np.shape(verdict)
        raise Unmet(f"It returns an array of shape {shape}. Return one True or False, with .all().")
    return bool(verdict)


def lost_term(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A B where one element lacks one term: the one of middling size."""
    got = _product(A, B, range(A.shape[1]))
    terms = A[5] * B[:, 3]
    got[5, 3] -= terms[np.argsort(np.abs(terms))[len(terms) // 2]]
    return got


def half_sum(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A B with sums that are kept in 16 bits."""
    total = np.zeros((len(A), B.shape[1]), np.float16)
    for k in range(A.shape[1]):
        total = (total + A[:, k, None] * B[k]).astype(np.float16)
    return total.astype(np.float32)


def with_nan(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A B with one element NaN, as a wrong kernel leaves it."""
    got = _product(A, B, range(A.shape[1]))
    got[7, 2] = np.nan
    return got


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
    if abs(1e3 * ratio - 1) < 0.02:
        return "That is seconds. Return milliseconds."
    return UNFINISHED if ratio < 1 else hint


UNFINISHED = (
    "launch() returns as soon as the kernel is in the queue, after 0.005 ms. Look at clock() again when the "
    "kernel has ended: synchronize() waits for that. clock() counts seconds."
)
EARLIER = (
    "Other work was in the queue, and you have waited for it too. Begin with an empty queue, and look at the "
    "clock again behind one launch."
)
FIRST = "The first launch also loads the kernel's code. Launch once before you look at the clock."
