"""Numbers and their bits: memory never written, and types that NumPy has from ml_dtypes and CuPy lacks."""

from importlib import import_module
from typing import Any

import numpy as np

POISON = 0x7FFADBAD  # each 4 bytes of what was never written: of an array from simt.empty; a NaN


def as_cupy_bits(array: np.ndarray) -> np.ndarray:
    """Return an array as CuPy can hold it: bfloat16 and fp8 as unsigned integers of the same bits."""
    return array.view(f"u{array.itemsize}") if array.dtype.kind == "V" else array


def from_bits(array: Any, dtype: np.dtype) -> Any:
    """Return an array of NumPy or CuPy as numbers, where it may hold the bits of `dtype` (see `stored`).

    CuPy's are float32 then, in which every number of two bytes or one is exact.
    """
    if array.dtype == dtype:
        return array
    if isinstance(array, np.ndarray):
        return array.view(dtype)
    xp = import_module(type(array).__module__.partition(".")[0])
    every = np.arange(2 ** (8 * dtype.itemsize), dtype=array.dtype.name).view(dtype).astype(np.float32)
    return xp.asarray(every)[array]
