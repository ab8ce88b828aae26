"""Criteria for what stands around a kernel: a verdict on a launch, a comparison of results, a clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from labkit import simt
from labkit.course.exercise import Criterion, Unmet
from labkit.course.model_gpu import ModelGpu
from labkit.course.py_criteria import called
from labkit.errors import InvalidAccess

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
    """A launch to be judged: what the student is told of it, a kernel of _COPY, the right verdict, a hint.

    `threads` of its one block. `out` holds a right result before, unless it `is_fresh`; of `zeros` every
    right element is 0.
    """

    told: str
    kernel: str
    verdict: str
    hint: str
    threads: int = 64
    zeros: bool = False
    is_fresh: bool = False

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        "`out` before the launch, and what is expected there after it."
        expected = np.zeros(64, np.float32) if self.zeros else np.arange(1, 65, dtype=np.float32)
        return np.full_like(expected, -1) if self.is_fresh else expected.copy(), expected

    def launch(self, out: np.ndarray, expected: np.ndarray) -> None:
        kernel = simt.RawModule(code=_COPY).get_function(self.kernel)
        kernel(1, self.threads, (expected, out, np.int32(len(out))))


def verdicts(text: str, *trials: Trial) -> Criterion:
    "Criterion: `verdict(launch, out, expected)` gives each trial's."

    def test(verdict: Callable[..., Any]) -> None:
        for trial in trials:
            out, expected = trial.arrays()
            got = called(verdict, partial(trial.launch, out, expected), out, expected.copy())
            if got != trial.verdict:
                raise Unmet(f"{trial.told}: the verdict is {got!r}.\n{trial.hint}")

    return Criterion(text, test)


WRITTEN = "Every element is what it should be. Is the array that you look at the one that the kernel writes?"
STALE = (
    "What stands in out may be left from an earlier launch. Before the launch, put something there that no "
    "right result can be."
)
ASK = "Nothing was computed. A refused launch raises labkit.simt.LaunchError: catch it, and say so."


_OUTSIDE = Trial("", "outside", "", "")


def others_get_through(verdict: Callable[..., Any]) -> None:
    "The test of a criterion: InvalidAccess of a launch leaves `verdict`."
    out, expected = _OUTSIDE.arrays()
    try:
        got = verdict(partial(_OUTSIDE.launch, out, expected), out, expected)
    except InvalidAccess:
        return
    except Exception as error:
        raise Unmet(f"Of an access outside out it makes {type(error).__name__}: {error}") from None
    raise Unmet(
        f"A launch writes outside out and raises InvalidAccess: the verdict is {got!r}.\n"
        "That is no verdict on numbers, and no refusal. Catch LaunchError alone, so that every other error "
        "reaches the reader."
    )


# A comparison: when do two products agree?


def _product(A: np.ndarray, B: np.ndarray, order: Sequence[int]) -> np.ndarray:
    "A @ B in float32, its terms added up in that order."
    total = np.zeros((len(A), B.shape[1]), np.float32)
    for k in order:
        total += A[:, k, None] * B[k]
    return total


def _matrices(K: int, scale: float, cancels: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    "A, B and their product in float64; with `cancels` every sum is 0."
    rng = np.random.default_rng(K)
    A, B = (scale * rng.uniform(-1, 1, shape) for shape in ((12, K), (K, 10)))
    A, B = A.astype(np.float32), B.astype(np.float32)
    if cancels:
        A[:, K // 2 :], B[K // 2 :] = A[:, : K // 2], -B[: K // 2]
    return A, B, A.astype(np.float64) @ B


def accepts(text: str, *cases: tuple[int, float, bool]) -> Criterion:
    "Criterion: right results pass, added up forwards and backwards; cases are rows of `_matrices`."

    def test(agrees: Callable[..., Any]) -> None:
        for K, scale, cancels in cases:
            A, B, expected = _matrices(K, scale, cancels)
            for how, order in (("first to last", range(K)), ("last to first", range(K)[::-1])):
                got = _product(A, B, order)
                if not _verdict(agrees, got, expected, A, B):
                    raise Unmet(
                        f"A right result is rejected: K={K}, elements up to {scale:g}, terms added up from "
                        f"{how}{', and every sum is 0' if cancels else ''}. It is off by at most "
                        f"{np.abs(got - expected).max():.2g}.\n{BOUND}"
                    )

    return Criterion(text, test)


def rejects(text: str, spoil: Callable[..., np.ndarray], what: str, *scales: float) -> Criterion:
    "Criterion: `spoil(A, B)`, a wrong product, does not pass."

    def test(agrees: Callable[..., Any]) -> None:
        for scale in scales:
            A, B, expected = _matrices(400, scale)
            got = spoil(A, B)
            if _verdict(agrees, got, expected, A, B):
                off = np.abs(got - expected)
                far = "" if np.isnan(off).any() else f" It is off by {off.max():.2g}."
                raise Unmet(
                    f"A wrong result passes: {what} K=400, elements up to {scale:g}.{far}\n"
                    f"{NAN if not far else BOUND}"
                )

    return Criterion(text, test)


def _verdict(agrees: Callable[..., Any], *args: np.ndarray) -> bool:
    got = called(agrees, *args)
    if np.ndim(got):
        raise Unmet(f"It returns an array of shape {np.shape(got)}. Return one True or False, with .all().")
    return bool(got)


def lost_term(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    "One element lacks one term: the one of middling size."
    got = _product(A, B, range(A.shape[1]))
    terms = A[5] * B[:, 3]
    got[5, 3] -= terms[np.argsort(np.abs(terms))[len(terms) // 2]]
    return got


def half_sum(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    "Sums kept in 16 bits."
    total = np.zeros((len(A), B.shape[1]), np.float16)
    for k in range(A.shape[1]):
        total = (total + A[:, k, None] * B[k]).astype(np.float16)
    return total.astype(np.float32)


def with_nan(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    got = _product(A, B, range(A.shape[1]))
    got[7, 2] = np.nan
    return got


BOUND = (
    "Rounding grows with the number of terms K and with their sizes, not with the sum: a bound is "
    "K * 2**-24 * (abs(A) @ abs(B)), element by element, or a small multiple of it."
)
NAN = "Every comparison with NaN is False. Ask whether all differences are small, not whether one is large."

# A clock: how long does a launch take?


def times(text: str, hint: str, *settings: dict[str, float]) -> Criterion:
    "Criterion: of each ModelGpu the kernel's time, within 2 %."

    def test(time_ms: Callable[..., Any]) -> None:
        for setting in settings:
            model = ModelGpu(**setting)
            got = called(time_ms, model.launch, model.synchronize, model.clock)
            try:
                close = abs(float(got) - model.kernel_ms) <= 0.02 * model.kernel_ms
            except (TypeError, ValueError):
                raise Unmet(f"It returns {got!r}. Return a number, in milliseconds.") from None
            if not close:
                what = ", ".join(f"{name}={value:g}" for name, value in setting.items())
                raise Unmet(
                    f"ModelGpu({what}): it returns {float(got):.4g}; the kernel takes {model.kernel_ms:g} ms."
                    f"\n{_why(float(got) / model.kernel_ms, hint)}"
                )

    return Criterion(text, test)


def _why(ratio: float, hint: str) -> str:
    "Of a time that is too short what is usual; of one that is too long the `hint`."
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
