"""A batch of clicks, added up before the database hears of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from refract.analytics.frames import LINK_CLICK, Click
from refract.analytics.grains import DAY, QUARTER, SECONDS
from refract.analytics.parts import Parts, nothing
from refract.analytics.visitor import FACTS, Reader, microseconds_of, visitor_hash
from refract.core.settings import Dialect

_DAY: Final = SECONDS[DAY]
_QUARTER: Final = SECONDS[QUARTER]
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - drivers of two databases want UTC without saying so
_AWARE: Final = _EPOCH.replace(tzinfo=UTC)

EVENT_COLUMNS: Final = ("spool_id", "segment", "place", "at", "node", *FACTS)


Slot = tuple[int, int, int]
"""Whose clicks: target, kind, and the beginning of their quarter hour."""


class Tally:
    """What is to be added to the roll-ups of one slot."""

    __slots__ = ("bots", "parts", "people", "private", "sketch", "visitors")

    def __init__(self) -> None:
        self.people = 0
        self.bots = 0
        self.private = 0
        self.visitors: list[int] = []
        self.sketch: Any = None
        self.parts: Parts = nothing()

    def count(self, values: Iterable[str | None], node: str) -> None:
        """One more click with these values, in the order of the dimensions; nothing is counted where there is none."""
        place = 0
        for value in values:
            if value:
                counts = self.parts[place]
                counts[value] = counts.get(value, 0) + 1
            place += 1  # noqa: SIM113 - `enumerate` costs more than it says
        if node:
            counts = self.parts[place]
            counts[node] = counts.get(node, 0) + 1


class Total:
    """What is to be added to a link's totals."""

    __slots__ = ("bots", "last", "people")

    def __init__(self) -> None:
        self.people = 0
        self.bots = 0
        self.last = 0


@dataclass(slots=True)
class Gathered:
    """Rows of events, and their sums."""

    events: list[tuple[Any, ...]] = field(default_factory=list)
    tallies: dict[Slot, Tally] = field(default_factory=dict)
    totals: dict[int, Total] = field(default_factory=dict)


def spelling(dialect: Dialect) -> Callable[[int], Any]:
    """A moment as the driver wants it, from microseconds since 1970."""
    if dialect == "sqlite":
        return lambda at: f"{_second(at // 1_000_000)}.{at % 1_000_000:06}"
    first = _AWARE if dialect == "postgresql" else _EPOCH
    return lambda at: first + timedelta(microseconds=at)


@lru_cache(maxsize=1024)
def _second(at: int) -> str:
    return (_EPOCH + timedelta(seconds=at)).isoformat(" ")


def days_of(clicks: Iterable[Click], received: int) -> set[int]:
    """The UTC days these clicks are counted in."""
    return {day * _DAY for day in {microseconds_of(click.time_ns, received) // (_DAY * 1_000_000) for click in clicks}}


class Gatherer:
    """Adds clicks of one spool to a batch."""

    def __init__(self, reader: Reader, dialect: Dialect, spool_id: int, segment: int, node: str) -> None:
        self._reader = reader
        self._spell = spelling(dialect)
        self._where = (spool_id, segment)
        self._node = node

    def gather(self, into: Gathered, clicks: Iterable[Click], received: int, salts: dict[int, bytes]) -> None:
        facts_of, spell, where, node, tallies = self._reader.facts, self._spell, self._where, self._node, into.tallies
        for click in clicks:
            at = microseconds_of(click.time_ns, received)
            row, bot, private, values, visitor = facts_of(click)
            into.events.append((*where, click.offset, spell(at), node, *row))
            second = at // 1_000_000
            kind, target = row[0], row[1]
            slot = (target, kind, second - second % _QUARTER)
            tally = tallies.get(slot)
            if tally is None:
                tally = tallies[slot] = Tally()
            if bot:
                tally.bots += 1
            else:
                tally.people += 1
                if private:
                    tally.private += 1
                else:
                    tally.visitors.append(visitor_hash(visitor, salts[second - second % _DAY]))
                    tally.count(values, node)
            if kind == LINK_CLICK:
                _add_total(into.totals, target, at, bot)


def _add_total(totals: dict[int, Total], target: int, at: int, bot: bool) -> None:
    total = totals.get(target)
    if total is None:
        total = totals[target] = Total()
    if bot:
        total.bots += 1
    else:
        total.people += 1
    if at > total.last:
        total.last = at
