"""What the client saw, request by request: appended to a file, never changed."""

from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from struct import Struct
from typing import NamedTuple, Self

_RECORD = Struct("<QddIHBB")


class Outcome(IntEnum):
    ANSWERED = 1
    """A complete response was received."""
    CUT = 2
    """Sent, and the connection ended before the answer was complete."""
    REFUSED = 3
    """Never sent: nobody accepted a connection."""
    LATE = 4
    """Sent, and not answered within the client's patience."""
    CROSSED = 5
    """Cut before the first byte of an answer, on a connection that had served before.

    Our request and its end met on the way.
    """


class Kind(IntEnum):
    CLICK = 1
    WRITE = 2
    OTHER = 3


class Record(NamedTuple):
    """One attempt.

    `began` and `ended` are on the machine's monotonic clock; the status is 0 without an answer.
    """

    id: int
    began: float
    ended: float
    subject: int
    status: int
    kind: int
    outcome: int

    @property
    def cut(self) -> bool:
        return self.outcome in (Outcome.CUT, Outcome.CROSSED)

    @property
    def acknowledged(self) -> bool:
        """A redirect, or a write that was told of its success."""
        if self.outcome != Outcome.ANSWERED:
            return False
        return (
            self.status in (301, 302, 307, 308)
            if self.kind == Kind.CLICK
            else 200 <= self.status < 300
        )


class Journal:
    """The log of one run.

    Ids are unique per request; an attempt repeated under its Idempotency-Key keeps its id.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab")
        self._next = 0

    def new_id(self) -> int:
        self._next += 1
        return self._next

    def note(self, record: Record) -> None:
        self._file.write(_RECORD.pack(*record))

    def read(self) -> Iterator[Record]:
        self._file.flush()
        return read(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read(path: Path) -> Iterator[Record]:
    data = path.read_bytes()
    whole = len(data) - len(data) % _RECORD.size
    for fields in _RECORD.iter_unpack(data[:whole]):
        yield Record(*fields)
