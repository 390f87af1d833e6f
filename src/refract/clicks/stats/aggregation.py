"""Aggregation of roll-ups into results, for one link or many. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Final

from refract.clicks.rollups import breakdowns as rollups_breakdowns
from refract.clicks.rollups import sketches, top_values
from refract.clicks.rollups.breakdowns import DIMENSIONS, OTHER_VALUES
from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, MONTH, to_datetime
from refract.clicks.stats.calendar import SeriesBucket
from refract.clicks.stats.labels import get_label
from refract.clicks.stats.results import Breakdown, ClickCounts, LinkClicks, SeriesPoint, ValueShare
from refract.clicks.stats.target_groups import StatsRow

DEFAULT_LIMITS: Final = {
    dimension: 5 if dimension in ("browsers", "systems") else 10 for dimension in DIMENSIONS
}
"""Number of values of a dimension that are shown by default."""


def sum_counts(rows: Sequence[StatsRow]) -> ClickCounts:
    return ClickCounts(
        sum(row.people for row in rows), count_uniques(rows), sum(row.bots for row in rows)
    )


def count_uniques(rows: Iterable[StatsRow]) -> int:
    """Count unique visitors within each UTC day and add up the days. Months store their sum."""
    by_day: dict[int, list[StatsRow]] = defaultdict(list)
    total = 0
    for row in rows:
        if row.grain == MONTH:
            total += row.uniques
        elif row.uniques:
            by_day[row.start // GRAIN_SECONDS[DAY]].append(row)
    return total + sum(_count_day_uniques(rows) for rows in by_day.values())


def _count_day_uniques(rows: list[StatsRow]) -> int:
    return (
        rows[0].uniques
        if len(rows) == 1
        else sketches.count_visitors(row.visitors for row in rows if row.visitors)
    )


def build_point(bucket: SeriesBucket, rows: Sequence[StatsRow]) -> SeriesPoint:
    found = sum_counts(rows)
    return SeriesPoint(
        to_datetime(bucket.begin),
        found.clicks,
        found.uniques,
        found.bots,
        utc_day=bucket.coarse,
        no_data=bucket.no_data,
    )


def build_breakdown(
    dimension: str, rows: Sequence[StatsRow], begin: int, end: int, limit: int | None = None
) -> Breakdown:
    return build_breakdowns((dimension,), rows, begin, end, limit)[dimension]


def build_breakdowns(
    dimensions: Iterable[str],
    rows: Sequence[StatsRow],
    begin: int,
    end: int,
    limit: int | None = None,
) -> dict[str, Breakdown]:
    """Return the breakdowns of these rows, each by its top values."""
    return _rank_dimensions(
        dimensions, top_values.sum_breakdowns(row.parts for row in rows), rows, begin, end, limit
    )


def build_certain_breakdowns(
    rows: Sequence[StatsRow], begin: int, end: int
) -> dict[str, Breakdown] | None:
    """Return all breakdowns up to their default limits, or None if the rows are not sufficient.

    Rows may hold their top values alone.
    """
    whole = top_values.sum_breakdowns(row.parts for row in rows)
    certain = all(
        whole.is_certain(
            rollups_breakdowns.get_dimension_letter(dimension), DEFAULT_LIMITS[dimension]
        )
        for dimension in DIMENSIONS
    )
    return _rank_dimensions(DIMENSIONS, whole, rows, begin, end, None) if certain else None


def _rank_dimensions(
    dimensions: Iterable[str],
    whole: top_values.BreakdownSum,
    rows: Sequence[StatsRow],
    begin: int,
    end: int,
    limit: int | None,
) -> dict[str, Breakdown]:
    found = rollups_breakdowns.group_by_dimension(whole.counts)
    people = sum(row.people for row in rows)
    return {
        dimension: rank_values(dimension, found[dimension], people, begin, end, limit)
        for dimension in dimensions
    }


def rank_values(
    dimension: str, values: Mapping[str, int], people: int, begin: int, end: int, limit: int | None
) -> Breakdown:
    """Return the top values and the sum of the others."""
    total = sum(values.values())
    most = limit or DEFAULT_LIMITS.get(dimension, 10)
    shown = nsmallest(
        most,
        ((-clicks, value) for value, clicks in values.items() if value != OTHER_VALUES and clicks),
    )
    items = [
        ValueShare(value, get_label(dimension, value), -clicks, round(-clicks / total, 6))
        for clicks, value in shown
    ]
    return Breakdown(
        to_datetime(begin),
        to_datetime(end),
        dimension,
        items,
        total + sum(clicks for clicks, _ in shown),
        total,
        people - total,
    )


def rank_links(rows: Iterable[StatsRow], limit: int) -> list[LinkClicks]:
    """Return the most clicked links; ties are ordered by age."""
    sums: Counter[int] = Counter()
    for row in rows:
        sums[row.target] += row.people
    ranked = sorted((-clicks, link) for link, clicks in sums.items() if clicks)
    return [LinkClicks(link, -clicks) for clicks, link in ranked[:limit]]


def rank_grouped_links(rows: Iterable[StatsRow], limit: int) -> list[LinkClicks]:
    """Return the most clicked links by the roll-ups of a group; ties are ordered by age."""
    stored = (row.parts for row in rows if isinstance(row.parts, bytes))
    sections = [rollups_breakdowns.split_links(data)[0] for data in stored]
    return [LinkClicks(*pair) for pair in rollups_breakdowns.rank_links(sections, limit)]
