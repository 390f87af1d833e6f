"""A batch of clicks, summed up before it reaches the database."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from refract.clicks.ingest.facts import FACT_COLUMNS, FactsExtractor, hash_visitor, to_microseconds
from refract.clicks.rollups.breakdowns import BreakdownCounts, build_breakdown_key
from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, QUARTER
from refract.clicks.rollups.sketches import VisitorSketch
from refract.clicks.spool.format import LINK_CLICK, Click
from refract.core.clock import EPOCH
from refract.core.settings.model import Dialect

_DAY_SECONDS: Final = GRAIN_SECONDS[DAY]
_DAY_MICROSECONDS: Final = _DAY_SECONDS * 1_000_000
_QUARTER_SECONDS: Final = GRAIN_SECONDS[QUARTER]
_EPOCH: Final = EPOCH.replace(tzinfo=None)  # two drivers expect naive UTC

STORED_COLUMNS: Final = ("spool_id", "segment", "place", "at", "node", *FACT_COLUMNS)


RollupSlot = tuple[int, int, int]
"""Target, kind, and the beginning of the quarter hour."""


class RollupDelta:
    """The clicks to be added to the roll-ups of one slot."""

    __slots__ = ("bots", "last", "parts", "people", "private", "sketch", "visitors")

    def __init__(self) -> None:
        self.people = 0
        self.bots = 0
        self.private = 0
        self.last = 0
        self.visitors: list[bytes] = []
        self.sketch: VisitorSketch | None = None
        self.parts: BreakdownCounts = {}


TotalsDelta = tuple[int, int, int]
"""The clicks to be added to a target's totals: people, bots, and the time of the last one."""


@dataclass(slots=True)
class EventBatch:
    """Rows of events and their sums."""

    events: list[tuple[Any, ...]] = field(default_factory=list)
    tallies: dict[RollupSlot, RollupDelta] = field(default_factory=dict)

    def sum_totals(self, *, of_links: bool) -> dict[int, TotalsDelta]:
        """Return the deltas by link, or by list and entry."""
        found: dict[int, TotalsDelta] = {}
        for (target, kind, _), tally in self.tallies.items():
            if (kind == LINK_CLICK) == of_links:
                people, bots, last = found.get(target, (0, 0, 0))
                found[target] = people + tally.people, bots + tally.bots, max(last, tally.last)
        return found


TimeFormatter = Callable[[int, int], Any]


def make_time_formatter(dialect: Dialect) -> TimeFormatter:
    """Return the driver's formatter of times, given as seconds since 1970 and microseconds."""
    if dialect == "sqlite":
        return lambda second, micro: f"{_to_text(second)}.{micro:06}"
    whole = _to_aware_datetime if dialect == "postgresql" else _to_datetime
    return lambda second, micro: whole(second).replace(microsecond=micro)


@lru_cache(maxsize=1024)
def _to_datetime(at: int) -> datetime:
    return _EPOCH + timedelta(seconds=at)


@lru_cache(maxsize=1024)
def _to_aware_datetime(at: int) -> datetime:
    return _to_datetime(at).replace(tzinfo=UTC)


@lru_cache(maxsize=1024)
def _to_text(at: int) -> str:
    return _to_datetime(at).isoformat(" ")


def collect_days(clicks: Sequence[Click], received: int) -> set[int]:
    """Return the UTC days these clicks are counted in."""
    times = [click.time_ns for click in clicks]
    days = {
        to_microseconds(time, received) // _DAY_MICROSECONDS for time in (min(times), max(times))
    }
    if len(days) > 1:
        days = {to_microseconds(time, received) // _DAY_MICROSECONDS for time in times}
    return {day * _DAY_SECONDS for day in days}


class EventBatchBuilder:
    """Adds clicks of one spool to a batch."""

    def __init__(
        self, extractor: FactsExtractor, dialect: Dialect, spool_id: int, segment: int, node: str
    ) -> None:
        self._extractor = extractor
        self._format_time = make_time_formatter(dialect)
        self._spool_segment = (spool_id, segment)
        self._node = node

    def add_clicks(
        self, into: EventBatch, clicks: Iterable[Click], received: int, salts: dict[int, bytes]
    ) -> None:
        extract_facts, format_time, node, events, tallies = (
            self._extractor.extract_facts,
            self._format_time,
            self._node,
            into.events,
            into.tallies,
        )
        spool_id, segment = self._spool_segment
        here = (build_breakdown_key("nodes", node),) if node else ()
        for click in clicks:
            at = to_microseconds(click.time_ns, received)
            second, micro = divmod(at, 1_000_000)
            row, bot, private, parts, visitor = extract_facts(click)
            events.append((spool_id, segment, click.offset, format_time(second, micro), node, *row))
            slot = (row[1], row[0], second - second % _QUARTER_SECONDS)
            tally = tallies.get(slot)
            if tally is None:
                tally = tallies[slot] = RollupDelta()
            tally.last = max(tally.last, at)
            if bot:
                tally.bots += 1
                continue
            tally.people += 1
            if private:
                tally.private += 1
                continue
            tally.visitors.append(hash_visitor(visitor, salts[second - second % _DAY_SECONDS]))
            counts = tally.parts
            for part in parts + here:
                counts[part] = counts.get(part, 0) + 1
