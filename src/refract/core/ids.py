"""Snowflake ids and the Base62 codes made of them.

An id has 41 bits of milliseconds since 2024, 10 of worker and 12 of sequence.
"""

import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from refract.core.clock import EPOCH, Clock, to_nanoseconds
from refract.core.errors import Unavailable

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
SNOWFLAKE_EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
SNOWFLAKE_EPOCH_MS = int(SNOWFLAKE_EPOCH.timestamp() * 1000)
WORKER_COUNT = 1 << 10
MAX_ID = (1 << 63) - 1
_SEQUENCES = 1 << 12
_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_MAX_CODE_LENGTH = 11
_MAX_WAIT_MS = 10


class ClockMovedBackwards(Unavailable):
    """This server's clock moved back by {milliseconds} ms. Wait until it has caught up."""


class WorkerIdLost(Unavailable):
    """This process couldn't renew its worker id in time. Try again in a moment."""


def encode_base62(number: int) -> str:
    """Return the Base62 text of a number."""
    if number < 0:
        problem = f"a code is made of a non-negative number: {number}"
        raise ValueError(problem)
    text = ""
    while True:
        number, digit = divmod(number, 62)
        text = ALPHABET[digit] + text
        if not number:
            return text


def decode_base62(code: str) -> int | None:
    """Return the number of a canonical code, or None.

    None for a leading zero, an unknown character or more than 63 bits.
    """
    if not code or len(code) > _MAX_CODE_LENGTH or (code[0] == "0" and len(code) > 1):
        return None
    number = 0
    for character in code:
        value = _VALUES.get(character)
        if value is None:
            return None
        number = number * 62 + value
    return number if number <= MAX_ID else None


def get_creation_time(snowflake: int) -> datetime:
    """Return when a Snowflake was created."""
    return SNOWFLAKE_EPOCH + timedelta(milliseconds=snowflake >> 22)


def get_min_id(moment: datetime) -> int:
    """Return the smallest Snowflake of that moment's millisecond.

    For moments that no Snowflake can represent, the first or the last one.
    """
    return min(max(0, (moment - SNOWFLAKE_EPOCH) // timedelta(milliseconds=1)) << 22, MAX_ID)


# Ids of links that are older than this installation: they sort by their time of creation like all
# others, so lists and ranges need no second order. Times before ids of ten characters begin are
# mapped to the first day of these.

_FIRST_LONG_MS = (62**9 >> 22) + 1
_MAPPED_MS = 24 * 3600 * 1000
_MAPPED_UNTIL_MS = SNOWFLAKE_EPOCH_MS + _FIRST_LONG_MS + _MAPPED_MS
"""Later times are in ids as they are."""


def get_min_link_id(moment: datetime) -> int:
    """Return the smallest id of links that were created at this moment, here or elsewhere."""
    at = max(0, to_nanoseconds(moment) // 1_000_000)
    if at >= _MAPPED_UNTIL_MS:
        return get_min_id(moment)
    return _FIRST_LONG_MS + at * _MAPPED_MS // _MAPPED_UNTIL_MS << 22


def get_link_time(link_id: int) -> datetime:
    """Return when a link with this id was created, at the earliest."""
    at = link_id >> 22
    if at >= _FIRST_LONG_MS + _MAPPED_MS or at < _FIRST_LONG_MS:
        return get_creation_time(link_id)
    return EPOCH + timedelta(milliseconds=(at - _FIRST_LONG_MS) * _MAPPED_UNTIL_MS // _MAPPED_MS)


def draw_link_id(moment: datetime) -> int:
    """Return a random id of a link that was created at a moment of the past."""
    return get_min_link_id(moment) | secrets.randbits(22)


class IdSource(Protocol):
    """A source of new ids."""

    def next_id(self) -> int: ...

    def next_ids(self, count: int) -> list[int]: ...


class NoIds:
    """The source of a process that makes no ids."""

    def next_id(self) -> int:
        raise WorkerIdLost

    def next_ids(self, count: int) -> list[int]:  # noqa: ARG002 - as every source
        raise WorkerIdLost


class SnowflakeGenerator:
    """Ids that never repeat.

    Not within a process, not across processes with different workers, not when the clock steps
    back. `floor_ms` is the latest millisecond that an earlier holder of the same worker id may have
    used.
    """

    def __init__(
        self,
        worker: int,
        clock: Clock,
        *,
        floor_ms: int = 0,
        can_issue: Callable[[], bool] = lambda: True,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        if not 0 <= worker < WORKER_COUNT:
            problem = f"a worker id lies between 0 and {WORKER_COUNT - 1}: {worker}"
            raise ValueError(problem)
        self.worker = worker
        self.last_ms = floor_ms
        self._clock = clock
        self._sequence = _SEQUENCES - 1  # the floor's own millisecond is used up
        self._can_issue = can_issue
        self._wait = wait
        self._lock = threading.Lock()

    def next_id(self) -> int:
        return self.next_ids(1)[0]

    def next_ids(self, count: int) -> list[int]:
        """Return several ids in ascending order."""
        if not self._can_issue():
            raise WorkerIdLost
        with self._lock:
            return [self._make_id() for _ in range(count)]

    def _make_id(self) -> int:
        now = self._now_ms()
        if now < self.last_ms:
            now = self._wait_until(self.last_ms)
        if now == self.last_ms:
            self._sequence += 1
            if self._sequence >= _SEQUENCES:
                now = self._wait_until(self.last_ms + 1)
        if now > self.last_ms:
            self.last_ms = now
            self._sequence = 0
        return now << 22 | self.worker << 12 | self._sequence

    def _wait_until(self, target_ms: int) -> int:
        for _ in range(_MAX_WAIT_MS * 4):
            now = self._now_ms()
            if now >= target_ms:
                return now
            if target_ms - now > _MAX_WAIT_MS:
                break
            self._wait(0.0005)
        self._sequence = min(self._sequence, _SEQUENCES - 1)
        raise ClockMovedBackwards(milliseconds=target_ms - self._now_ms())

    def _now_ms(self) -> int:
        return self._clock.now_ns() // 1_000_000 - SNOWFLAKE_EPOCH_MS
