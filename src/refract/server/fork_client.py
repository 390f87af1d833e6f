"""The supervisor's side of a fork server."""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import refract

FORK_SERVER_COMMAND = (
    sys.executable,
    "-P",
    "-c",
    "import gc; gc.disable(); from refract.server.fork_server import main; main()",
)
_PR_SET_CHILD_SUBREAPER = 36


class ForkedProcess:
    """A process of a fork server, used like one of `asyncio.subprocess`.

    It is a child of the fork server, so its end is noticed by that of a pipe. Without a process id
    it was never forked, and has ended.
    """

    def __init__(self, pid: int | None, status_reader: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = -signal.SIGKILL
        self._status_reader = status_reader
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(status_reader, self._on_status)

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.pid is not None and self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for the exit status; -9 if the process left none."""
        await self._ended.wait()
        return self._status

    def _on_status(self) -> None:
        """Take the exit status, and then the end of the pipe, which is that of the process."""
        status = os.read(self._status_reader, 1)
        if status:
            self._status = status[0]
            return
        asyncio.get_running_loop().remove_reader(self._status_reader)
        os.close(self._status_reader)
        if self.pid is not None:
            # It became a child of this process if its fork server ended before.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        self.returncode = self._status
        self._ended.set()


class ForkServer:
    """Starts processes by a fork server of the installed code, which runs only while it is used."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._connection: socket.socket | None = None
        self._code: tuple[int, int] | None = None

    async def fork(
        self,
        title: str,
        entry_point: str,
        arguments: Sequence[str] = (),
        descriptors: Sequence[int] = (),
    ) -> ForkedProcess:
        """Start a process that calls an entry point; it gets copies of the descriptors."""
        request = {"title": title, "entry_point": entry_point, "arguments": list(arguments)}
        forking = asyncio.ensure_future(self._fork(json.dumps(request).encode(), descriptors))
        try:
            return await asyncio.shield(forking)
        except asyncio.CancelledError:
            forking.add_done_callback(lambda done: done.result().kill())
            raise

    async def retire(self) -> None:
        """End the fork server. The next process is forked by another, with the code of then."""
        async with self._lock:
            await self._end()

    async def _fork(self, request: bytes, descriptors: Sequence[int]) -> ForkedProcess:
        status_reader, status_writer = os.pipe()
        try:
            async with self._lock:
                sent = [status_writer, *descriptors]
                # It may have ended since it was used last; a new one ends only if it can't work.
                pid = await self._send_request(request, sent) or await self._send_request(
                    request, sent
                )
        finally:
            os.close(status_writer)
        return ForkedProcess(pid, status_reader)

    async def _send_request(self, request: bytes, descriptors: list[int]) -> int | None:
        """Return the id of the forked process, or None if the fork server has ended."""
        connection = self._connection
        if connection is None or self._code != _identify_code():
            await self._end()
            connection = await self._start()
        line = b""
        with contextlib.suppress(ConnectionError):
            socket.send_fds(connection, [request], descriptors)
            line = await asyncio.get_running_loop().sock_recv(connection, 64)
        if not line:
            await self._end()
        return int(line) if line else None

    async def _start(self) -> socket.socket:
        _adopt_orphans()
        self._code = _identify_code()
        connection, other_end = socket.socketpair()
        connection.setblocking(False)
        self._connection = connection
        with other_end:
            self._process = await asyncio.create_subprocess_exec(
                *FORK_SERVER_COMMAND,
                str(other_end.fileno()),
                env=self._environment,
                pass_fds=(other_end.fileno(),),
            )
        return connection

    async def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            await self._process.wait()
            self._process = None


def _adopt_orphans() -> None:
    """Become the parent of forked processes when their fork server ends, on Linux."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _identify_code() -> tuple[int, int] | None:
    """Return what changes when another version is installed."""
    try:
        status = Path(refract.__file__).stat()
    except OSError:  # while files are being replaced
        return None
    return status.st_ino, status.st_mtime_ns
