"""API of statistics: of one link, of all own links, live, and as a file."""

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from starlette.responses import StreamingResponse

from refract.clicks import stats
from refract.clicks.archive.service import ArchiveFileMissing
from refract.clicks.columns.dimensions import CAMPAIGN_COLUMNS
from refract.clicks.columns.errors import TooManyRecentClicks
from refract.clicks.rollups.granularity import to_datetime
from refract.clicks.stats import Granularity, StatsQuery
from refract.clicks.stats.errors import (
    FilterRequired,
    InvalidRange,
    TooManyExports,
    TooManyPoints,
    TooManyStreams,
)
from refract.clicks.stats.export import ClickExportFormat, stream_export
from refract.clicks.stats.filters import MAX_FILTER_LENGTH, ClickFilter
from refract.clicks.stats.live import LiveTotals, LiveTotalsWatcher, stream_totals
from refract.clicks.stats.overview import (
    find_tag_scope,
    find_team_scope,
    load_scope_breakdown,
    load_scope_stats,
)
from refract.clicks.stats.schemas import (
    BreakdownOut,
    DateOrTime,
    Dimension,
    LinkDimension,
    OverviewBreakdownOut,
    OverviewOut,
    StatsOut,
)
from refract.clicks.stats.scope import (
    AccountScope,
    AllLinksScope,
    LinkScope,
    StatsOwner,
    StatsScope,
)
from refract.core.clock import format_utc
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.concurrency_limits import UserConcurrencyLimits, start_export
from refract.identity.dependencies import ReadCaller
from refract.identity.errors import (
    AdminRequired,
    ExportLimitReached,
    StreamLimitReached,
    UnknownTimeZone,
)
from refract.identity.revocation import RevocationWatcher
from refract.limits.errors import TooManyNetworkStreams
from refract.links.dependencies import to_link_caller
from refract.links.errors import LinkNotFound, NotOwner
from refract.web.dependencies import Rt, api_router
from refract.web.health import HealthEndpoints
from refract.web.networks import check_stream
from refract.web.problems import problems

link_stats_router = api_router("/links/{link_id}/stats", "stats")
my_stats_router = api_router("/stats", "stats")
ROUTERS = (link_stats_router, my_stats_router)

ResponseDocs = dict[int | str, dict[str, Any]]
_RANGE_ERRORS = (InvalidRange, UnknownTimeZone)
_FILTER_ERRORS = (ArchiveFileMissing, TooManyRecentClicks)
_SCOPE_ERRORS = (*_RANGE_ERRORS, *_FILTER_ERRORS, AdminRequired, FilterRequired)
_LINK_ERRORS = (*_RANGE_ERRORS, LinkNotFound, NotOwner)
_STREAM_RESPONSE: ResponseDocs = {
    200: {
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
        "description": "Events `clicks` as they occur",
    }
}
_FILE_CONTENT = {
    form.media_type.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
    for form in ClickExportFormat
}
_FILE_RESPONSE: ResponseDocs = {200: {"content": _FILE_CONTENT, "description": "The file"}}
_MAX_ZONE_LENGTH = 64

FromParam = Annotated[
    DateOrTime | None,
    Query(
        alias="from",
        description=(
            "Start of the period; a date means its first moment in `tz`."
            " Default: 30 days before `to`."
        ),
    ),
]
ToParam = Annotated[
    DateOrTime | None,
    Query(description="End of the period, not included; a date as for `from`. Default: now."),
]
TimeZoneParam = Annotated[
    str,
    Query(
        max_length=_MAX_ZONE_LENGTH,
        description="Time zone of hours and days: a name of the IANA database.",
        examples=["Europe/Berlin"],
    ),
]
CompareParam = Annotated[
    bool, Query(description="Also count the previous period of the same length.")
]
GranularityParam = Annotated[Granularity, Query(description="Length of a point of the series.")]
ValueLimitParam = Annotated[
    int | None,
    Query(ge=1, le=1000, description="Number of values. Default: 10; 5 for browsers and systems."),
]
LinkLimitParam = Annotated[int, Query(ge=1, le=200, description="Number of links to return.")]


async def _build_range_query(
    begin: FromParam = None, to: ToParam = None, tz: TimeZoneParam = "UTC"
) -> StatsQuery:
    return StatsQuery(begin, to, tz=tz)


async def _build_series_query(
    begin: FromParam = None,
    to: ToParam = None,
    granularity: GranularityParam = Granularity.DAY,
    tz: TimeZoneParam = "UTC",
    compare: CompareParam = False,
) -> StatsQuery:
    return StatsQuery(begin, to, granularity, tz, compare)


def _describe_filter(what: str, example: str) -> Any:
    description = f"Only clicks with this {what}. Filters combine."
    return Query(
        min_length=1, max_length=MAX_FILTER_LENGTH, description=description, examples=[example]
    )


async def _build_filter(  # noqa: PLR0913 - one parameter for each dimension
    *,
    country: Annotated[str | None, _describe_filter("country (ISO 3166)", "DE")] = None,
    city: Annotated[str | None, _describe_filter("city and country", "Berlin, DE")] = None,
    device: Annotated[str | None, _describe_filter("device", "mobile")] = None,
    browser: Annotated[str | None, _describe_filter("browser", "Firefox")] = None,
    system: Annotated[str | None, _describe_filter("operating system", "Windows")] = None,
    referrer: Annotated[
        str | None, _describe_filter("referring host, or `direct`", "news.example.com")
    ] = None,
    campaign: Annotated[str | None, _describe_filter("`utm_campaign`", "spring")] = None,
    node: Annotated[str | None, _describe_filter("server", "web-1")] = None,
    domain: Annotated[str | None, _describe_filter("domain", "sho.rt")] = None,
    language: Annotated[
        str | None, _describe_filter("preferred language (ISO 639), or `und` for unknown", "de")
    ] = None,
    rule: Annotated[
        str | None, _describe_filter("number of the rule that decided, or `none`", "2")
    ] = None,
    rt: Rt,
) -> ClickFilter:
    given = {
        "country": country, "city": city, "device": device, "browser": browser,
        "system": system, "referrer": referrer, "campaign": campaign, "node": node,
        "domain": domain, "language": language, "rule": rule,
    }  # fmt: skip
    return ClickFilter.from_parameters(given.items(), rt.settings.public_url)


FilterQuery = Annotated[ClickFilter, Depends(_build_filter)]


async def _build_scope(
    actor: ReadCaller,
    rt: Rt,
    chosen: FilterQuery,
    tag: Annotated[
        str | None, Query(min_length=1, max_length=100, description="Only links with this tag.")
    ] = None,
    team: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=50,
            description="Only links of your team with this handle. `tag` has no effect then.",
        ),
    ] = None,
    owner: Annotated[
        StatsOwner,
        Query(
            description=(
                "`me`: links that I own or co-own. `all`: the links of everyone, for administrators"
                " and with a filter, such as `domain`. `team` and `tag` have no effect then."
            )
        ),
    ] = StatsOwner.ME,
) -> StatsScope:
    if owner is StatsOwner.ALL:
        if not actor.is_admin:
            raise AdminRequired
        if not chosen:
            raise FilterRequired
        return AllLinksScope()
    if team is not None:
        return (await find_team_scope(rt, actor.user.id, team))[0]
    if tag is not None:
        return (await find_tag_scope(rt, actor.user.id, tag))[0]
    return AccountScope(actor.user.id)


ScopeQuery = Annotated[StatsScope, Depends(_build_scope)]
RangeQuery = Annotated[StatsQuery, Depends(_build_range_query)]
SeriesQuery = Annotated[StatsQuery, Depends(_build_series_query)]


@link_stats_router.get("", responses=problems(*_LINK_ERRORS, TooManyPoints, *_FILTER_ERRORS))
async def link_stats(
    link_id: Id, actor: ReadCaller, rt: Rt, stats_query: SeriesQuery, chosen: FilterQuery
) -> StatsOut:
    """Get the clicks of a link over time.

    Hours, days, weeks or months of any time zone. Data older than 30 days is by UTC day, and marked
    so. With filters, single clicks are counted, for as long as they are kept.
    """
    async with rt.db.read() as session:
        await stats.require_stats_access(session, to_link_caller(actor), link_id)
    found = await load_scope_stats(
        rt, LinkScope(link_id), chosen, stats_query, rt.clock.now(), links=0
    )
    return StatsOut.model_validate(found)


@link_stats_router.get(
    "/live",
    response_class=StreamingResponse,
    responses=problems(
        LinkNotFound, NotOwner, TooManyStreams, TooManyNetworkStreams, StreamLimitReached
    )
    | _STREAM_RESPONSE,
)
async def live_stats(link_id: Id, actor: ReadCaller, rt: Rt, request: Request) -> StreamingResponse:
    """Stream the totals of a link as server-sent events.

    One event immediately and one with every change. The stream ends after a minute, and browsers
    reconnect.
    """
    async with rt.db.read() as session:
        await stats.require_stats_access(session, to_link_caller(actor), link_id)
    rt.singleton(LiveTotalsWatcher).check_capacity()
    check_stream(request, rt)
    rt.singleton(UserConcurrencyLimits).check_stream_limit(actor.user.id)
    return StreamingResponse(
        _format_events(_stream_while_allowed(rt, actor, link_id, request.app.state.vitals)),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream_while_allowed(
    rt: Runtime, actor: Caller, link_id: int, vitals: HealthEndpoints
) -> AsyncIterator[LiveTotals | None]:
    """Stream totals until the caller's key is revoked, session ended or account suspended."""
    with rt.singleton(UserConcurrencyLimits).count_stream(actor.user.id):
        async with rt.singleton(RevocationWatcher).watch(actor) as watcher:
            async for totals in stream_totals(
                rt, link_id, lambda: vitals.is_stopping or watcher.revoked
            ):
                yield totals


async def _format_events(changes: AsyncIterator[LiveTotals | None]) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    async for totals in changes:
        if totals is None:
            yield b": still here\n\n"
            continue
        last = totals.last_clicked_at
        data = {
            "clicks": totals.clicks,
            "bots": totals.bots,
            "last_clicked_at": last and format_utc(last),
        }
        yield f"event: clicks\ndata: {json.dumps(data)}\n\n".encode()


@link_stats_router.get(
    "/export",
    response_class=StreamingResponse,
    responses=problems(*_LINK_ERRORS, TooManyExports, ExportLimitReached, ArchiveFileMissing)
    | _FILE_RESPONSE,
)
async def export_clicks(
    link_id: Id,
    actor: ReadCaller,
    rt: Rt,
    stats_query: RangeQuery,
    form: Annotated[
        ClickExportFormat, Query(alias="format", description="File format.")
    ] = ClickExportFormat.CSV,
) -> StreamingResponse:
    """Export every click of a link as a file.

    Includes bots, one row per click. `from` and `to` are exact to the microsecond.
    """
    async with rt.db.read() as session:
        link = await stats.require_stats_access(session, to_link_caller(actor), link_id)
    begin, end = _get_exact_range(stats_query, rt.clock.now())
    pieces = await start_export(
        rt, actor.user.id, stream_export(rt, link_id, form, begin, end, by=actor.user.id)
    )
    name = f"clicks-{link.code}.{form}"
    return StreamingResponse(
        pieces,
        media_type=form.media_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _get_exact_range(stats_query: StatsQuery, now: datetime) -> tuple[datetime, datetime]:
    """Return the range without rounding, since single clicks need none."""
    span = stats_query.get_range(now)
    begin = (
        stats_query.begin if isinstance(stats_query.begin, datetime) else to_datetime(span.begin)
    )
    return begin, stats_query.end if isinstance(stats_query.end, datetime) else to_datetime(
        span.end
    )


@link_stats_router.get("/{dimension}", responses=problems(*_LINK_ERRORS, *_FILTER_ERRORS))
async def link_breakdown(
    link_id: Id,
    dimension: LinkDimension,
    actor: ReadCaller,
    rt: Rt,
    stats_query: RangeQuery,
    chosen: FilterQuery,
    limit: ValueLimitParam = None,
) -> BreakdownOut:
    """Get the clicks of a link by the values of a dimension.

    Counts people only: bots and people who asked not to be tracked are in no breakdown.
    """
    async with rt.db.read() as session:
        await stats.require_stats_access(session, to_link_caller(actor), link_id)
    if dimension in CAMPAIGN_COLUMNS and not chosen:
        begin, end = _get_exact_range(stats_query, rt.clock.now())
        return BreakdownOut.model_validate(
            await stats.get_campaign_breakdown(rt, link_id, dimension, begin, end, limit=limit)
        )
    found = await load_scope_breakdown(
        rt,
        LinkScope(link_id),
        chosen,
        dimension,
        stats_query,
        rt.clock.now(),
        limit=limit,
        links=0,
    )
    return BreakdownOut.model_validate(found)


@my_stats_router.get("", responses=problems(*_SCOPE_ERRORS, TooManyPoints))
async def my_stats(
    scope: ScopeQuery,
    rt: Rt,
    stats_query: SeriesQuery,
    chosen: FilterQuery,
    links: LinkLimitParam = 50,
) -> OverviewOut:
    """Get the clicks on all my links over time, and the most clicked links.

    My links are those that I own or co-own; administrators get the clicks on the links of everyone
    by `owner=all` and a filter. With filters, single clicks are counted, for as long as
    they are kept.
    """
    found = await load_scope_stats(rt, scope, chosen, stats_query, rt.clock.now(), links=links)
    return OverviewOut.model_validate(found)


@my_stats_router.get("/{dimension}", responses=problems(*_SCOPE_ERRORS))
async def my_breakdown(
    dimension: Dimension,
    scope: ScopeQuery,
    rt: Rt,
    stats_query: RangeQuery,
    chosen: FilterQuery,
    limit: ValueLimitParam = None,
    links: LinkLimitParam = 50,
) -> OverviewBreakdownOut:
    """Get the clicks on all my links by a dimension, and the most clicked links.

    Administrators get those on the links of everyone by `owner=all` and a filter.
    """
    found = await load_scope_breakdown(
        rt, scope, chosen, dimension, stats_query, rt.clock.now(), limit=limit, links=links
    )
    return OverviewBreakdownOut.model_validate(found)
