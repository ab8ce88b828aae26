"""Textures and surfaces from NumPy arrays, with the names and arguments of `cupy.cuda.texture`.

    floats = texture.ChannelFormatDescriptor(32, 0, 0, 0, cudaChannelFormatKindFloat)
    image = texture.CUDAarray(floats, 64, 48)
    image.copy_from(pixels)  # float32, 48 rows of 64
    resource = texture.ResourceDescriptor(cudaResourceTypeArray, cuArr=image)
    how = texture.TextureDescriptor((cudaAddressModeClamp,) * 2, cudaFilterModeLinear)
    kernel(grid, block, (texture.TextureObject(resource, how), out))

The constants, which CuPy has in `cupy.cuda.runtime`, are here too. A kernel gets an object as a number, its
handle. What a CUDA runtime would refuse is a ValueError. Reference: CUDA C++ Programming Guide, "Texture and
Surface Memory" and "Texture Fetching"; CUDA Runtime API, "Texture Object Management".
"""

# ruff: noqa: N816 - CUDA's names
import ctypes
import weakref
from collections.abc import Iterable

import numpy as np

from simt.common.bits import POISON

cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned, cudaChannelFormatKindFloat = range(3)
cudaResourceTypeArray, cudaResourceTypeMipmappedArray = 0, 1
cudaResourceTypeLinear, cudaResourceTypePitch2D = 2, 3
cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder = range(4)
cudaFilterModePoint, cudaFilterModeLinear = range(2)
cudaReadModeElementType, cudaReadModeNormalizedFloat = range(2)
cudaArrayDefault, cudaArrayLayered, cudaArraySurfaceLoadStore = 0, 1, 2  # flags of a CUDA array
cudaArrayCubemap, cudaArrayTextureGather = 4, 8

# What a texture is made of. A texture of one geometry is read by the functions of that geometry alone.
GEOMETRIES = ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube", "linear")
SURFACE = len(GEOMETRIES)  # added to the number of a surface's geometry
CALLS = {
    "1d": "tex1D",
    "2d": "tex2D",
    "3d": "tex3D",
    "a1d": "tex1DLayered",
    "a2d": "tex2DLayered",
    "cube": "texCubemap",
    "acube": "texCubemapLayered",
    "linear": "tex1Dfetch",
}
FORMATS = tuple(np.dtype(name) for name in ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4"))
MOST_LINEAR = 1 << 28  # texels of a texture of linear memory (compute capability 9.0)
PITCH_ALIGNMENT = 32  # bytes, of the rows of pitched memory


class Record(ctypes.Structure):
    """A texture or a surface as generated code sees it."""

    _fields_ = [
        ("data", ctypes.c_int64),
        ("pitch", ctypes.c_int64),  # bytes from row to row
        ("slice", ctypes.c_int64),  # bytes from layer to layer
        ("kind", ctypes.c_int32),  # an index into GEOMETRIES, or SURFACE more
        ("width", ctypes.c_int32),
        ("height", ctypes.c_int32),
        ("depth", ctypes.c_int32),  # or the number of layers, or of faces
        ("texel_bytes", ctypes.c_int32),
        ("channels", ctypes.c_int32),
        ("format", ctypes.c_int32),  # an index into FORMATS
        ("largest", ctypes.c_int32),  # texels are divided by it; 0: they are read as they are
        ("is_normalized", ctypes.c_int32),  # are coordinates fractions of the size?
        ("is_linear", ctypes.c_int32),  # or is the nearest texel read?
        ("mode_0", ctypes.c_int32),
        ("mode_1", ctypes.c_int32),
        ("mode_2", ctypes.c_int32),
        *((f"border_{channel}", ctypes.c_int32) for channel in range(4)),
    ]


class ChannelFormatDescriptor:
    """The bits of the channels x, y, z and w, and their kind: cudaChannelFormatKindFloat or another."""

    def __init__(self, x: int, y: int, z: int, w: int, f: int) -> None:
        self._bits, self._kind = (x, y, z, w), f

    def get_channel_format(self) -> dict[str, int]:
        """Return what the descriptor was made of."""
        return dict(zip("xyzwf", (*self._bits, self._kind), strict=True))

    @property
    def channels(self) -> int:
        """Return how many channels a texel has."""
        return sum(bits > 0 for bits in self._bits)

    @property
    def dtype(self) -> np.dtype:
        """Return the type of a channel. Raises ValueError for a format that CUDA arrays cannot have."""
        bits, kind = self._bits, "iuf"[self._kind] if self._kind in range(3) else "?"
        wanted = f"{kind}{bits[0] // 8}"
        shape = (bits[0],) * self.channels + (0,) * (4 - self.channels)
        known = {f"{dtype.kind}{dtype.itemsize}" for dtype in FORMATS}
        if self.channels not in (1, 2, 4) or bits != shape or wanted not in known:
            raise ValueError(
                f"a texture cannot have channels of {bits} bits of kind {self._kind}: it has 1, 2 or 4 "
                "channels of the same size, with 8, 16 or 32 bits for integers and 16 or 32 for floats"
            )
        return np.dtype(wanted)


class CUDAarray:
    """Memory for textures and surfaces: of 1, 2 or 3 dimensions, or of layers (`flags`)."""

    def __init__(
        self, desc: ChannelFormatDescriptor, width: int, height: int = 0, depth: int = 0, flags: int = 0
    ) -> None:
        if width <= 0:
            raise ValueError("To create a CUDA array, width must be nonzero.")
        if height == 0 and depth > 0 and not flags & cudaArrayLayered:
            raise ValueError("To create a 2D CUDA array, height must be nonzero.")
        if flags & cudaArrayCubemap and (height != width or depth == 0 or depth % 6):
            raise ValueError(
                f"a cubemap has square faces and a depth of 6, or of 6 per layer; this one has {width} x "
                f"{height} and a depth of {depth}"
            )
        if flags & cudaArrayCubemap and not flags & cudaArrayLayered and depth != 6:
            raise ValueError(f"a cubemap of depth {depth} has layers: add cudaArrayLayered to its flags")
        self.desc, self.width, self.height, self.depth, self.flags = desc, width, height, depth, flags
        self.ndim = 3 if depth > 0 else 2 if height > 0 else 1
        count = width * max(height, 1) * max(depth, 1) * desc.channels
        words = np.full(-(-count * desc.dtype.itemsize // 4), POISON, np.uint32)
        self.memory = words.view(np.uint8)[: count * desc.dtype.itemsize].view(desc.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the arrays that can be copied to and from it."""
        row = self.width * self.desc.channels
        if self.depth and not self.height:  # layers of one dimension
            return self.depth, row
        return ((), (self.height,), (self.depth, self.height))[self.ndim - 1] + (row,)

    @property
    def geometry(self) -> str:
        """Return which functions read it, as in GEOMETRIES."""
        is_layered, is_cube = self.flags & cudaArrayLayered, self.flags & cudaArrayCubemap
        if is_cube:
            return "acube" if is_layered else "cube"
        if is_layered:
            return "a2d" if self.height else "a1d"
        return GEOMETRIES[self.ndim - 1]

    def copy_from(self, in_arr: np.ndarray, stream: object = None) -> None:
        """Copy an array of shape (depth, height, channels * width), or with fewer sizes, into it."""
        self._match(in_arr)
        self.memory[...] = in_arr.ravel()

    def copy_to(self, out_arr: np.ndarray, stream: object = None) -> None:
        """Copy it to an array of the shape that `copy_from` takes."""
        if not out_arr.flags.c_contiguous:
            raise ValueError("The output array must be C-contiguous")
        self._match(out_arr)
        out_arr[...] = self.memory.reshape(out_arr.shape)

    def _match(self, array: np.ndarray) -> None:
        if array.shape != self.shape:
            raise ValueError(f"shape mismatch: the array has {array.shape}, the CUDA array {self.shape}")
        if array.dtype != self.desc.dtype:
            raise ValueError(f"dtype mismatch: the array has {array.dtype}, the CUDA array {self.desc.dtype}")

    def __str__(self) -> str:
        return f"a CUDA array ({self.desc.dtype}, shape {self.shape})"


class ResourceDescriptor:
    """The memory of a texture or surface: a CUDA array, or the linear or pitched memory of an array."""

    def __init__(
        self,
        restype: int,
        cuArr: CUDAarray | None = None,
        arr: np.ndarray | None = None,
        chDesc: ChannelFormatDescriptor | None = None,
        sizeInBytes: int = 0,
        width: int = 0,
        height: int = 0,
        pitchInBytes: int = 0,
    ) -> None:
        if restype == cudaResourceTypeMipmappedArray:
            raise NotImplementedError("cudaResourceTypeMipmappedArray is currently not supported.")
        self.restype, self.cuArr, self.arr, self.chDesc = restype, cuArr, arr, chDesc
        self.sizeInBytes, self.width, self.height = sizeInBytes, width, height
        self.pitchInBytes = pitchInBytes
        if restype == cudaResourceTypeArray:
            if cuArr is None:
                raise ValueError("cudaResourceTypeArray needs cuArr, a CUDAarray")
            return
        if arr is None or chDesc is None:
            raise ValueError("linear and pitched memory need arr, a NumPy array, and chDesc")
        if not arr.flags.c_contiguous:
            raise ValueError("the memory of a texture must be contiguous: pass np.ascontiguousarray(...)")
        texel = chDesc.dtype.itemsize * chDesc.channels
        row = sizeInBytes if restype == cudaResourceTypeLinear else width * texel
        needed = row if restype == cudaResourceTypeLinear else (height - 1) * pitchInBytes + row
        if restype == cudaResourceTypePitch2D and (pitchInBytes % PITCH_ALIGNMENT or row > pitchInBytes):
            raise ValueError(
                f"pitchInBytes={pitchInBytes} must be a multiple of {PITCH_ALIGNMENT} that holds a row of "
                f"{row} bytes"
            )
        if row < texel or height < (restype == cudaResourceTypePitch2D) or needed > arr.nbytes:
            raise ValueError(f"the texture takes {needed} bytes; the array has {arr.nbytes}")
        if row // texel > MOST_LINEAR:
            raise ValueError(f"linear memory of {row // texel} texels: a texture has at most {MOST_LINEAR}")

    @property
    def desc(self) -> ChannelFormatDescriptor:
        """Return the format of a texel."""
        desc = self.cuArr.desc if self.cuArr else self.chDesc
        assert desc is not None
        return desc

    @property
    def geometry(self) -> str:
        """Return which functions read it, as in GEOMETRIES."""
        if self.cuArr:
            return self.cuArr.geometry
        return "linear" if self.restype == cudaResourceTypeLinear else "2d"

    def record(self) -> Record:
        """Return where its texels lie."""
        texel = self.desc.dtype.itemsize * self.desc.channels
        memory = self.cuArr.memory if self.cuArr else self.arr
        assert memory is not None
        width, height, depth = self.width or self.sizeInBytes // texel, self.height, 0
        if self.cuArr:
            width, height, depth = self.cuArr.width, self.cuArr.height, self.cuArr.depth
        pitch = self.pitchInBytes or width * texel
        return Record(
            data=memory.ctypes.data,
            pitch=pitch,
            slice=pitch * max(height, 1),
            kind=GEOMETRIES.index(self.geometry),
            width=width,
            height=max(height, 1),
            depth=max(depth, 1),
            texel_bytes=texel,
            channels=self.desc.channels,
            format=FORMATS.index(self.desc.dtype),
        )


class TextureDescriptor:
    """How a texture is read: beyond its edges, between its texels, as numbers or as fractions."""

    def __init__(
        self,
        addressModes: Iterable[int] | None = None,
        filterMode: int = cudaFilterModePoint,
        readMode: int = cudaReadModeElementType,
        sRGB: int | None = None,
        borderColors: Iterable[float] | None = None,
        normalizedCoords: int | None = None,
        maxAnisotropy: int | None = None,
    ) -> None:
        modes, colours = tuple(addressModes or ()), tuple(borderColors or ())
        if len(modes) > 3 or any(mode not in range(4) for mode in modes):
            raise ValueError(f"addressModes={modes}: up to three of the modes cudaAddressMode...")
        if len(colours) > 4:
            raise ValueError(f"borderColors={colours}: up to four numbers")
        if sRGB:
            raise ValueError("the simulator has no textures in sRGB")
        if maxAnisotropy is not None and maxAnisotropy > 1:
            raise ValueError("the simulator has no anisotropic filtering")
        self.modes = modes + (cudaAddressModeWrap,) * (3 - len(modes))
        self.colours = colours + (0.0,) * (4 - len(colours))
        self.filter, self.read_mode = filterMode, readMode
        self.normalized = bool(normalizedCoords)

    def get_texture_desc(self) -> dict[str, object]:
        """Return what the descriptor was made of."""
        return {
            "addressMode": self.modes,
            "filterMode": self.filter,
            "readMode": self.read_mode,
            "sRGB": 0,
            "borderColor": self.colours,
            "normalizedCoords": int(self.normalized),
            "maxAnisotropy": 0,
        }


class _Object:
    """A texture or a surface; `ptr` is its handle, which a kernel gets."""

    def __init__(self, resource: ResourceDescriptor, record: Record) -> None:
        global _last
        _last += 1
        self.ResDesc, self.record, self.ptr = resource, record, _last
        _live[self.ptr] = self

    @property
    def geometry(self) -> str:
        """Return which functions read it, as in GEOMETRIES."""
        return self.ResDesc.geometry

    @property
    def is_surface(self) -> bool:
        """Say whether it is a surface."""
        return isinstance(self, SurfaceObject)

    def __str__(self) -> str:
        resource, record = self.ResDesc, self.record
        sizes = (record.width, record.height, record.depth)
        shown = " x ".join(
            str(size) for size in sizes[: 1 + max(i for i in range(3) if i == 0 or sizes[i] > 1)]
        )
        what = "surface" if self.is_surface else "texture"
        channels = f", {record.channels} channels" if record.channels > 1 else ""
        return f"a {what} of {shown} texels ({resource.desc.dtype}{channels}), made for {self.calls}"

    @property
    def calls(self) -> str:
        """Return the names of the functions that read it."""
        name = CALLS[self.geometry]
        return f"{name.replace('tex', 'surf')}read and -write" if self.is_surface else name


class TextureObject(_Object):
    """A texture that a kernel takes as a `cudaTextureObject_t`."""

    def __init__(self, ResDesc: ResourceDescriptor, TexDesc: TextureDescriptor) -> None:
        dtype, record = ResDesc.desc.dtype, ResDesc.record()
        is_small = dtype.kind in "iu" and dtype.itemsize < 4
        as_fraction = TexDesc.read_mode == cudaReadModeNormalizedFloat
        is_float = dtype.kind == "f" or (as_fraction and is_small)
        if as_fraction and not is_small and dtype.kind in "iu":
            raise ValueError(f"cudaReadModeNormalizedFloat reads integers of 8 and 16 bits, not {dtype}")
        if TexDesc.filter == cudaFilterModeLinear and not is_float:
            raise ValueError(
                f"cudaFilterModeLinear mixes floats, not {dtype}: read it with cudaReadModeNormalizedFloat, "
                "or with cudaFilterModePoint"
            )
        if "cube" in ResDesc.geometry and not TexDesc.normalized:
            raise ValueError("a cubemap is read in a direction: its texture needs normalizedCoords=1")
        record.largest = int(np.iinfo(dtype).max) if as_fraction and is_small else 0
        record.is_normalized = TexDesc.normalized
        record.is_linear = TexDesc.filter == cudaFilterModeLinear
        for axis, mode in enumerate(TexDesc.modes):
            repeats = mode in (cudaAddressModeWrap, cudaAddressModeMirror) and not TexDesc.normalized
            setattr(record, f"mode_{axis}", cudaAddressModeClamp if repeats else mode)
        if ResDesc.geometry == "linear":  # beyond its end there are zeros
            record.mode_0 = cudaAddressModeBorder
        for channel, colour in enumerate(TexDesc.colours if ResDesc.geometry != "linear" else ()):
            setattr(record, f"border_{channel}", _border_bits(colour, dtype, bool(record.largest)))
        super().__init__(ResDesc, record)
        self.TexDesc = TexDesc


def _border_bits(colour: float, dtype: np.dtype, as_fraction: bool) -> int:
    """Return the 32 bits that are read beyond a border, as an H200 gives them."""
    number = np.float32(colour)
    if as_fraction:
        number = np.clip(number, np.float32(-1 if dtype.kind == "i" else 0), np.float32(1))
    bits = number.view(np.int32)
    if dtype == np.float16:
        bits &= ~0x1FFF  # the bits of a mantissa that a half has not
    is_cut = dtype.kind in "iu" and dtype.itemsize < 4 and not as_fraction
    return int(bits.astype(dtype) if is_cut else bits)


class SurfaceObject(_Object):
    """A surface that a kernel takes as a `cudaSurfaceObject_t`."""

    def __init__(self, ResDesc: ResourceDescriptor) -> None:
        if ResDesc.cuArr is None:
            raise ValueError("a surface needs a CUDA array (cudaResourceTypeArray)")
        if not ResDesc.cuArr.flags & cudaArraySurfaceLoadStore:
            raise ValueError("a surface needs a CUDA array made with flags=cudaArraySurfaceLoadStore")
        record = ResDesc.record()
        record.kind += SURFACE
        super().__init__(ResDesc, record)


_last = 0  # of the handles; none is given twice
_live = weakref.WeakValueDictionary[int, _Object]()


def existing(handle: int) -> _Object | None:
    """Return the object that has a handle now."""
    return _live.get(handle)


def existed(handle: int) -> bool:
    """Say whether an object has ever had the handle."""
    return 0 < handle <= _last


class Table:
    """The textures and surfaces that exist when a launch begins, for generated code to look them up."""

    def __init__(self) -> None:
        self.objects = dict(_live)  # kept until the launch has ended
        count = max(self.objects, default=0) + 1
        self.pointers = (ctypes.c_void_p * count)()
        for handle, each in self.objects.items():
            self.pointers[handle] = ctypes.addressof(each.record)

    def arrays(self) -> list[CUDAarray]:
        """Return the CUDA arrays of the surfaces."""
        found = [each.ResDesc.cuArr for each in self.objects.values() if each.is_surface]
        return list({id(array): array for array in found if array}.values())
