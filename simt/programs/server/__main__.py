"""`python -m simt.programs.server SOCKET MEMORY VERSION [RECORD]`, with open files by number.

A program's library starts it, or `simt.programs.recording`, which gets the record.
"""

import ctypes
import os
import signal
import socket
import sys

from simt.programs import library
from simt.programs.server.wire import BEGIN, Connection, Gone

assert sys.platform != "win32"  # programs run on Linux

_DEATH_SIGNAL, _DUMPABLE = 1, 4  # of prctl


def main(requests: int, file: int, version: str, record: int | None) -> None:
    """Serve one program until it ends."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_DEATH_SIGNAL, signal.SIGKILL)  # Linux ends this process when its parent dies, whatever way
    channel = None if record is None else socket.socket(fileno=record)
    if channel:
        prctl(_DUMPABLE, 0)  # the program, of the same user, cannot reach into this process
    if version != library.version():
        print("labkit: labkit has changed since this program was built. Build it again", file=sys.stderr)
        return
    # The terminal's Ctrl-C ends the program, and so this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(requests)
    from simt.programs.server.serving import Server  # here: it imports the simulator

    if channel:
        seed, program = BEGIN.unpack(channel.recv(BEGIN.size, socket.MSG_WAITALL))
        server = Server(file, program, seed)
    else:
        server = Server(file, os.getppid())
    try:
        while True:
            request, reader = connection.receive()
            connection.send(server.answer(request, reader))
    except Gone:
        server.end()
    if channel and server.recorder:
        server.recorder.send(channel, server.mistakes.told)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    numbers = [int(each) for each in (sys.argv[1], sys.argv[2], *sys.argv[4:])]
    main(numbers[0], numbers[1], sys.argv[3], numbers[2] if len(numbers) > 2 else None)
