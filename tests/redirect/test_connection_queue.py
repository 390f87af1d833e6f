"""The queue in which one process passes connections to another."""

import asyncio
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from refract.server.connection_queue import (
    ConnectionReceiver,
    ConnectionSender,
    open_connection_queue,
)
from tests.waiting import eventually


class Passed:
    """Connections that arrive at the receiving end."""

    def __init__(self) -> None:
        self.found: list[bytes] = []

    def accept(self, connection: socket.socket, data: bytes, _is_last: bool) -> None:
        connection.close()
        self.found.append(data)


@contextmanager
def no_free_descriptor() -> Iterator[None]:
    """Lower the limit of open files to those that are open."""
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))


async def test_a_process_without_descriptors_loses_connections_and_not_its_hearing() -> None:
    receiving, sending = open_connection_queue()
    passed = Passed()
    receiver = ConnectionReceiver(receiving, passed.accept)
    receiver.start()
    ours, theirs = socket.socketpair()
    with receiving, sending, ours, theirs:
        with no_free_descriptor():
            socket.send_fds(sending, [b"olost"], [ours.fileno()])
            await eventually(lambda: not _has_data(receiving))
        socket.send_fds(sending, [b"oheard"], [ours.fileno()])

        await eventually(lambda: passed.found == [b"heard"])
        receiver.stop()


async def test_a_connection_that_cannot_be_passed_is_closed_and_the_next_one_is_passed() -> None:
    receiving, sending = open_connection_queue()
    passed = Passed()
    receiver = ConnectionReceiver(receiving, passed.accept)
    receiver.start()
    sender = ConnectionSender(sending)
    ends = [socket.socketpair() for _ in range(2)]
    loop = asyncio.get_running_loop()
    first, second = [
        (await loop.connect_accepted_socket(asyncio.Protocol, mine))[0] for mine, _ in ends
    ]
    with receiving, sending:
        sender.send(first, b"x" * (8 << 20), is_last=False)  # more than a message can have
        sender.send(second, b"heard", is_last=False)

        await eventually(lambda: passed.found == [b"heard"])
        receiver.stop()
        assert first.is_closing()
    for _, theirs in ends:
        theirs.close()


def _has_data(end: socket.socket) -> bool:
    try:
        return bool(end.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False
