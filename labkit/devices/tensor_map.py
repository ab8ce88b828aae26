"""Make tensor maps: by the driver for CuPy's arrays, and in the simulator's own form for NumPy's."""

import ctypes
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from simt.common.tensor_map import (
    BYTES,
    ELEMENTS,
    L2_PROMOTIONS,
    SWIZZLES,
    Geometry,
    TensorMap,
    describe,
    in_simulator,
)


def tensor_map(
    array: Any,
    box: Sequence[int],
    *,
    swizzle: int = 0,
    strides: Sequence[int] | None = None,
    element_strides: Sequence[int] | None = None,
    interleave: int = 0,
    dtype: str | None = None,
    fill: Literal["zero", "nan"] = "zero",
    l2_promotion: int = 0,
) -> TensorMap:
    """Return a tensor map (`CUtensorMap`) of an array, for copies of tiles of `box` elements by TMA.

    `array` is NumPy's or CuPy's, of 1 to 5 dimensions in C order; a view may leave out ends of rows. `box`,
    `strides` (bytes, the array's own by default) and `element_strides` (the copy takes one of so many) have
    one number per dimension in the order of `array.shape`, the innermost last. CUDA's own functions, and the
    coordinates in a kernel, have the innermost first. `swizzle` is 0, 32, 64 or 128 bytes. Elements outside
    the array read as 0, or with `fill="nan"` as NaN. `dtype` names an element type that the array's does not
    say: "bfloat16" of a uint16 array; "float32_ftz", "tf32" or "tf32_ftz" of a float32 array.
    `l2_promotion` (0, 64, 128 or 256 bytes) is how much the L2 cache fetches at once.

    A kernel takes the map as a `const __grid_constant__ CUtensorMap`. `np.asarray(map)` is its 128 bytes, for
    a kernel that finds maps in memory. Raises ValueError for what CUDA's cuTensorMapEncodeTiled refuses.
    """
    if interleave:
        raise ValueError(
            f"interleave={interleave}: labkit has tensor maps without interleaving alone, which is 0"
        )
    on_host = isinstance(array, np.ndarray)
    if on_host and not array.flags.writeable:
        raise ValueError("the array is read-only, and a kernel may write by its tensor map. Pass a copy")
    address = array.ctypes.data if on_host else array.data.ptr
    how = swizzle, strides, element_strides, dtype, fill, l2_promotion
    geometry = describe(array, address, box, *how)
    return in_simulator(geometry, array) if on_host else TensorMap(array, geometry, _by_driver(geometry))


def _by_driver(geometry: Geometry) -> bytes:
    """Return the 128 bytes that the driver makes of a geometry. Raises ValueError if it refuses."""
    from cuda.bindings import driver

    def inner_first(kind: Any, values: Sequence[int]) -> list[Any]:
        return [kind(value) for value in reversed(values)]

    result, made = driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType(list(ELEMENTS).index(geometry.element)),
        len(geometry.sizes),
        geometry.address,
        inner_first(driver.cuuint64_t, geometry.sizes),
        inner_first(driver.cuuint64_t, geometry.strides[:-1]) or [driver.cuuint64_t(0)],  # no NULL
        inner_first(driver.cuuint32_t, geometry.box),
        inner_first(driver.cuuint32_t, geometry.steps),
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle(SWIZZLES.index(geometry.swizzle)),
        driver.CUtensorMapL2promotion(L2_PROMOTIONS.index(geometry.l2_promotion)),
        driver.CUtensorMapFloatOOBfill(geometry.fill == "nan"),
    )
    if result != driver.CUresult.CUDA_SUCCESS:
        raise ValueError(
            f"the driver refuses the {geometry}: {result.name}. Tensor maps need a GPU of "
            "compute capability 9.0 or later"
        )
    return ctypes.string_at(made.getPtr(), BYTES)
