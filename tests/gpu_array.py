"""What stands in for an array on a GPU where there is none: CuPy's face, in this process's memory.

Only labkit's handling of such arrays can be tested with it: no kernel can be launched on one.
"""

from types import SimpleNamespace

import numpy as np


class GpuArray:
    """As much of CuPy's array as labkit asks for."""

    def __init__(self, array: np.ndarray) -> None:
        self._array, self.shape, self.dtype = array, array.shape, array.dtype
        self.strides, self.nbytes = array.strides, array.nbytes
        self.data = SimpleNamespace(ptr=array.ctypes.data)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.data.ptr, False), "version": 3}

    def __getitem__(self, place: object) -> "GpuArray":
        return GpuArray(self._array[place])

    def reshape(self, *shape: int) -> "GpuArray":
        return GpuArray(self._array.reshape(*shape))

    def get(self) -> np.ndarray:
        return self._array.copy()

    def __setitem__(self, place: object, values: object) -> None:
        self._array[place] = values.get() if isinstance(values, GpuArray) else values


def aligned(count: int, dtype: type = np.float32) -> np.ndarray:
    """Zeros that begin at a multiple of 256 bytes, as memory of a GPU does."""
    whole = np.zeros(count * np.dtype(dtype).itemsize + 256, np.uint8)
    first = -whole.ctypes.data % 256
    return whole[first : first + count * np.dtype(dtype).itemsize].view(dtype)
