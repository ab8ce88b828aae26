"""What crosses the border of a sandbox: plain values as MessagePack, never objects.

Numbers, texts, lists, dictionaries with texts as keys, NumPy arrays and scalars of plain numbers, and a GPU
of gpus.csv by its name. What is none of these is sent as `Opaque`: its text. Nothing that is received
runs code, whatever the bytes are, and it takes little more memory than its bytes: a message is a short text
in MessagePack, of which each byte may become a list, and behind it the numbers of its arrays.

    frame   lengths: of the text, and of the arrays' numbers together, big-endian; the text; the numbers
"""

import math
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from time import monotonic
from typing import Any

import msgpack
import numpy as np

from simt.common.occupancy import Gpu, gpu
from simt.launch.unwritten import empty, is_empty

MOST_BYTES = 2**28  # of a message's arrays: those of a product of 4096 x 4096 and some room
MOST_TEXT = 2**20
MOST_LEVELS = 20  # of lists in lists
MOST_ARRAYS, MOST_SIDES = 1000, 64  # of a message, and of an array
LONGEST_TYPE = 8  # characters
SECONDS = 60.0  # for the other side to take a message
POLL_SECONDS = 0.5
SHOWN = 300  # characters of an Opaque
_FRAME = struct.Struct(">IQ")
_ARRAY, _SCALAR, _EMPTY, _OPAQUE, _CALLBACK, _TUPLE, _GPU = range(1, 8)
_NUMBERS = "biufc"  # kinds of dtypes


class BorderError(Exception):
    """The other side has gone, is late, or sends what is no message."""


@dataclass(frozen=True)
class Opaque:
    """A value that is no plain one, by its text; it equals nothing but itself."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Callback:
    """A function of the other side, by its number."""

    number: int


class Channel:
    """Messages over a connected socket, in both directions."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def send(self, message: Any, seconds: float = SECONDS) -> None:
        """Send a message. Raises BorderError if it is too long, or the other side does not take it."""
        out = _Out()
        text = out.packed(message)
        numbers = sum(array.nbytes for array in out.arrays)
        if len(text) > MOST_TEXT or numbers > MOST_BYTES:
            raise BorderError("the message is too long")
        parts: list[bytes | memoryview] = [_FRAME.pack(len(text), numbers), text]
        parts += [array.data for array in out.arrays]
        until = monotonic() + seconds
        try:
            for data in parts:
                self._socket.settimeout(max(0.01, until - monotonic()))
                self._socket.sendall(data)
        except OSError as error:
            raise BorderError(f"the message was not taken: {error}") from None

    def receive(self, seconds: float | None = None, is_alive: Callable[[], bool] = lambda: True) -> Any:
        """Receive the next message. Raises BorderError if none comes in time, or the other side is dead."""
        until = math.inf if seconds is None else monotonic() + seconds
        text, numbers = _FRAME.unpack(self._taken(_FRAME.size, until, is_alive))
        if text > MOST_TEXT or numbers > MOST_BYTES:
            raise BorderError("the message is too long")
        packed = self._taken(text, until, is_alive)
        arrays = self._taken(numbers, until, is_alive)
        try:
            message = _In(arrays).unpacked(packed)
        except Exception as error:  # whatever strange bytes make MessagePack and NumPy raise
            raise BorderError(f"what arrived is no message: {str(error)[:SHOWN]}") from None
        if not _is_shallow(message, MOST_LEVELS):
            raise BorderError("what arrived nests too deep")
        return message

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _taken(self, count: int, until: float, is_alive: Callable[[], bool]) -> bytearray:
        """Receive so many bytes. Memory is taken only as they come, not as they are announced."""
        data = bytearray()
        while len(data) < count:
            self._socket.settimeout(max(0.01, min(POLL_SECONDS, until - monotonic())))
            try:
                part = self._socket.recv(min(count - len(data), 2**20))
            except TimeoutError:
                part = b""
                if not is_alive():
                    raise BorderError("the other side has ended") from None
            except OSError as error:
                raise BorderError(f"the connection broke: {error}") from None
            else:
                if not part:
                    raise BorderError("the other side has ended")
            if monotonic() >= until:
                raise BorderError("no answer in time")
            data += part
        return data


class _Out:
    """Packs a message; the arrays that stand behind it are gathered in `arrays`."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []

    def packed(self, value: Any) -> bytes:
        return msgpack.packb(value, default=self._form, unicode_errors="replace", strict_types=True)

    def _form(self, value: Any) -> msgpack.ExtType | float:
        """Give a form to what MessagePack has none for."""
        if isinstance(value, tuple):  # a list is one of its own
            return msgpack.ExtType(_TUPLE, self.packed(list(value)))
        if isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS:
            kind = _EMPTY if is_empty(value) else _ARRAY
            if kind == _ARRAY:
                self.arrays.append(np.ascontiguousarray(value).reshape(-1).view(np.uint8))
            return msgpack.ExtType(kind, self.packed([value.dtype.str, list(value.shape)]))
        if isinstance(value, np.generic) and value.dtype.kind in _NUMBERS:
            return msgpack.ExtType(_SCALAR, self.packed([value.dtype.str, value.tobytes()]))
        if isinstance(value, Callback):
            return msgpack.ExtType(_CALLBACK, self.packed(value.number))
        if isinstance(value, Gpu):
            return msgpack.ExtType(_GPU, self.packed(value.name))
        if isinstance(value, Real | Decimal):  # Fraction(1, 3), and classes of one's own that are a number
            with suppress(Exception):
                return float(value)
        return msgpack.ExtType(_OPAQUE, self.packed(_text(value)))


class _In:
    """Unpacks a message, with the numbers of its arrays."""

    def __init__(self, numbers: bytearray) -> None:
        self._numbers, self._at, self._arrays, self._level = numbers, 0, 0, 0
        self._left = MOST_BYTES - len(numbers)  # for arrays that nobody has written

    def unpacked(self, text: bytes | bytearray) -> Any:
        """Unpack a message; strange bytes may raise any error."""
        if self._level >= MOST_LEVELS:  # a value in a value: MessagePack itself would go down without end
            raise ValueError("it nests too deep")
        self._level += 1
        try:
            return msgpack.unpackb(text, ext_hook=self._value, unicode_errors="replace")
        finally:
            self._level -= 1

    def _value(self, code: int, data: bytes) -> Any:
        """Make the value of an extension. Raises ValueError for what `_Out` does not make."""
        value = self.unpacked(data)
        if code == _TUPLE:
            return tuple(value)
        if code == _OPAQUE:
            return Opaque(value[:SHOWN])
        if code == _CALLBACK:
            return Callback(int(value))
        if code == _GPU:
            return gpu(value)
        name, told = value
        kind = np.dtype(name[:LONGEST_TYPE])
        if kind.kind not in _NUMBERS or kind.str != name:
            raise ValueError(f"an array of {kind}")
        if code == _SCALAR:
            return np.frombuffer(told, kind, 1)[0]
        self._arrays += 1
        shape = tuple(int(side) for side in told[:MOST_SIDES])
        if len(told) > MOST_SIDES or min(shape, default=0) < 0 or self._arrays > MOST_ARRAYS:
            raise ValueError(f"{self._arrays} arrays, one of shape {shape}")
        length = math.prod(shape) * kind.itemsize
        if code == _EMPTY and length <= self._left:
            self._left -= length
            return empty(shape, kind)
        if code == _ARRAY and length <= len(self._numbers) - self._at:
            start, self._at = self._at, self._at + length
            return np.frombuffer(self._numbers[start : self._at], kind).reshape(shape)
        raise ValueError(f"a message of type {code}")


def _is_shallow(value: Any, levels: int) -> bool:
    """Say whether nothing in it lies deeper: to show or to compare it, Python goes down as deep."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        return True
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in value)


def _text(value: Any) -> str:
    """Return how Python shows the value, or its class where that fails."""
    try:
        return str(repr(value))[:SHOWN]
    except Exception:
        return f"<{type(value).__name__}>"
