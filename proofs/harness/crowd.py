"""Thousands of raw sockets at once, each as cheap as the kernel allows.

Crowds that ask together, and crowds that dawdle.
"""

import select
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

BATCH = 250


@dataclass(slots=True)
class Member:
    """One socket of the crowd, and what became of it.

    Moments are on the machine's monotonic clock.
    """

    socket: socket.socket
    opened: float = 0.0
    closed: float = 0.0
    received: bytes = b""
    sent: int = 0


@dataclass(slots=True)
class Crowd:
    """Made in batches, so that no queue of the kernel runs over."""

    port: int
    members: list[Member] = field(default_factory=list)

    def open(self, number: int) -> None:
        for start in range(0, number, BATCH):
            some = [self._knock() for _ in range(min(BATCH, number - start))]
            _wait_until_open(some)
            self.members += some

    def _knock(self) -> Member:
        made = socket.socket()
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.connect_ex(("127.0.0.1", self.port))
        return Member(made)

    def tell(self, words: list[bytes]) -> None:
        """Everybody says their word, as nearly at once as can be."""
        for member, word in zip(self.members, words, strict=True):
            member.sent += member.socket.send(word)

    def listen(self, seconds: float, *, enough: Callable[[Member], bool] | None = None) -> None:
        """Take in what comes until everybody has enough, or the connection's end, or the time is
        up.
        """
        for _ in self.watching(seconds, enough=enough):
            pass

    def watching(
        self, seconds: float, *, enough: Callable[[Member], bool] | None = None
    ) -> Iterator[float]:
        """Like `listen`, handing back the clock after every look, so that something can be done in
        between.
        """
        poll = select.epoll()
        waiting = {member.socket.fileno(): member for member in self.members if not member.closed}
        for number in waiting:
            poll.register(number, select.EPOLLIN | select.EPOLLRDHUP)
        deadline = time.monotonic() + seconds
        while waiting and time.monotonic() < deadline:
            for number, _ in poll.poll(0.02, 1000):
                member = waiting[number]
                if _take(member) or (enough is not None and enough(member)):
                    poll.unregister(number)
                    del waiting[number]
            yield time.monotonic()
        poll.close()

    def close(self) -> None:
        for member in self.members:
            member.socket.close()


def _take(member: Member) -> bool:
    """True when the connection has ended."""
    try:
        data = member.socket.recv(65536)
    except BlockingIOError:
        return False
    except OSError:
        data = b""
    member.received += data
    if not data:
        member.closed = time.monotonic()
    return not data


def _wait_until_open(some: list[Member]) -> None:
    poll = select.epoll()
    waiting = {member.socket.fileno(): member for member in some}
    for number in waiting:
        poll.register(number, select.EPOLLOUT)
    deadline = time.monotonic() + 20
    while waiting and time.monotonic() < deadline:
        for number, _ in poll.poll(0.1, BATCH):
            member = waiting.pop(number)
            poll.unregister(number)
            problem = member.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if problem:
                raise OSError(problem, "a member of the crowd was not let in")
            member.opened = time.monotonic()
    poll.close()
    if waiting:
        raise TimeoutError(f"{len(waiting)} of the crowd were not let in")
