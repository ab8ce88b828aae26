"""What crosses the border of a sandbox: plain values as MessagePack, never objects.

Numbers, texts, lists, dictionaries with texts as keys, NumPy arrays and scalars of plain numbers, and a GPU
of data/gpus.csv by its name. What is none of these is sent as `Opaque`: its text. Nothing that is received
runs code, whatever the bytes are.
"""

import math
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from time import monotonic
from typing import Any

import msgpack
import numpy as np

from labkit.occupancy import Gpu, gpu
from labkit.simt.checks.sanitizer import empty, is_empty

MOST_BYTES = 2**28  # of a message: the arrays of a product of 4096 x 4096 and some room
SHOWN = 300  # characters of an Opaque
_ARRAY, _SCALAR, _EMPTY, _OPAQUE, _CALLBACK, _TUPLE, _GPU = range(1, 8)
_NUMBERS = "biufc"  # kinds of dtypes


class BorderError(Exception):
    "The other side has gone, is late, or sends what is no message."


@dataclass(frozen=True)
class Opaque:
    "A value that is no plain one, by its text; it equals nothing but itself."

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Callback:
    "A function of the other side, by its number."

    number: int


class Channel:
    "Messages over a connected socket, in both directions. What arrives is `most` bytes at most."

    def __init__(self, connected: socket.socket, most: int = MOST_BYTES) -> None:
        self._socket = connected
        self._unpacker = msgpack.Unpacker(
            max_buffer_size=most, ext_hook=_decoded, unicode_errors="replace", strict_map_key=True
        )

    def send(self, message: Any) -> None:
        "Raises BorderError where the other side has gone or does not listen."
        data = msgpack.packb(message, default=_encoded, unicode_errors="replace", strict_types=True)
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise BorderError(f"the message was not taken: {error}") from None

    def receive(self, seconds: float | None = None, is_alive: Callable[[], bool] = lambda: True) -> Any:
        "The next message. Raises BorderError where none comes in time, or the other side is dead."
        until = math.inf if seconds is None else monotonic() + seconds
        while True:
            try:
                return self._unpacker.unpack()
            except msgpack.OutOfData:
                pass
            except Exception as error:  # whatever strange bytes make MessagePack and NumPy raise
                raise BorderError(f"what arrived is no message: {error}") from None
            self._feed(until, is_alive)

    def close(self) -> None:
        "Close the socket."
        self._socket.close()

    def _feed(self, until: float, is_alive: Callable[[], bool]) -> None:
        "Wait for some bytes more."
        while True:
            self._socket.settimeout(min(0.5, max(0.01, until - monotonic())))
            try:
                data = self._socket.recv(2**20)
            except TimeoutError:
                if monotonic() >= until:
                    raise BorderError("no answer in time") from None
                if not is_alive():
                    raise BorderError("the other side has ended") from None
                continue
            except OSError as error:
                raise BorderError(f"the connection broke: {error}") from None
            finally:
                self._socket.settimeout(None)
            if not data:
                raise BorderError("the other side has ended")
            try:
                self._unpacker.feed(data)
            except msgpack.BufferFull:
                raise BorderError("the message is too long") from None
            return


def _encoded(value: Any) -> msgpack.ExtType | float:
    "What MessagePack has no form for."
    if isinstance(value, tuple):  # a list is one of its own
        return msgpack.ExtType(_TUPLE, _packed(list(value)))
    if isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS:
        if is_empty(value):
            return msgpack.ExtType(_EMPTY, _packed([value.dtype.str, list(value.shape)]))
        return msgpack.ExtType(_ARRAY, _packed([value.dtype.str, list(value.shape), value.tobytes()]))
    if isinstance(value, np.generic) and value.dtype.kind in _NUMBERS:
        return msgpack.ExtType(_SCALAR, _packed([value.dtype.str, value.tobytes()]))
    if isinstance(value, Callback):
        return msgpack.ExtType(_CALLBACK, _packed(value.number))
    if isinstance(value, Gpu):
        return msgpack.ExtType(_GPU, _packed(value.name))
    if isinstance(value, Real | Decimal):  # Fraction(1, 3), and classes of one's own that are a number
        with suppress(Exception):
            return float(value)
    return msgpack.ExtType(_OPAQUE, _packed(_text(value)))


def _packed(value: Any) -> bytes:
    return msgpack.packb(value, default=_encoded, unicode_errors="replace", strict_types=True)


def _text(value: Any) -> str:
    "How Python shows the value; its class where that fails."
    try:
        return str(repr(value))[:SHOWN]
    except Exception:
        return f"<{type(value).__name__}>"


def _decoded(code: int, data: bytes) -> Any:
    "Raises ValueError for what `_encoded` does not make."
    value = msgpack.unpackb(data, ext_hook=_decoded, unicode_errors="replace")
    if code == _TUPLE:
        return tuple(value)
    if code == _OPAQUE:
        return Opaque(value[:SHOWN])
    if code == _CALLBACK:
        return Callback(int(value))
    if code == _GPU:
        return gpu(value)
    kind = np.dtype(value[0])
    if kind.kind not in _NUMBERS or kind.str != value[0]:
        raise ValueError(f"an array of {value[0]!r}")
    if code == _SCALAR:
        return np.frombuffer(value[1], kind, 1)[0]
    shape = tuple(int(side) for side in value[1])
    if code == _EMPTY and math.prod(shape) * kind.itemsize <= MOST_BYTES:
        return empty(shape, kind)
    if code == _ARRAY:
        return np.frombuffer(value[2], kind).reshape(shape).copy()
    raise ValueError(f"a message of type {code}")
