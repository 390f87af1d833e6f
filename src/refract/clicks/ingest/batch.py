"""A batch of clicks, summed up before it reaches the database."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Protocol

from refract.clicks import compiled
from refract.clicks.ingest.event_rows import ROW_APPENDERS, EventRows, RowShape, format_second
from refract.clicks.ingest.facts import FactsExtractor, hash_visitor, to_microseconds
from refract.clicks.rollups.breakdowns import BreakdownCounts
from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, QUARTER
from refract.clicks.rollups.sketches import VisitorSketch
from refract.clicks.spool.format import LINK_CLICK, decode_click, read_frame_length, read_times
from refract.core.clock import EPOCH
from refract.core.settings.model import Dialect

_DAY_SECONDS: Final = GRAIN_SECONDS[DAY]
_DAY_MICROSECONDS: Final = _DAY_SECONDS * 1_000_000
_QUARTER_SECONDS: Final = GRAIN_SECONDS[QUARTER]
_EPOCH: Final = EPOCH.replace(tzinfo=None)  # two drivers expect naive UTC


RollupSlot = tuple[int, int, int]
"""Target, kind, and the beginning of the quarter hour."""


class RollupDelta:
    """The clicks to be added to the roll-ups of one slot."""

    __slots__ = ("bots", "last", "parts", "people", "private", "sketch", "uniques", "visitors")

    def __init__(self) -> None:
        self.people = 0
        self.bots = 0
        self.private = 0
        self.uniques = 0  # of months, which have no sketch
        self.last = 0
        self.visitors: list[bytes] = []
        self.sketch: VisitorSketch | None = None
        self.parts: BreakdownCounts = {}


TotalsDelta = tuple[int, int, int]
"""The clicks to be added to a target's totals: people, bots, and the time of the last one."""


def sum_totals(
    tallies: Mapping[RollupSlot, RollupDelta],
) -> tuple[dict[int, TotalsDelta], dict[int, TotalsDelta]]:
    """Return the deltas by link, and those by list and entry."""
    links: dict[int, TotalsDelta] = {}
    others: dict[int, TotalsDelta] = {}
    for (target, kind, _), tally in tallies.items():
        found = links if kind == LINK_CLICK else others
        known = found.get(target)
        if known is None:
            found[target] = tally.people, tally.bots, tally.last
        else:
            people, bots, last = known
            found[target] = people + tally.people, bots + tally.bots, max(last, tally.last)
    return links, others


TimeFormatter = Callable[[int, int], Any]


def make_time_formatter(dialect: Dialect) -> TimeFormatter:
    """Return the driver's formatter of times, given as seconds since 1970 and microseconds."""
    if dialect == "sqlite":
        return lambda second, micro: f"{format_second(second)}.{micro:06}"
    whole = _to_aware_datetime if dialect == "postgresql" else _to_datetime
    return lambda second, micro: whole(second).replace(microsecond=micro)


@lru_cache(maxsize=1024)
def _to_datetime(at: int) -> datetime:
    return _EPOCH + timedelta(seconds=at)


@lru_cache(maxsize=1024)
def _to_aware_datetime(at: int) -> datetime:
    return _to_datetime(at).replace(tzinfo=UTC)


def _collect_days(frames: bytes, received: int) -> set[int]:
    """Return the UTC days these clicks are counted in."""
    days = {to_microseconds(time, received) // _DAY_MICROSECONDS for time in read_times(frames)}
    return {day * _DAY_SECONDS for day in days}


class EventGatherer(Protocol):
    """Turns the clicks of a run into rows of events and sums."""

    @property
    def tallies(self) -> dict[RollupSlot, RollupDelta]:
        """Return the sums of all batches."""

    def begin_batch(
        self, shape: RowShape, frames: bytes, base: int, received: int, salts: dict[int, bytes]
    ) -> None:
        """Take the clicks of these frames, which are whole and valid, from now on.

        `base` is where they begin in their segment, and `received` the time of now in microseconds.
        """

    def add_clicks(self, rows: EventRows, limit: int) -> bool:
        """Add the next clicks to rows and tallies; return whether there are more."""


class EventGathererClass(Protocol):
    """How a gatherer is made, for one run."""

    def __call__(
        self, extractor: FactsExtractor, format_second: Callable[[int], str]
    ) -> EventGatherer: ...


class PythonEventGatherer:
    """The reference, and the fallback where nothing was compiled."""

    def __init__(self, extractor: FactsExtractor, format_second: Callable[[int], str]) -> None:
        del format_second  # for the compiled one
        self.tallies: dict[RollupSlot, RollupDelta] = {}
        self._extractor = extractor
        self._frames = b""
        self._at = 0

    def begin_batch(
        self, shape: RowShape, frames: bytes, base: int, received: int, salts: dict[int, bytes]
    ) -> None:
        """Take the clicks of these frames from now on."""
        self._shape, self._frames, self._base, self._at = shape, frames, base, 0
        self._received, self._salts = received, salts

    def add_clicks(self, rows: EventRows, limit: int) -> bool:
        """Add the next clicks to rows and tallies; return whether there are more."""
        frames, base, shape, at = self._frames, self._base, self._shape, self._at
        append_row, extract_facts = ROW_APPENDERS[shape.dialect], self._extractor.extract_facts
        while at < len(frames) and limit:
            click = decode_click(frames, at, base)
            time = to_microseconds(click.time_ns, self._received)
            row, bot, private, parts, visitor = extract_facts(click)
            append_row(rows, shape, click.offset, time, row)
            tally = self._get_tally(click.target, click.kind, time)
            if bot:
                tally.bots += 1
            else:
                tally.people += 1
                tally.private += private
            if not bot and not private:
                day = time // _DAY_MICROSECONDS * _DAY_SECONDS
                tally.visitors.append(hash_visitor(visitor, self._salts[day]))
                counts = tally.parts
                for part in parts + shape.node_keys:
                    counts[part] = counts.get(part, 0) + 1
            at += read_frame_length(frames, at)
            limit -= 1
        self._at = at
        return at < len(frames)

    def _get_tally(self, target: int, kind: int, time: int) -> RollupDelta:
        second = time // 1_000_000
        slot = (target, kind, second - second % _QUARTER_SECONDS)
        tally = self.tallies.get(slot)
        if tally is None:
            tally = self.tallies[slot] = RollupDelta()
        tally.last = max(tally.last, time)
        return tally


collect_days = compiled.choose(_collect_days, "collect_days")
create_gatherer: EventGathererClass = compiled.choose(PythonEventGatherer, "EventGatherer")
