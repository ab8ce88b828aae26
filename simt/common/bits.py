"""Numbers and their bits: types that NumPy has from ml_dtypes, such as bfloat16, and that CuPy lacks."""

from importlib import import_module
from typing import Any

import numpy as np


def stored(array: np.ndarray) -> np.ndarray:
    """Return an array as CuPy can hold it: bfloat16 and fp8 as unsigned integers of the same bits."""
    return array.view(f"u{array.itemsize}") if array.dtype.kind == "V" else array


def numbers(array: Any, dtype: np.dtype) -> Any:
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
