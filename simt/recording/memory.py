"""The memory of a recorded block: objects with names, in one space of 32-bit addresses."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from simt.common.errors import SimtError
from simt.common.limits import WARP
from simt.compiler.debug_info import Named
from simt.compiler.macros import names_of
from simt.findings import last_name
from simt.launch.arguments import Range
from simt.module import Recorded

ALIGNMENT = 512  # of the first byte of an array: sectors and banks of the real address stay the same
GAP = 1 << 16  # between two arrays: an access just past the end of one is still seen there
NOWHERE = 0xFFFFFFFF  # the address of what lies in no object
Declared = dict[str, tuple[str, tuple[int, ...]]]  # type and shape of arrays, by name
_SHARED = re.compile(r"__shared__\s+(?:(?:__align__|alignas)\s*\(\w+\)\s*)?([\w:<> ]+?)\s+(\w+\s*\[[^;]*);")
_ARRAY = re.compile(r"(\w+)\s*((?:\[[^\]]*\]\s*)+)")


@dataclass(frozen=True)
class Object:
    """An array or variable: `start` is its address in the recording, `host` in this process.

    `space` is shared, global, local or const; `type` and `shape` are those of its elements, and `item` their
    bytes.
    """

    space: str
    name: str
    start: int
    bytes: int
    type: str
    shape: tuple[int, ...]
    item: int
    host: int

    def dtype(self, size: int) -> str:
        """Return the NumPy type in which an access of `size` bytes is read; "" where that is unknown."""
        name = NUMPY_TYPES.get(self.type, self.type)
        try:
            return name if np.dtype(name).itemsize == size else ""
        except TypeError:
            return ""


class Memory:
    """The objects of a recorded block, and the addresses that it uses for them."""

    def __init__(
        self,
        recorded: Recorded,
        names: Sequence[str],
        source: str,
        macros: Mapping[str, str],
        types: Mapping[str, str],
        named: Sequence[Named],
    ) -> None:
        self.shared_bytes = recorded.shared_bytes
        self.shared_start = ALIGNMENT
        record, storage = recorded.record, recorded.storage
        self._shared_host = record.shared_start
        self.objects = _shared(recorded, declared(source, macros), types, self.shared_start)
        following = _aligned(self.shared_start + recorded.shared_bytes + GAP)
        self.local_start, self.local_bytes = following, storage.local_bytes
        self._local_hosts = record.local_starts
        self.objects += _local(recorded, named, following)
        following = _aligned(following + storage.local_bytes + GAP)
        self._ranges: list[tuple[int, int, int]] = []  # host start, host end, start
        self._of_argument: dict[int, str] = {}
        for number, range_ in enumerate(recorded.ranges):
            if not range_.size or range_.start in [each[0] for each in self._ranges]:
                continue
            following += range_.shift
            self._ranges.append((range_.start, range_.start + range_.size, following))
            self.objects.append(_array(range_, following, names[number] if number < len(names) else ""))
            self._of_argument[number] = self.objects[-1].name
            following = _aligned(following + range_.size + GAP)
        if following > NOWHERE:
            raise SimtError(
                "the arrays of this launch take more than 4 GB together; record a launch with smaller arrays"
            )

    def places(self, addresses: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """Return the addresses in the recording of host addresses: rows of 32, each of a warp."""
        found = np.full(addresses.shape, NOWHERE, np.int64)
        host = addresses.astype(np.int64)
        for first, end, start in self._ranges:
            near = (host >= first - GAP // 2) & (host < end + GAP // 2)
            inside = (host >= first) & (host < end)
            found = np.where(inside | (near & (found == NOWHERE)), host - first + start, found)
        of_shared = host - self._shared_host
        near = (of_shared >= -256) & (of_shared < self.shared_bytes + GAP // 2) & (found == NOWHERE)
        inside = (of_shared >= 0) & (of_shared < self.shared_bytes)
        found = np.where(inside | near, of_shared + self.shared_start, found)
        if self.local_bytes:
            starts = np.array(self._local_hosts)[warps][:, None]
            offset = host - starts
            inside = (offset >= 0) & (offset < WARP * self.local_bytes)
            found = np.where(inside, offset % self.local_bytes + self.local_start, found)
        return found.astype(np.uint32)

    def name_of(self, argument: int) -> str:
        """Return the name of the array that is passed at this position."""
        return self._of_argument.get(argument, "")

    def object_at(self, address: int) -> Object | None:
        """Return the object that has an address."""
        return next((each for each in self.objects if each.start <= address < each.start + each.bytes), None)


def element(found: Object, address: int) -> str:
    """Name an element as C++ does: `a[3][5]`."""
    index = (address - found.start) // found.item
    return found.name + "".join(f"[{each}]" for each in indices(found, index))


def indices(found: Object, index: int) -> tuple[int, ...]:
    """Return the indices of an element by its number."""
    if math.prod(found.shape) <= index:
        return (index,)
    return tuple(int(each) for each in np.unravel_index(index, found.shape))


def _array(range_: Range, start: int, name: str) -> Object:
    array = range_.owner
    if isinstance(array, np.ndarray):
        shape, type_, item = array.shape or (1,), array.dtype.name, array.itemsize
    else:
        shape, type_, item = (range_.size,), "uint8", 1
    name = name or (last_name(str(array)) if isinstance(array, str) else f"argument {range_.position + 1}")
    space = "const" if range_.is_constant else "global"
    return Object(space, name, start, range_.size, type_, tuple(shape), item, range_.start)


def _shared(recorded: Recorded, written: Declared, types: Mapping[str, str], start: int) -> list[Object]:
    """Return the variables in shared memory; extern arrays take what static ones leave."""
    offsets = sorted((offset, name) for name, offset in recorded.storage.shared.items())
    ends = [*(offset for offset, _ in offsets), recorded.shared_bytes][1:]
    found = []
    for (offset, name), end in zip(offsets, ends, strict=True):
        size, plain = end - offset, last_name(name)
        type_, shape = written.get(plain, (types.get(name, "b32"), ()))
        item = ITEM_BYTES.get(type_, 4)
        size = math.prod(shape) * item if shape and math.prod(shape) * item <= size else size
        if size and not name.startswith("%"):
            if math.prod(shape or (0,)) * item != size:
                shape = (size // item,)
            host = recorded.record.shared_start + offset
            found.append(Object("shared", plain, start + offset, size, type_, shape, item, host))
    return found


NUMPY_TYPES = {
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "unsigned int": "uint32",
    "unsigned": "uint32",
    "half": "float16",
    "__half": "float16",
    "f32": "float32",
    "f64": "float64",
    "s32": "int32",
    "u32": "uint32",
}


def _local(recorded: Recorded, named: Sequence[Named], start: int) -> list[Object]:
    """Return the variables in local memory, or the memory itself where nothing names them."""
    found, storage = [], recorded.storage
    for depot, offset in storage.local.items():
        for each in named:
            places = (place.name.partition("+") for place in each.places)
            inner = next((int(more or 0) for name, _, more in places if name == depot.split(":")[-1]), None)
            if inner is not None:
                is_address = each.type.endswith(("&", "*"))  # of an array, say: float[64]&
                type_, *dims = [each.type] if is_address else re.split(r"[\[\]]+", each.type.strip("]"))
                item = 8 if is_address else ITEM_BYTES.get(type_, 4)
                shape = tuple(int(dim) for dim in dims if dim) or (1,)
                size, at = item * math.prod(shape), start + offset + inner
                found.append(Object("local", each.name, at, size, type_, shape, item, 0))
    if not found and storage.local_bytes:
        found = [
            Object(
                "local", "local memory", start, storage.local_bytes, "b32", (storage.local_bytes // 4,), 4, 0
            )
        ]
    return found


ITEM_BYTES = {
    **dict.fromkeys(("double", "long", "long long", "size_t", "float2", "int2"), 8),
    **dict.fromkeys(("half", "__half", "__nv_bfloat16", "short", "unsigned short"), 2),
    **dict.fromkeys(("char", "unsigned char", "bool", "signed char"), 1),
    **dict.fromkeys(("float4", "int4", "double2"), 16),
    **dict.fromkeys(("f64", "b64", "u64", "s64"), 8),
    **dict.fromkeys(("f16", "b16", "u16", "s16"), 2),
    **dict.fromkeys(("b8", "u8", "s8"), 1),
}


def declared(source: str, macros: Mapping[str, str]) -> Declared:
    """Return type and shape of the arrays that a source declares in shared memory, where it says them."""
    names, found = names_of(source, macros), Declared()
    declarations = (
        (type_, *each) for type_, arrays in _SHARED.findall(source) for each in _ARRAY.findall(arrays)
    )
    for type_, name, dims in declarations:
        type_ = names.text(type_)
        shape: tuple[int, ...] = ()
        with suppress(ValueError):  # `extern __shared__ float a[]`, or what is no plain arithmetic
            shape = tuple(names.whole(each) for each in re.findall(r"\[([^\]]*)\]", dims))
        if all(shape) and (shape or type_ in ITEM_BYTES or type_ in ("float", "int")):
            found[name] = type_, shape
    return found


def _aligned(address: int) -> int:
    return -(-address // ALIGNMENT) * ALIGNMENT
