"""Clocks, passed as a dependency so that tests can control time."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_nanoseconds(moment: datetime) -> int:
    """Return the nanoseconds since 1970, exact to the microsecond."""
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def format_utc(moment: datetime, *, timespec: str = "auto") -> str:
    """Return a moment as RFC 3339 text in UTC, such as "2026-06-01T12:00:00Z"."""
    return moment.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


class Clock(Protocol):
    """The interface of a clock."""

    def now(self) -> datetime: ...

    def now_ns(self) -> int: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    now_ns = staticmethod(time.time_ns)  # called once per redirect: no wrapper

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # noqa: PLC0415 - extraction processes do without its 6 MB

        await asyncio.sleep(seconds)


class ManualClock:
    """A clock that moves only when a test moves it, forwards or backwards."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._now

    def now_ns(self) -> int:
        return to_nanoseconds(self._now)

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._monotonic += max(0.0, seconds)

    async def sleep(self, seconds: float) -> None:
        import asyncio  # noqa: PLC0415 - see above

        self.advance(seconds)
        await asyncio.sleep(0)
