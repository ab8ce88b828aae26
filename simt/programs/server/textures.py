"""A program's CUDA arrays, textures and surfaces: the simulator's, with their texels in the shared memory."""

from __future__ import annotations

from simt import texture
from simt.programs.server.memory import Memory
from simt.programs.server.wire import Reader


class Textures:
    """Keeps what the program has made, by the numbers that it knows them by."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._arrays: dict[int, texture.CUDAarray] = {}
        self._objects: dict[int, texture.TextureObject | texture.SurfaceObject] = {}
        self._last = 0

    def array(self, reader: Reader) -> int:
        """Make a CUDA array. Raises ValueError for a format or shape that no GPU has."""
        start, format_ = reader.u64(), self._format(reader)
        width, height, depth, flags = (reader.u32() for _ in range(4))
        made = texture.CUDAarray(format_, width, height, depth, flags)
        made.memory = self._memory.view(start, made.memory.nbytes).view(made.memory.dtype)
        self._last += 1
        self._arrays[self._last] = made
        return self._last

    def object(self, reader: Reader) -> int:
        """Make a texture or a surface; return its handle. Raises ValueError as the constructors do."""
        how = None
        if reader.u32():
            numbers = [reader.u32() for _ in range(8)]
            colours = [reader.double() for _ in range(4)]
            *modes, filter_mode, read_mode, is_normalized, is_srgb, anisotropy = numbers
            how = texture.TextureDescriptor(
                modes, filter_mode, read_mode, is_srgb, colours, is_normalized, anisotropy
            )
        resource = self._resource(reader)
        made = texture.TextureObject(resource, how) if how else texture.SurfaceObject(resource)
        self._objects[made.ptr] = made
        return made.ptr

    def destroy(self, is_object: bool, number: int) -> bool:
        """Forget an array or an object; say whether it was there."""
        kept: dict[int, object] = self._objects if is_object else self._arrays  # type: ignore[assignment]
        return kept.pop(number, None) is not None

    def _resource(self, reader: Reader) -> texture.ResourceDescriptor:
        kind = reader.u32()
        if kind == texture.cudaResourceTypeArray:
            return texture.ResourceDescriptor(kind, cuArr=self._arrays[reader.u32()])
        start, format_ = reader.u64(), self._format(reader)
        if kind == texture.cudaResourceTypeLinear:
            size = reader.u64()
            return texture.ResourceDescriptor(kind, None, self._memory.view(start, size), format_, size)
        width, height, pitch = reader.u64(), reader.u64(), reader.u64()
        memory = self._memory.view(start, height * pitch)
        return texture.ResourceDescriptor(kind, None, memory, format_, 0, width, height, pitch)

    def _format(self, reader: Reader) -> texture.ChannelFormatDescriptor:
        return texture.ChannelFormatDescriptor(*(reader.u32() for _ in range(5)))
