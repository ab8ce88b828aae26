"""Between a kernel's sockets in a sandbox and Jupyter's client: what the kernel sends is counted.

ZeroMQ takes a message into memory whole, however many parts it has. So a process that sends without end is
cut off here, before ZeroMQ sees it. The client finds the sockets in the grader's own folder.
"""

import asyncio
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

CONNECT_SECONDS, POLL_SECONDS = 60, 0.01
CHUNK = 2**16


class Relay:
    """Sockets `near` that are connected with those of a kernel, in the folder `far()`, which is None until
    it is there. `names` are those of the sockets. Of more than `most` bytes from the kernel `over()` is told.
    """

    def __init__(
        self,
        near: Path,
        far: Callable[[], Path | None],
        names: Iterable[str],
        most: int,
        over: Callable[[], None],
    ) -> None:
        self._near, self._far, self._names, self._left, self._over = near, far, tuple(names), most, over
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, args=(self._run(),), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Close all sockets."""
        if self._thread.is_alive():
            with suppress(RuntimeError):  # it has ended just now
                self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()
            self._loop.close()

    async def _run(self) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def accepted(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._connect(name, reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        servers = [
            await asyncio.start_unix_server(partial(accepted, name), self._near / name)
            for name in self._names
        ]
        await self._ended.wait()
        for server in servers:
            server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connect(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry the bytes of one connection, both ways, until one side ends it."""
        writers, ways = [writer], []
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                far = await self._far_socket(name)
            far_reader, far_writer = await asyncio.open_unix_connection(sock=far)
            writers.append(far_writer)
            ways = [
                asyncio.ensure_future(self._carry(reader, far_writer)),
                asyncio.ensure_future(self._carry(far_reader, writer, is_counted=True)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            pass
        finally:
            for way in ways:
                way.cancel()
            for each in writers:
                each.close()

    async def _far_socket(self, name: str) -> socket.socket:
        """Connect with the kernel as soon as it listens."""
        while True:
            far = self._far()
            if far is not None:
                with suppress(OSError):
                    return _connected(far, name)
            await asyncio.sleep(POLL_SECONDS)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_counted: bool = False
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                if is_counted:
                    self._left -= len(data)
                    if self._left < 0:
                        self._over()
                        return
                writer.write(data)
                await writer.drain()


def _connected(folder: Path, name: str) -> socket.socket:
    """Connect with a socket in the sandbox's folder. Raises OSError; also for a link, which may lead
    anywhere.
    """
    here = os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)
    try:
        if not stat.S_ISSOCK(os.fstat(handle).st_mode):
            raise OSError(f"{name} is no socket")
        connected = socket.socket(socket.AF_UNIX)
        try:
            connected.setblocking(False)
            connected.connect(f"/proc/self/fd/{handle}")
        except OSError:
            connected.close()
            raise
        return connected
    finally:
        os.close(handle)
