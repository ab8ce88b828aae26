"""Requests from the program, one at a time: a number and bytes, answered by bytes. See runtime/wire.c."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field

BEGIN = struct.Struct("<QQ")  # comes first over the record's socket: the seed, and the program's process


class Gone(Exception):
    """The program has ended."""


@dataclass
class Reader:
    """Takes numbers and texts out of a request, one after the other."""

    data: bytes
    at: int = 0

    def u32(self) -> int:
        """Take a number of 4 bytes."""
        return int(self._take("<I"))

    def u64(self) -> int:
        """Take a number of 8 bytes."""
        return int(self._take("<Q"))

    def double(self) -> float:
        """Take a float of 8 bytes."""
        return float(self._take("<d"))

    def text(self) -> str:
        """Take a text: its length, and its bytes."""
        length = self.u32()
        self.at += length
        return self.data[self.at - length : self.at].decode(errors="replace")

    def rest(self) -> bytes:
        """Take all that is left."""
        return self.data[self.at :]

    def _take(self, form: str) -> int | float:
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        assert isinstance(value, int | float)
        return value


@dataclass
class Answer:
    """Collects the bytes of an answer."""

    parts: list[bytes] = field(default_factory=list)

    def u32(self, *numbers: int) -> Answer:
        """Add numbers of 4 bytes."""
        self.parts.append(struct.pack(f"<{len(numbers)}I", *numbers))
        return self

    def u64(self, *numbers: int) -> Answer:
        """Add numbers of 8 bytes."""
        self.parts.append(struct.pack(f"<{len(numbers)}Q", *numbers))
        return self

    def double(self, *numbers: float) -> Answer:
        """Add floats of 8 bytes."""
        self.parts.append(struct.pack(f"<{len(numbers)}d", *numbers))
        return self

    def text(self, text: str) -> Answer:
        """Add a text: its length, and its bytes."""
        data = text.encode()
        self.parts += [struct.pack("<I", len(data)), data]
        return self


class Connection:
    """One end of the sockets that the program has made."""

    def __init__(self, number: int) -> None:
        self._socket = socket.socket(fileno=number)

    def receive(self) -> tuple[int, Reader]:
        """Wait for a request. Raises Gone when the program has ended."""
        request, length = struct.unpack("<II", self._bytes(8))
        return request, Reader(self._bytes(length))

    def send(self, answer: Answer) -> None:
        """Answer the request. Raises Gone when the program has ended."""
        data = b"".join(answer.parts)
        try:
            self._socket.sendall(struct.pack("<I", len(data)) + data)
        except OSError as error:
            raise Gone from error

    def _bytes(self, length: int) -> bytes:
        parts = []
        while length:
            try:
                part = self._socket.recv(min(length, 1 << 20))
            except OSError as error:
                raise Gone from error
            if not part:
                raise Gone
            parts.append(part)
            length -= len(part)
        return b"".join(parts)
