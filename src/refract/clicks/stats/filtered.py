"""Statistics of the clicks that a filter matches, and the latest of them one by one.

Roll-ups cannot answer filters, so single clicks are counted: in a process of its own, which keeps
them as columns (`clicks.columns`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func

from refract.clicks.archive.processes import ArchiveProcesses
from refract.clicks.columns.dimensions import LINKS, VALUE_EXPRESSIONS
from refract.clicks.columns.requests import CountRequest, CountResult
from refract.clicks.queries import EVENT_COLUMNS, select_events
from refract.clicks.rollups.breakdowns import DIMENSIONS
from refract.clicks.rollups.granularity import to_datetime
from refract.clicks.rollups.state import RollupProgress, load_progress
from refract.clicks.stats import aggregation
from refract.clicks.stats.calendar import (
    SeriesBucket,
    StatsQuery,
    TimeRange,
    build_buckets,
    round_to_rollups,
)
from refract.clicks.stats.filters import ClickFilter, match_events
from refract.clicks.stats.results import (
    Breakdown,
    ClickCounts,
    LinkClicks,
    LinkDashboard,
    PreviousPeriod,
    SeriesPoint,
    StatsResult,
)
from refract.clicks.stats.scope import StatsScope, match_targets
from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings

RECENT_MINUTES: Final = 30
MAX_RECENT: Final = 6


@dataclass(frozen=True, slots=True)
class FilteredStats:
    """Statistics of a scope, of the clicks that a filter matches."""

    rt: Runtime
    scope: StatsScope
    chosen: ClickFilter

    async def load_dashboard(
        self, stats_query: StatsQuery, now: datetime, *, links: int
    ) -> LinkDashboard:
        """Return totals, series, every breakdown and the most clicked links."""
        dimensions = (*DIMENSIONS, LINKS) if links else DIMENSIONS
        found, counts = await self._load(stats_query, now, dimensions, links)
        begin, end = int(found.begin.timestamp()), int(found.end.timestamp())
        ranked = {
            dimension: aggregation.rank_values(
                dimension, counts.values[dimension], counts.clicks, begin, end, None
            )
            for dimension in DIMENSIONS
        }
        return LinkDashboard(found, ranked)

    async def load_stats(
        self, stats_query: StatsQuery, now: datetime, *, links: int = 0
    ) -> StatsResult:
        """Return totals, a series and the most clicked links."""
        found, _ = await self._load(stats_query, now, (LINKS,) if links else (), links)
        return found

    async def load_breakdown(
        self,
        dimension: str,
        stats_query: StatsQuery,
        now: datetime,
        *,
        limit: int | None,
        links: int,
    ) -> Breakdown:
        """Return the clicks by the values of a dimension, and the most clicked links."""
        begin, end = round_to_rollups(await self._load_progress(), stats_query.get_range(now))
        dimensions = (dimension, LINKS) if links else (dimension,)
        counts = await self._count([begin, end], *dimensions)
        found = aggregation.rank_values(
            dimension, counts.values[dimension], counts.clicks, begin, end, limit
        )
        return replace(found, links=_rank_links(counts, links))

    async def _load(
        self, stats_query: StatsQuery, now: datetime, dimensions: Sequence[str], links: int
    ) -> tuple[StatsResult, CountResult]:
        span = stats_query.get_range(now)
        buckets = build_buckets(span, stats_query.granularity, await self._load_progress())
        edges = [buckets[0].begin, *(bucket.end for bucket in buckets)]
        counts = await self._count(edges, *dimensions)
        begin, end = to_datetime(edges[0]), to_datetime(edges[-1])
        kept_from = to_datetime(counts.kept_from) if counts.kept_from > edges[0] else None
        found = StatsResult(
            begin,
            end,
            stats_query.granularity,
            span.zone.key,
            ClickCounts(counts.clicks, counts.uniques, counts.bots),
            await self._load_previous(TimeRange(edges[0], edges[-1], span.zone).previous)
            if stats_query.compare
            else None,
            _build_series(buckets, counts),
            links=_rank_links(counts, links),
            kept_from=kept_from,
        )
        return found, counts

    async def _load_previous(self, span: TimeRange) -> PreviousPeriod:
        counts = await self._count([span.begin, span.end])
        begin, end = to_datetime(span.begin), to_datetime(span.end)
        return PreviousPeriod(counts.clicks, counts.uniques, counts.bots, begin, end)

    async def _count(self, edges: Sequence[int], *dimensions: str) -> CountResult:
        """Count clicks by bucket and by value.

        `edges` are the beginnings of the buckets and the end of the last one, on quarter hours.
        """
        request = CountRequest(self.scope, self.chosen.stored_values, edges, dimensions)
        processes = self.rt.singleton(ArchiveProcesses)
        async with processes.counting, processes.acquire() as process:
            return await process.run(_count_clicks, self.rt.settings, request)

    async def _load_progress(self) -> RollupProgress:
        async with self.rt.db.read() as session:
            return await load_progress(session)


async def _count_clicks(settings: Settings, request: CountRequest) -> CountResult:
    """Count clicks, in the process that keeps them."""
    from refract.clicks.columns.store import count_clicks  # noqa: PLC0415 - heavy: loads numpy

    return await count_clicks(settings, request)


def _build_series(buckets: Sequence[SeriesBucket], counts: CountResult) -> list[SeriesPoint]:
    return [
        SeriesPoint(
            to_datetime(bucket.begin),
            found.clicks,
            found.uniques,
            found.bots,
            utc_day=bucket.coarse,
            no_data=bucket.end <= counts.kept_from,
        )
        for bucket, found in zip(buckets, counts.buckets, strict=True)
    ]


def _rank_links(counts: CountResult, limit: int) -> list[LinkClicks]:
    if not limit:
        return []
    ranked = sorted((-clicks, int(link)) for link, clicks in counts.values[LINKS].items())
    return [LinkClicks(link, -clicks) for clicks, link in ranked[:limit]]


@dataclass(frozen=True, slots=True)
class RecentClick:
    """A click without anything that tells who it was."""

    at: datetime
    link_id: int
    country: str
    device: str
    source: str


async def load_recent_clicks(
    session: ReadSession, scope: StatsScope, chosen: ClickFilter, now: datetime
) -> tuple[list[RecentClick], int]:
    """Return the latest clicks of people, newest first, and how many there were.

    One query, two if there were more.

    Bounded in time, so that only events of that time are read, however many links there are.
    """
    at = EVENT_COLUMNS["at"]
    conditions = (
        match_targets(scope, is_brief=True),
        EVENT_COLUMNS["kind"] == scope.kind,
        EVENT_COLUMNS["bot"].is_(False),
        at >= now - timedelta(minutes=RECENT_MINUTES),
        match_events(chosen),
    )
    values = [VALUE_EXPRESSIONS[name] for name in ("countries", "devices", "referrers")]
    newest = (
        select_events(at, EVENT_COLUMNS["target_id"], *values)
        .where(*conditions)
        .order_by(at.desc())
        .limit(MAX_RECENT)
    )
    clicks = [RecentClick(*row) for row in await session.execute(newest)]
    if len(clicks) < MAX_RECENT:
        return clicks, len(clicks)
    count = await session.scalar(select_events(func.count()).where(*conditions))
    return clicks, count or 0
