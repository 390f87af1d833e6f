"""From roll-ups to figures: pure, and the same for one link and for many."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Final

from refract.analytics import parts, sketches, tops
from refract.analytics.grains import DAY, MONTH, SECONDS, moment_of
from refract.analytics.parts import DIMENSIONS, OTHER
from refract.analytics.stats.calendar import Bucket
from refract.analytics.stats.labels import label_of
from refract.analytics.stats.results import Breakdown, Counts, LinkClicks, Point, Share
from refract.analytics.stats.rows import Row

SHOWN: Final = {dimension: 5 if dimension in ("browsers", "systems") else 10 for dimension in DIMENSIONS}
"""How many values of a dimension are shown unless more are asked for."""


def counts(rows: Sequence[Row]) -> Counts:
    return Counts(sum(row.people for row in rows), uniques(rows), sum(row.bots for row in rows))


def uniques(rows: Iterable[Row]) -> int:
    """Different visitors within each UTC day, the days added up; of a month it is known already."""
    by_day: dict[int, list[Row]] = defaultdict(list)
    total = 0
    for row in rows:
        if row.grain == MONTH:
            total += row.uniques
        elif row.uniques:
            by_day[row.start // SECONDS[DAY]].append(row)
    return total + sum(_of_day(rows) for rows in by_day.values())


def _of_day(rows: list[Row]) -> int:
    return rows[0].uniques if len(rows) == 1 else sketches.count(row.visitors for row in rows if row.visitors)


def point(bucket: Bucket, rows: Sequence[Row]) -> Point:
    found = counts(rows)
    return Point(moment_of(bucket.begin), found.clicks, found.uniques, found.bots, utc_day=bucket.coarse, no_data=bucket.blank)


def breakdown(dimension: str, rows: Sequence[Row], begin: int, end: int, limit: int | None = None) -> Breakdown:
    return all_breakdowns((dimension,), rows, begin, end, limit)[dimension]


def all_breakdowns(dimensions: Iterable[str], rows: Sequence[Row], begin: int, end: int, limit: int | None = None) -> dict[str, Breakdown]:
    """The breakdowns of these rows, each by its most frequent values."""
    return _broken_down(dimensions, tops.added(row.parts for row in rows), rows, begin, end, limit)


def first_of_all(rows: Sequence[Row], begin: int, end: int) -> dict[str, Breakdown] | None:
    """All breakdowns, as far as they are shown, of rows that may hold the most frequent values alone; None if that is not enough."""
    whole = tops.added(row.parts for row in rows)
    certain = all(whole.is_certain(parts.letter_of(dimension), SHOWN[dimension]) for dimension in DIMENSIONS)
    return _broken_down(DIMENSIONS, whole, rows, begin, end, None) if certain else None


def _broken_down(
    dimensions: Iterable[str], whole: tops.Sum, rows: Sequence[Row], begin: int, end: int, limit: int | None
) -> dict[str, Breakdown]:
    found = parts.breakdowns(whole.parts)
    people = sum(row.people for row in rows)
    return {dimension: ranked(dimension, found[dimension], people, begin, end, limit) for dimension in dimensions}


def ranked(dimension: str, values: Mapping[str, int], people: int, begin: int, end: int, limit: int | None) -> Breakdown:
    """The most frequent values, and what the others come to."""
    total = sum(values.values())
    most = limit or SHOWN.get(dimension, 10)
    shown = nsmallest(most, ((-clicks, value) for value, clicks in values.items() if value != OTHER and clicks))
    items = [Share(value, label_of(dimension, value), -clicks, round(-clicks / total, 6)) for clicks, value in shown]
    return Breakdown(moment_of(begin), moment_of(end), dimension, items, total + sum(clicks for clicks, _ in shown), total, people - total)


def by_link(rows: Iterable[Row], limit: int) -> list[LinkClicks]:
    """The most clicked links first; those of the same number by age."""
    sums: Counter[int] = Counter()
    for row in rows:
        sums[row.target] += row.people
    ranked = sorted((-clicks, link) for link, clicks in sums.items() if clicks)
    return [LinkClicks(link, -clicks) for clicks, link in ranked[:limit]]
