"""Closing a listening socket without losing anybody.

Connections that the kernel has completed and nobody has accepted yet are reset when their listener closes, with whatever
their clients have sent. So first no new one is let in, then the queue is emptied, and only then the socket is closed.
"""

import asyncio
import contextlib
import ctypes
import socket
import struct
from typing import Final

SHUTDOWN_TIMEOUT: Final = 10.0
"""How long a stop waits, once its grace is over, for what is still being answered."""

_SO_ATTACH_FILTER: Final = 26
_TCP_INFO: Final = 11
_UNACKED_OFFSET: Final = (
    24  # of `struct tcp_info`; of a listening socket it is the length of the accept queue
)
_POLL_INTERVAL: Final = 0.01
_STEADY_POLLS: Final = 3

# "Load the byte of flags; is SYN among them? Drop, else keep." A client whose SYN is dropped sends it again, and is then refused.
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
    """Let nobody new in, and wait until those already let in are accepted by whoever serves this socket."""
    with contextlib.suppress(OSError):  # where this is forbidden, a stop is as good as anybody's
        _drop_new_connections(listener)
        await wait_until_empty(listener, wait_seconds, steady=_STEADY_POLLS)


async def wait_until_empty(
    listener: socket.socket, wait_seconds: float = 1.0, *, steady: int = 1
) -> None:
    """Wait until nobody is in the queue, several times in a row if need be."""
    empty = 0
    deadline = asyncio.get_running_loop().time() + wait_seconds
    with contextlib.suppress(OSError):
        while empty < steady and asyncio.get_running_loop().time() < deadline:
            empty = 0 if get_accept_queue_length(listener) else empty + 1
            await asyncio.sleep(_POLL_INTERVAL)


def get_accept_queue_length(listener: socket.socket) -> int:
    """Connections that nobody has accepted yet."""
    info = listener.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _UNACKED_OFFSET + 4)
    return int(struct.unpack_from("I", info, _UNACKED_OFFSET)[0])


def _drop_new_connections(listener: socket.socket) -> None:
    program = ctypes.create_string_buffer(_DROP_SYN, len(_DROP_SYN))
    listener.setsockopt(
        socket.SOL_SOCKET,
        _SO_ATTACH_FILTER,
        struct.pack("HP", len(_DROP_SYN) // 8, ctypes.addressof(program)),
    )
