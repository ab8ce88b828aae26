"""Turn Python arguments into the bytes of a kernel's parameters and the memory it may touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simt.analysis.layout import Storage
from simt.code.instructions import Kind
from simt.common.buffer_names import Named, named_array, shown
from simt.common.errors import LaunchError
from simt.common.limits import check_array
from simt.common.tensor_map import BYTES, TensorMap, root
from simt.ptx import TYPE_BYTES, Kernel, Variable
from simt.texture import CUDAarray, SurfaceObject, TextureObject

GPU_ALIGNMENT = 256  # device memory is allocated in multiples of this


@dataclass(frozen=True)
class Range:
    """The valid memory of one array; `shift` is how far past a 256-byte boundary it starts on a GPU."""

    start: int
    size: int
    shift: int
    owner: np.ndarray | CUDAarray | Named | str | None = None  # the array, its name, or that of a variable
    position: int = 0  # of the argument
    parameter: str = ""  # its name in the kernel's source, where that is known
    is_constant: bool = False  # a `__constant__` variable
    arrays: Sequence[Range] = ()  # that share the memory, where it is a page

    @property
    def named(self) -> Named:
        """Return the memory as a student knows it."""
        if isinstance(self.owner, np.ndarray):
            return named_array(self.owner, self.position, self.parameter)
        if isinstance(self.owner, Named):
            return self.owner
        variable = f"variable {self.owner} ({self.size} bytes)" if self.owner else ""
        name = str(self.owner) if isinstance(self.owner, CUDAarray) else variable
        return Named(name, self.size, self.itemsize)

    @property
    def itemsize(self) -> int:
        """Return the bytes per element, or 1 for memory that is not an array."""
        array = self.owner.memory if isinstance(self.owner, CUDAarray) else self.owner
        return array.itemsize if isinstance(array, np.ndarray) else 1


NOTHING = Range(0, 0, 0)


@dataclass(frozen=True)
class Packed:
    """The arguments of a whole program's launch: the parameters' bytes as they are, and all valid memory."""

    params: bytes
    ranges: Sequence[Range]


def array_range(array: CUDAarray) -> Range:
    """Return the memory of a CUDA array, which surfaces read and write."""
    return Range(array.memory.ctypes.data, array.memory.nbytes, 0, array)


def bind(
    kernel: Kernel, storage: Storage, args: Sequence[Any], names: Sequence[str] = ()
) -> tuple[bytes, list[Range]]:
    """Lay out the arguments as the kernel's parameters, with one range each (empty for scalars).

    NumPy arrays are passed by address, without a copy, and scalars by value. `names` are those of the
    parameters in the source, if they are known. Raises LaunchError.
    """
    if len(args) == 1 and isinstance(args[0], Packed):
        return args[0].params, [NOTHING] * len(kernel.params)
    if len(args) != len(kernel.params):
        raise LaunchError(
            f"kernel `{kernel.name}` takes {len(kernel.params)} arguments, {len(args)} were given. "
            "Arguments go in one tuple: "
            "kernel(grid, block, (a, b, ...))"
        )
    data, ranges = bytearray(storage.param_bytes), []
    for position, (param, arg) in enumerate(zip(kernel.params, args, strict=True)):
        if isinstance(arg, np.ndarray):
            value, range_ = _array(param, arg, position, names[position] if names else "")
        elif isinstance(arg, TensorMap):
            value, range_ = _tensor_map(param, arg, position, names[position] if names else "")
        elif isinstance(arg, TextureObject | SurfaceObject):
            value, range_ = _handle(param, arg, position), NOTHING
        else:
            value, range_ = _scalar(param, arg, position), NOTHING
        offset = storage.params[param.name]
        data[offset : offset + param.size] = value
        ranges.append(range_)
    return bytes(data), ranges


def _array(param: Variable, array: np.ndarray, position: int, name: str) -> tuple[bytes, Range]:
    if TYPE_BYTES[param.type] != 8 or param.size != 8:
        wanted = (
            "a tensor map here: pass labkit.tensor_map(array, box)"
            if param.size == BYTES
            else (f"a number of {param.size} bytes here, not an array")
        )
        raise LaunchError(f"{shown(array, position)}: the kernel takes {wanted}")
    check_array(array, position, "a kernel")
    if array.dtype.hasobject or not array.dtype.isnative:
        raise LaunchError(
            f"{shown(array, position)}: a kernel can only work on plain numbers in this machine's byte order"
        )
    start = array.ctypes.data
    return start.to_bytes(8, "little"), _memory(array, array.nbytes, position, name)


def _memory(array: np.ndarray, size: int, position: int, name: str) -> Range:
    """Return `size` bytes from an array's first element on."""
    start = array.ctypes.data
    shift = (start - root(array).ctypes.data) % GPU_ALIGNMENT
    return Range(start, size, shift, array, position, name)


def _tensor_map(param: Variable, each: TensorMap, position: int, name: str) -> tuple[bytes, Range]:
    """Return a tensor map's bytes, and the memory of the array that it describes."""
    if param.size != BYTES:
        raise LaunchError(
            f"argument {position} is a {each}; the kernel takes {param.size} bytes here. Declare "
            "it as `const __grid_constant__ CUtensorMap`, or pass an array that holds np.asarray(map)"
        )
    if not isinstance(each.array, np.ndarray):
        raise LaunchError(
            f"argument {position} is a {each} on the GPU; the simulator takes one of a NumPy array"
        )
    return each.data, _memory(each.array, each.geometry.extent, position, name)


def _handle(param: Variable, each: TextureObject | SurfaceObject, position: int) -> bytes:
    if param.size != 8 or Kind(param.type).is_float:
        raise LaunchError(
            f"argument {position} is {each}; the kernel takes a number of {param.size} bytes here, not a "
            "cudaTextureObject_t or cudaSurfaceObject_t"
        )
    return each.ptr.to_bytes(8, "little")


def _scalar(param: Variable, value: Any, position: int) -> bytes:
    kind = Kind(param.type)
    if param.size != kind.bits // 8:
        return _structure(param, value, position)
    if isinstance(value, (bool, int, float)):
        value = _python_number(kind, value, position)
    if hasattr(type(value), "__cuda_array_interface__"):
        raise LaunchError(
            f"argument {position} is an array on the GPU; the simulator takes NumPy arrays. Pass its .get()"
        )
    if not isinstance(value, np.generic):
        raise LaunchError(
            f"argument {position} is a {type(value).__name__}; a kernel takes NumPy arrays and NumPy "
            "scalars such as np.int32(7)"
        )
    if value.dtype.kind not in "biuf":
        raise LaunchError(
            f"argument {position} is {value.dtype}; a kernel takes integers and floats by value"
        )
    if value.dtype.kind == "f" and not kind.is_float and param.type[0] in "us":
        raise LaunchError(
            f"argument {position} is {value.dtype}; the kernel takes an integer of {param.size} bytes"
        )
    if value.dtype.kind in "iub" and kind.is_float:
        raise LaunchError(
            f"argument {position} is {value.dtype}; the kernel takes a float of {param.size} bytes: "
            f"np.{_numpy_name(kind)}(...)"
        )
    if value.nbytes != param.size:
        raise LaunchError(
            f"argument {position} is {value.dtype} ({value.nbytes} bytes); the kernel takes {param.size} "
            f"bytes: np.{_numpy_name(kind)}(...)"
        )
    return value.tobytes()


def _python_number(kind: Kind, value: bool | int | float, position: int) -> np.generic:
    """Convert a Python number to the parameter's type, if it fits."""
    if kind.is_float:
        return np.dtype(_numpy_name(kind)).type(value)
    if isinstance(value, float):
        raise LaunchError(
            f"argument {position} is the Python float {value!r}; the kernel takes an integer of "
            f"{kind.bits // 8} bytes: "
            f"np.{_numpy_name(kind)}(...)"
        )
    if not -(1 << kind.bits - 1) <= value < 1 << kind.bits:
        raise LaunchError(
            f"argument {position} is {value}, which does not fit the kernel's integer of {kind.bits // 8} "
            "bytes"
        )
    return np.frombuffer(
        (int(value) & ((1 << kind.bits) - 1)).to_bytes(kind.bits // 8, "little"), f"u{kind.bits // 8}"
    )[0]


def _structure(param: Variable, value: Any, position: int) -> bytes:
    """Return the bytes of a struct passed by value: a NumPy scalar, or bytes, of its size."""
    data = value.tobytes() if isinstance(value, np.generic) else value
    if not isinstance(data, bytes) or len(data) != param.size:
        raise LaunchError(
            f"argument {position} must be a structure of {param.size} bytes: a NumPy structured scalar, or "
            "bytes"
        )
    return data


def _numpy_name(kind: Kind) -> str:
    return f"float{kind.bits}" if kind.is_float else f"int{kind.bits}"
