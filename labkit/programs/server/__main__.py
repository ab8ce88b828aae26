"""`python -m labkit.programs.server SOCKET MEMORY`: started by a program's library, with two open files."""

import ctypes
import os
import signal
import sys

from labkit.programs import library
from labkit.programs.server.wire import Connection, Gone

assert sys.platform != "win32"  # programs run on Linux


def main(socket: int, file: int, version: str) -> None:
    """Serve one program until it ends."""
    _end_with_parent()
    if version != library.version():
        print("labkit: labkit has changed since this program was built. Build it again", file=sys.stderr)
        return
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the terminal's Ctrl-C ends the program, and so this process
    connection = Connection(socket)
    from labkit.programs.server.serving import Server  # here: it imports the simulator

    server = Server(file)
    try:
        while True:
            request, reader = connection.receive()
            connection.send(server.answer(request, reader))
    except Gone:
        server.end()
    sys.stdout.flush()
    os._exit(0)


def _end_with_parent() -> None:
    """Have Linux end this process when the program dies, whatever way."""
    death_signal = 1
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
