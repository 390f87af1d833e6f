"""Inspection of a connection that its event loop has not read yet, and its end."""

import asyncio
import contextlib
import os
import select
import socket


def has_unread_data(transport: asyncio.Transport) -> bool:
    """Return whether unread data has arrived.

    A request that came while we were about to close is answered first.
    """
    if transport.is_closing():
        return False
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))


def shut_down_writing(transport: asyncio.Transport) -> None:
    """Tell the client immediately that nothing more is read.

    An event loop closes a transport only in its next turn, and a request that arrives until then
    would be lost.
    """
    if transport.is_closing() and not transport.get_write_buffer_size():
        descriptor = transport.get_extra_info("socket").fileno()
        with (
            contextlib.suppress(OSError),
            socket.socket(fileno=os.dup(descriptor)) as twin,
        ):  # the loop lends its socket for reading only
            twin.shutdown(socket.SHUT_WR)
