"""Wake-ups of the background process: a serving process has committed a job.

On PostgreSQL a notification does the same; on the other databases the worker would see the job with
its next poll only.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

_SOCKET_NAME = "wakeups"
_SOCKET_TYPE = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK


class WakeupSender:
    """The sending end, used like an `asyncio.Event`."""

    def __init__(self, sender: socket.socket, path: Path) -> None:
        self._sender = sender
        self._path = str(path)

    def set(self) -> None:
        # No process there: it looks for jobs when it starts. Buffer full: it will be woken.
        with contextlib.suppress(OSError):
            self._sender.sendto(b"1", self._path)


@contextmanager
def open_wakeup_sender(directory: Path) -> Iterator[WakeupSender]:
    """Yield a sender to the background process of this node."""
    with socket.socket(socket.AF_UNIX, _SOCKET_TYPE) as sender:
        yield WakeupSender(sender, directory / _SOCKET_NAME)


@asynccontextmanager
async def receive_wakeups(directory: Path, wake: Callable[[], None]) -> AsyncIterator[None]:
    """Call `wake` on every wake-up during the block; several at once may be one call."""
    path = directory / _SOCKET_NAME
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, _SOCKET_TYPE) as receiver:
        path.unlink(missing_ok=True)  # of the process that this one replaces
        receiver.bind(str(path))

        def on_readable() -> None:
            with contextlib.suppress(BlockingIOError):
                while receiver.recv(16):
                    pass
            wake()

        loop.add_reader(receiver, on_readable)
        try:
            yield
        finally:
            loop.remove_reader(receiver)
