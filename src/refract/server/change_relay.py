"""Changes of links, from the process that committed them to the one that redirects.

They arrive before the response to who made them, so that a changed link is never followed to its
old destination. The feed in the database has the same changes: a lost datagram costs a moment.
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from refract.links.changes import TargetChange

MAX_CHANGES_PER_DATAGRAM = 100
_SOCKET_NAME = "changes"
_SOCKET_TYPE = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
_MAX_DATAGRAM_BYTES = 256 * 1024

SendChanges = Callable[[Sequence[TargetChange]], None]


@contextmanager
def open_change_sender(directory: Path) -> Iterator[SendChanges]:
    """Yield a function that sends changes to the redirecting process of this node."""
    path = str(directory / _SOCKET_NAME)
    with socket.socket(socket.AF_UNIX, _SOCKET_TYPE) as sender:

        def send(changes: Sequence[TargetChange]) -> None:
            for begin in range(0, len(changes), MAX_CHANGES_PER_DATAGRAM):
                batch = changes[begin : begin + MAX_CHANGES_PER_DATAGRAM]
                rows = [[change.target_id, change.version, change.names] for change in batch]
                with contextlib.suppress(OSError):  # no process there, or its buffer is full
                    sender.sendto(json.dumps(rows).encode(), path)

        yield send


@asynccontextmanager
async def receive_changes(directory: Path, apply: SendChanges) -> AsyncIterator[None]:
    """Call `apply` with the changes of other processes during the block."""
    path = directory / _SOCKET_NAME
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, _SOCKET_TYPE) as receiver:
        path.unlink(missing_ok=True)  # of the process that this one replaces
        receiver.bind(str(path))

        def on_readable() -> None:
            with contextlib.suppress(BlockingIOError):
                rows = json.loads(receiver.recv(_MAX_DATAGRAM_BYTES))
                apply(
                    [TargetChange(target, version, tuple(names)) for target, version, names in rows]
                )

        loop.add_reader(receiver, on_readable)
        try:
            yield
        finally:
            loop.remove_reader(receiver)
