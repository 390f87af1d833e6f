"""The roll-ups that a request needs, and what follows from them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from refract.clicks.rollups.breakdowns import DIMENSIONS
from refract.clicks.rollups.granularity import to_datetime, to_seconds
from refract.clicks.rollups.state import RollupProgress
from refract.clicks.stats import aggregation
from refract.clicks.stats.calendar import (
    SeriesBucket,
    StatsQuery,
    TimeRange,
    build_buckets,
    round_to_rollups,
)
from refract.clicks.stats.queries import RollupQuery
from refract.clicks.stats.results import Breakdown, LinkClicks, PreviousPeriod, StatsResult
from refract.clicks.stats.target_groups import StatsRow, TargetGroup
from refract.core.db.session import ReadSession


class StatsPlan:
    """The ranges that a request needs, and its results once they are loaded."""

    def __init__(
        self,
        state: RollupProgress,
        groups: Sequence[TargetGroup],
        stats_query: StatsQuery,
        now: datetime,
        *,
        series: bool = True,
        parts: bool = False,
        query: RollupQuery | None = None,
    ) -> None:
        """Add the ranges to a query: one of its own, or one that another plan reads."""
        self._stats_query = stats_query
        self._parts = parts
        span = stats_query.get_range(now)
        self._zone = span.zone
        self._groups, self._now = groups, to_seconds(now)
        self.query = query or RollupQuery(state, groups, self._now)
        self._buckets: list[SeriesBucket] = (
            build_buckets(span, stats_query.granularity, state) if series else []
        )
        if series:
            known = [bucket for bucket in self._buckets if not bucket.no_data]
            self._begin, self._end = self._buckets[0].begin, self._buckets[-1].end
            self._known = (known[0].begin, known[-1].end) if known else (self._end, self._end)
        else:
            self._begin, self._end = self._known = round_to_rollups(state, span)
        self._before = (
            TimeRange(self._begin, self._end, span.zone).previous if stats_query.compare else None
        )
        self.query.add_range(*self._known, parts=parts)
        for bucket in self._buckets:
            if not bucket.no_data:
                self.query.add_range(bucket.begin, bucket.end)
        if self._before is not None:
            self.query.add_range(self._before.begin, self._before.end)

    @property
    def size(self) -> int:
        return self.query.row_count

    @property
    def rows(self) -> Sequence[StatsRow]:
        """Return the rows of the whole period."""
        return self.query.select_rows(*self._known, parts=self._parts)

    def build_stats(self, earlier: Self | None = None) -> StatsResult:
        """Return totals and a series, and those of an earlier period that was read with it."""
        series = [
            aggregation.build_point(
                bucket, [] if bucket.no_data else self.query.select_rows(bucket.begin, bucket.end)
            )
            for bucket in self._buckets
        ]
        previous = None
        if self._before is not None:
            before = aggregation.sum_counts(
                self.query.select_rows(self._before.begin, self._before.end)
            )
            previous = PreviousPeriod(
                before.clicks,
                before.uniques,
                before.bots,
                to_datetime(self._before.begin),
                to_datetime(self._before.end),
            )
        totals = aggregation.sum_counts(self.rows)
        begin, end = to_datetime(self._begin), to_datetime(self._end)
        return StatsResult(
            begin,
            end,
            self._stats_query.granularity,
            self._zone.key,
            totals,
            previous,
            series,
            before=earlier.build_stats() if earlier else None,
        )

    def build_breakdown(self, dimension: str, limit: int | None) -> Breakdown:
        return aggregation.build_breakdown(dimension, self.rows, self._begin, self._end, limit)

    def rank_links(self, limit: int) -> list[LinkClicks]:
        """Return the most clicked links."""
        if not limit:
            return []
        if self._groups[0].is_single:
            return aggregation.rank_grouped_links(self.rows, limit)
        return aggregation.rank_links(self.rows, limit)

    def build_certain_breakdowns(self) -> dict[str, Breakdown] | None:
        return aggregation.build_certain_breakdowns(self.rows, self._begin, self._end)

    async def read_in_full(self, session: ReadSession) -> None:
        """Load the breakdowns with every value, replacing the rows loaded before."""
        self.query = RollupQuery(
            self.query.state, [group.copy_empty() for group in self._groups], self._now
        )
        self.query.add_range(*self._known, parts=True)
        await self.query.read(session, visitors=False)

    def build_breakdowns(self) -> dict[str, Breakdown]:
        return aggregation.build_breakdowns(DIMENSIONS, self.rows, self._begin, self._end)
