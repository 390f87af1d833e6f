"""Connections that one process passes to another: the socket, and what was read from it.

A queue is a pair of Unix sockets. The supervisor keeps both ends open and gives one to the
processes that send and the other to those that receive, so that a connection waits in it while the
receiving process is being replaced, as in the queue of a listening socket.
"""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

import structlog

MAX_MESSAGE_BYTES: Final = 384 * 1024
"""More than a head and what an event loop reads at once (64 and 250 KiB)."""
_BUFFER_BYTES: Final = 1 << 20
"""Asked for; the kernel grants at least 416 KiB."""
_OPEN: Final = b"o"
_LAST: Final = b"l"

AcceptConnection = Callable[[socket.socket, bytes, bool], None]
"""Called with a connection, what was read from it, and whether its next response is the last."""


def open_connection_queue() -> tuple[socket.socket, socket.socket]:
    """Return the receiving and the sending end of a new queue."""
    receiver, sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (receiver, sender):
        end.setblocking(False)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    return receiver, sender


class ConnectionSender:
    """The sending end of a queue. While the queue is full, connections wait here."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._waiting: deque[tuple[asyncio.Transport, bytes]] = deque()
        self._log = structlog.get_logger("refract.server")

    def send(self, transport: asyncio.Transport, data: bytes, *, is_last: bool) -> None:
        """Pass on a connection that isn't read or written any more; `data` was read from it."""
        self._waiting.append((transport, (_LAST if is_last else _OPEN) + data))
        if len(self._waiting) == 1:
            self._send_waiting()
            if self._waiting:
                asyncio.get_running_loop().add_writer(self._end, self._send_waiting)

    def _send_waiting(self) -> None:
        while self._waiting:
            transport, message = self._waiting[0]
            if not transport.is_closing():
                descriptor = transport.get_extra_info("socket").fileno()
                try:
                    socket.send_fds(self._end, [message], [descriptor])
                except BlockingIOError:
                    return
                except OSError as exc:  # the supervisor is gone, or the kernel refuses this one
                    self._log.warning("connection_not_passed", error=str(exc))
                # The queue has a descriptor of its own: this closes only ours.
                transport.abort()
            self._waiting.popleft()
        asyncio.get_running_loop().remove_writer(self._end)


class ConnectionReceiver:
    """The receiving end of a queue, perhaps one of several processes on it."""

    def __init__(self, end: socket.socket, accept: AcceptConnection) -> None:
        self._end = end
        self._accept = accept
        self._log = structlog.get_logger("refract.server")

    def start(self) -> None:
        asyncio.get_running_loop().add_reader(self._end, self._receive)

    def stop(self) -> None:
        """Take what is waiting, and leave what comes later to other processes."""
        while self._receive():
            pass
        asyncio.get_running_loop().remove_reader(self._end)

    def _receive(self) -> bool:
        """Take one connection: the next may be for a process that has less to do."""
        with contextlib.suppress(BlockingIOError):
            message, descriptors, _, _ = socket.recv_fds(self._end, MAX_MESSAGE_BYTES + 1, 1)
            if descriptors:
                connection = socket.socket(fileno=descriptors[0])
                self._accept(connection, message[1:], message[:1] == _LAST)
            elif message:
                self._log.error("connection_lost", reason="too many open files")
            else:
                asyncio.get_running_loop().remove_reader(self._end)  # the supervisor is gone
            return bool(message)
        return False
