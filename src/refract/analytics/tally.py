"""A batch of clicks, added up before the database hears of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from refract.analytics.frames import LINK_CLICK, Click
from refract.analytics.grains import DAY, QUARTER, SECONDS
from refract.analytics.parts import Parts, key
from refract.analytics.sketches import Sketch
from refract.analytics.visitor import FACTS, Reader, microseconds_of, visitor_hash
from refract.core.settings import Dialect

_DAY: Final = SECONDS[DAY]
_DAY_MICROSECONDS: Final = _DAY * 1_000_000
_QUARTER: Final = SECONDS[QUARTER]
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - drivers of two databases want UTC without saying so

EVENT_COLUMNS: Final = ("spool_id", "segment", "place", "at", "node", *FACTS)


Slot = tuple[int, int, int]
"""Whose clicks: target, kind, and the beginning of their quarter hour."""


class Tally:
    """What is to be added to the roll-ups of one slot."""

    __slots__ = ("bots", "last", "parts", "people", "private", "sketch", "visitors")

    def __init__(self) -> None:
        self.people = 0
        self.bots = 0
        self.private = 0
        self.last = 0
        self.visitors: list[int] = []
        self.sketch: Sketch | None = None
        self.parts: Parts = {}


Total = tuple[int, int, int]
"""What is to be added to a target's totals: people, bots, and when the last one came."""


@dataclass(slots=True)
class Gathered:
    """Rows of events, and their sums."""

    events: list[tuple[Any, ...]] = field(default_factory=list)
    tallies: dict[Slot, Tally] = field(default_factory=dict)

    def totals(self, *, of_links: bool) -> dict[int, Total]:
        """By link, or by list and entry."""
        found: dict[int, Total] = {}
        for (target, kind, _), tally in self.tallies.items():
            if (kind == LINK_CLICK) == of_links:
                people, bots, last = found.get(target, (0, 0, 0))
                found[target] = people + tally.people, bots + tally.bots, max(last, tally.last)
        return found


Spelling = Callable[[int, int], Any]


def spelling(dialect: Dialect) -> Spelling:
    """A moment as the driver wants it, from whole seconds since 1970 and microseconds beside them."""
    if dialect == "sqlite":
        return lambda second, micro: f"{_second_text(second)}.{micro:06}"
    whole = _second_aware if dialect == "postgresql" else _second
    return lambda second, micro: whole(second).replace(microsecond=micro)


@lru_cache(maxsize=1024)
def _second(at: int) -> datetime:
    return _EPOCH + timedelta(seconds=at)


@lru_cache(maxsize=1024)
def _second_aware(at: int) -> datetime:
    return _second(at).replace(tzinfo=UTC)


@lru_cache(maxsize=1024)
def _second_text(at: int) -> str:
    return _second(at).isoformat(" ")


def days_of(clicks: Sequence[Click], received: int) -> set[int]:
    """The UTC days these clicks are counted in."""
    times = [click.time_ns for click in clicks]
    days = {microseconds_of(time, received) // _DAY_MICROSECONDS for time in (min(times), max(times))}
    if len(days) > 1:
        days = {microseconds_of(time, received) // _DAY_MICROSECONDS for time in times}
    return {day * _DAY for day in days}


class Gatherer:
    """Adds clicks of one spool to a batch."""

    def __init__(self, reader: Reader, dialect: Dialect, spool_id: int, segment: int, node: str) -> None:
        self._reader = reader
        self._spell = spelling(dialect)
        self._where = (spool_id, segment)
        self._node = node

    def gather(self, into: Gathered, clicks: Iterable[Click], received: int, salts: dict[int, bytes]) -> None:
        facts_of, spell, node, events, tallies = self._reader.facts, self._spell, self._node, into.events, into.tallies
        spool_id, segment = self._where
        here = (key("nodes", node),) if node else ()
        for click in clicks:
            at = microseconds_of(click.time_ns, received)
            second, micro = divmod(at, 1_000_000)
            row, bot, private, parts, visitor = facts_of(click)
            events.append((spool_id, segment, click.offset, spell(second, micro), node, *row))
            slot = (row[1], row[0], second - second % _QUARTER)
            tally = tallies.get(slot)
            if tally is None:
                tally = tallies[slot] = Tally()
            tally.last = max(tally.last, at)
            if bot:
                tally.bots += 1
                continue
            tally.people += 1
            if private:
                tally.private += 1
                continue
            tally.visitors.append(visitor_hash(visitor, salts[second - second % _DAY]))
            counts = tally.parts
            for part in parts + here:
                counts[part] = counts.get(part, 0) + 1
