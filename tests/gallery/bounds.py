"""Right results with the largest error that rounding allows, for the references of the gallery.

EPS etc. are the distance from 1 to the next number, twice the error of one rounding, so `operations * EPS *
size` allows for any order of summation and for contraction.
"""

import numpy as np

EPS, EPS64, EPS16 = (float(np.finfo(kind).eps) for kind in (np.float32, np.float64, np.float16))


def wide(array):
    return np.asarray(array, np.float64)


def close(expected, operations, size=None, eps=EPS):
    """A bound from the number of rounded operations and the size of what they work on."""
    return expected, operations * eps * (np.abs(expected) if size is None else size) + 1e-30


def summed(values, axis=None):
    """A float sum in any order."""
    values = wide(values)
    return close(values.sum(axis), values.size, np.abs(values).sum(axis))


def product(A, B, eps=EPS, extra=0):
    """A matrix product of K terms."""
    A, B = wide(A), wide(B)
    return close(A @ B, A.shape[1] + 1 + extra, np.abs(A) @ np.abs(B), eps)


def blocks(values, size, fill=0):
    """Rows of `size` elements, the last one filled up."""
    rows = -(-len(values) // size)
    return np.concatenate([values, np.full(rows * size - len(values), fill, values.dtype)]).reshape(
        rows, size
    )
