"""Compare a kernel's output with the right one, and say in words what is wrong."""

from typing import Any

import ml_dtypes  # noqa: F401 (NumPy then knows the name bfloat16)
import numpy as np

_UNWRITTEN = {  # the smallest int32; of floats a signalling NaN
    "int32": 0x8000_0000,
    "float16": 0x7D00,
    "bfloat16": 0x7FA0,
    "float32": 0x7FA0_0000,
    "float64": 0x7FF4_0000_0000_0000,
}


class Mismatch(AssertionError):
    """A kernel's output is wrong.

    `index`, `got` and `expected` describe the first wrong element in row-major order; `wrong` of `total`
    elements are wrong, those that are True in `where`.
    """

    def __init__(
        self,
        message: str,
        index: tuple[int, ...],
        got: float,
        expected: float,
        wrong: int,
        total: int,
        where: np.ndarray | None = None,
    ):
        super().__init__(message)
        self.where = np.ones(total, bool) if where is None else where
        self.index, self.got, self.expected, self.wrong, self.total = index, got, expected, wrong, total


def unwritten(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return an output as it is before a run: full of the smallest int32, or of signalling NaN.

    No right result holds either. Arithmetic turns a signalling NaN into a quiet one, so an element that was
    never written can be distinguished from one computed from NaN.
    """
    bits = _UNWRITTEN[dtype]
    return np.full(shape, bits, dtype=f"u{np.dtype(dtype).itemsize}").view(dtype)


def differs(got: Any, expected: Any, tolerance: Any) -> Any:
    """Return where not |got - expected| <= tolerance, per element; all arrays are NumPy's or all CuPy's."""
    with np.errstate(invalid="ignore"):  # labkit reports NaN in a result; NumPy should not warn
        return ~(np.abs(got.astype(np.float64) - expected) <= tolerance)  # not ">": NaN is wrong too


def compare(
    name: str, got: np.ndarray, before: np.ndarray, expected: np.ndarray, tolerance: np.ndarray
) -> None:
    """Raise Mismatch unless each |got - expected| <= tolerance; all arrays have one shape.

    `before` is what the output held before the run, and `name` is the output's name in the kernel.
    """
    wrong = differs(got, expected, tolerance)
    if not wrong.any():
        return
    hint = _hint(got, before, expected, tolerance)
    first = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    count = int(wrong.sum())
    bound = f" ± {tolerance[first]:.2g}" if tolerance[first] else ""
    filler = unwritten((1,), before.dtype.name)
    was_written = _bits(got)[first] != _bits(before)[first] or _bits(before)[first] != _bits(filler)
    told = "" if was_written else ", which an output holds until it is written"
    message = (
        f"{name}[{', '.join(map(str, first))}] is {_show(got[first])}{told}; it should be "
        f"{_show(expected[first])}{bound}. {count} of {wrong.size} elements "
        f"{'is' if count == 1 else 'are'} wrong. {hint}"
    )
    raise Mismatch(
        message.strip(), first, got[first].item(), expected[first].item(), count, wrong.size, wrong
    ) from None


def _hint(got: np.ndarray, before: np.ndarray, expected: np.ndarray, tolerance: np.ndarray) -> str:
    """Describe the error's pattern, where it is easy to recognise."""
    untouched = int((_bits(got) == _bits(before)).sum())
    if untouched == got.size:
        return "Nothing has changed: is the output written?"
    if untouched:
        still = "element has" if untouched == 1 else "elements have"
        return f"{untouched} {still} not changed: do the threads, or the loops, reach all of it?"
    if np.isnan(got).any():
        count = int(np.isnan(got).sum())
        return f"The kernel has written NaN to {count} of them."
    if not differs(got.ravel(), expected.T.ravel(), tolerance.T.ravel()).any():
        return "It is the transpose of the right output: are row and column exchanged?"
    return ""


def _bits(array: np.ndarray) -> np.ndarray:
    """Return the array's bits, in which NaN equals itself."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def _show(value: Any) -> str:
    return str(value) if isinstance(value, np.integer) else f"{value:.9g}"
