"""Compare a kernel's output with the right one, and say in words what is wrong."""

from typing import Any

import numpy as np


class Mismatch(AssertionError):
    """A kernel's output is wrong.

    `index`, `got` and `expected` are of the first wrong element in row-major order; `wrong` of `total` are.
    """

    def __init__(
        self, message: str, index: tuple[int, ...], got: float, expected: float, wrong: int, total: int
    ):
        super().__init__(message)
        self.index, self.got, self.expected, self.wrong, self.total = index, got, expected, wrong, total


def unwritten(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An output before a run: full of the smallest int32, or of signalling NaN.

    No right result holds either. Arithmetic makes a signalling NaN quiet, so that an element that was never
    written can be told from one that was computed from NaN.
    """
    bits = {"int32": 0x8000_0000, "float32": 0x7FA0_0000, "float64": 0x7FF4_0000_0000_0000}[dtype]
    return np.full(shape, bits, dtype=f"u{np.dtype(dtype).itemsize}").view(dtype)


def differs(got: Any, expected: Any, tolerance: Any) -> Any:
    """Where not |got - expected| <= tolerance, element by element; arrays of NumPy, or all of CuPy."""
    with np.errstate(invalid="ignore"):  # NaN in a result is the student's to hear of, not NumPy's
        return ~(np.abs(got.astype(np.float64) - expected) <= tolerance)  # not ">": NaN is wrong too


def compare(
    name: str, got: np.ndarray, before: np.ndarray, expected: np.ndarray, tolerance: np.ndarray
) -> None:
    """Raise Mismatch unless each |got - expected| <= tolerance; all of one shape.

    `before` is what the output held before the run, and `name` what the kernel calls it.
    """
    wrong = differs(got, expected, tolerance)
    if not wrong.any():
        return
    hint = _hint(got, before, expected, tolerance)
    first = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    count = int(wrong.sum())
    bound = f" ± {tolerance[first]:.2g}" if tolerance[first] else ""
    message = (
        f"{name}[{', '.join(map(str, first))}] is {_show(got[first])}; it should be {_show(expected[first])}"
        f"{bound}. {count} of {wrong.size} elements {'is' if count == 1 else 'are'} wrong. {hint}"
    )
    raise Mismatch(
        message.strip(), first, got[first].item(), expected[first].item(), count, wrong.size
    ) from None


def _hint(got: np.ndarray, before: np.ndarray, expected: np.ndarray, tolerance: np.ndarray) -> str:
    """What the wrong output looks like, where that is easy to tell."""
    untouched = int((_bits(got) == _bits(before)).sum())
    if untouched == got.size:
        return "Nothing has changed: is the output written?"
    if untouched:
        still = "element has" if untouched == 1 else "elements have"
        return f"{untouched} {still} not changed: do the threads, or the loops, reach all of it?"
    if np.isnan(got).any():
        return "NaN comes from reading what nothing wrote, such as a tile or a sum before it is set."
    if not differs(got.ravel(), expected.T.ravel(), tolerance.T.ravel()).any():
        return "It is the transpose of the right output: are row and column exchanged?"
    return ""


def _bits(array: np.ndarray) -> np.ndarray:
    """The array's bits, in which NaN equals itself."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def _show(value: Any) -> str:
    return str(value) if isinstance(value, np.integer) else f"{value:.9g}"
