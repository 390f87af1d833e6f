"""Closing a listening socket without losing connections.

Connections that the kernel has completed but that are not accepted yet are reset when their
listener closes, with the data their clients have sent. So first new connections are dropped, then
the queue is emptied, and only then the socket is closed.
"""

import asyncio
import contextlib
import ctypes
import socket
import struct
from typing import Final

SHUTDOWN_TIMEOUT: Final = 10.0
"""How long a stop waits, after its grace period, for open requests."""

_SO_ATTACH_FILTER: Final = 26
_TCP_INFO: Final = 11
# In `struct tcp_info`; of a listening socket it is the length of the accept queue.
_UNACKED_OFFSET: Final = 24
_POLL_INTERVAL: Final = 0.01
_STEADY_POLLS: Final = 3

# "Load the byte of flags; is SYN among them? Drop, else keep." A client whose SYN is dropped sends
# it again, and is then refused.
_DROP_SYN: Final = b"".join(
    struct.pack("HBBI", *instruction)
    for instruction in (
        (0x30, 0, 0, 13),
        (0x45, 0, 1, 0x02),
        (0x06, 0, 0, 0),
        (0x06, 0, 0, 0xFFFFFFFF),
    )
)


async def stop_accepting(listener: socket.socket, wait_seconds: float = 1.0) -> None:
    """Drop new connections, and wait until the completed ones are accepted."""
    with contextlib.suppress(OSError):  # where this is forbidden, stop without it
        _drop_new_connections(listener)
        await wait_until_empty(listener, wait_seconds, steady=_STEADY_POLLS)


async def wait_until_empty(
    listener: socket.socket, wait_seconds: float = 1.0, *, steady: int = 1
) -> None:
    """Wait until the accept queue is empty, `steady` times in a row."""
    empty = 0
    deadline = asyncio.get_running_loop().time() + wait_seconds
    with contextlib.suppress(OSError):
        while empty < steady and asyncio.get_running_loop().time() < deadline:
            empty = 0 if get_accept_queue_length(listener) else empty + 1
            await asyncio.sleep(_POLL_INTERVAL)


def get_accept_queue_length(listener: socket.socket) -> int:
    """Return the number of connections that are not accepted yet."""
    info = listener.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _UNACKED_OFFSET + 4)
    return int(struct.unpack_from("I", info, _UNACKED_OFFSET)[0])


def _drop_new_connections(listener: socket.socket) -> None:
    program = ctypes.create_string_buffer(_DROP_SYN, len(_DROP_SYN))
    listener.setsockopt(
        socket.SOL_SOCKET,
        _SO_ATTACH_FILTER,
        struct.pack("HP", len(_DROP_SYN) // 8, ctypes.addressof(program)),
    )
