"""Statistics for programs: of one link, of all of mine, live, and as a file."""

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from starlette.responses import StreamingResponse

from refract.analytics import stats
from refract.analytics.archive import ArchiveMissing
from refract.analytics.grains import moment_of
from refract.analytics.schemas import BreakdownOut, Dimension, LinkDimension, OverviewBreakdownOut, OverviewOut, StatsOut, When
from refract.analytics.stats import Granularity, Question
from refract.analytics.stats.errors import InvalidRange, TooManyExports, TooManyPoints, TooManyStreams
from refract.analytics.stats.export import Form, export
from refract.analytics.stats.live import Live, Totals, follow
from refract.analytics.stats.raw import CAMPAIGN_PARTS
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity.actors import Reader
from refract.identity.errors import ExportLimitReached, StreamLimitReached, UnknownTimeZone
from refract.identity.shares import PersonalShares, begin_export
from refract.identity.standing import Standing
from refract.identity.visitors import Actor
from refract.limits.errors import TooManyNetworkStreams
from refract.links.dependencies import ASKING, who
from refract.links.errors import LinkNotFound, NotYours
from refract.web.networks import check_stream
from refract.web.problems import problems
from refract.web.toolkit import Rt, api_router
from refract.web.vitals import Vitals

of_link = api_router("/links/{link_id}/stats", "stats")
of_mine = api_router("/stats", "stats")
ROUTERS = (of_link, of_mine)

Answers = dict[int | str, dict[str, Any]]
_RANGE = (*ASKING, InvalidRange, UnknownTimeZone)
_ON_A_LINK = (*_RANGE, LinkNotFound, NotYours)
_STREAM: Answers = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events `clicks` as they come"}}
_FILES = {form.media_type.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}} for form in Form}
_FILE: Answers = {200: {"content": _FILES, "description": "The file"}}
_LONGEST_ZONE = 64

From = Annotated[
    When | None,
    Query(alias="from", description="The first moment; a date is its first moment in `tz`. Left out: 30 days before `to`."),
]
To = Annotated[When | None, Query(description="The moment before which it ends, likewise. Left out: now.")]
Zone = Annotated[
    str, Query(max_length=_LONGEST_ZONE, description="Whose hours and days: a name of the IANA list.", examples=["Europe/Berlin"])
]
Compare = Annotated[bool, Query(description="Also count the time just as long before.")]
Points = Annotated[Granularity, Query(description="How long a point of the series is.")]
Shown = Annotated[int | None, Query(ge=1, le=1000, description="How many values; left out: 10, of browsers and systems 5.")]
Links = Annotated[int, Query(ge=1, le=200, description="How many links to name.")]


def _question(begin: From = None, to: To = None, tz: Zone = "UTC") -> Question:
    return Question(begin, to, tz=tz)


def _series(
    begin: From = None, to: To = None, granularity: Points = Granularity.DAY, tz: Zone = "UTC", compare: Compare = False
) -> Question:
    return Question(begin, to, granularity, tz, compare)


Span = Annotated[Question, Depends(_question)]
Series = Annotated[Question, Depends(_series)]


@of_link.get("", responses=problems(*_ON_A_LINK, TooManyPoints))
async def link_stats(link_id: Id, actor: Reader, rt: Rt, asked: Series) -> StatsOut:
    """Clicks of a link over time. Hours, days, weeks and months of any time zone; what is older than 30 days by UTC days, marked so."""
    async with rt.db.read() as session:
        await stats.demand_stats(session, who(actor), link_id)
    async with rt.db.read() as session:
        found = await stats.link_stats(session, link_id, asked, rt.clock.now())
    return StatsOut.model_validate(found)


@of_link.get(
    "/live",
    response_class=StreamingResponse,
    responses=problems(*_ON_A_LINK, TooManyStreams, TooManyNetworkStreams, StreamLimitReached) | _STREAM,
)
async def live_stats(link_id: Id, actor: Reader, rt: Rt, request: Request) -> StreamingResponse:
    """The totals of a link as server-sent events. One at once and one with every change; after a minute the browser asks again."""
    async with rt.db.read() as session:
        await stats.demand_stats(session, who(actor), link_id)
    rt.part(Live).check()
    check_stream(request, rt)
    rt.part(PersonalShares).check_streams(actor.user.id)
    return StreamingResponse(
        _told(_while_allowed(rt, actor, link_id, request.app.state.vitals)),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _while_allowed(rt: Runtime, actor: Actor, link_id: int, vitals: Vitals) -> AsyncIterator[Totals | None]:
    """Whoever's key is revoked, session ended or account suspended sees no more, here as anywhere."""
    with rt.part(PersonalShares).stream(actor.user.id):
        async with rt.part(Standing).watching(actor) as watcher:
            async for totals in follow(rt, link_id, lambda: vitals.stopping or watcher.gone):
                yield totals


async def _told(news: AsyncIterator[Totals | None]) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    async for totals in news:
        if totals is None:
            yield b": still here\n\n"
            continue
        last = totals.last_clicked_at
        data = {"clicks": totals.clicks, "bots": totals.bots, "last_clicked_at": last and last.isoformat().replace("+00:00", "Z")}
        yield f"event: clicks\ndata: {json.dumps(data)}\n\n".encode()


@of_link.get(
    "/export",
    response_class=StreamingResponse,
    responses=problems(*_ON_A_LINK, TooManyExports, ExportLimitReached, ArchiveMissing) | _FILE,
)
async def export_clicks(
    link_id: Id,
    actor: Reader,
    rt: Rt,
    asked: Span,
    form: Annotated[Form, Query(alias="format", description="What kind of file.")] = Form.CSV,
) -> StreamingResponse:
    """Every click of a link as a file. Bots too, each in a row of its own; `from` and `to` to the microsecond."""
    async with rt.db.read() as session:
        link = await stats.demand_stats(session, who(actor), link_id)
    begin, end = _exactly(asked, rt.clock.now())
    pieces = await begin_export(rt, actor.user.id, export(rt, link_id, form, begin, end, by=actor.user.id))
    name = f"clicks-{link.code}.{form}"
    return StreamingResponse(pieces, media_type=form.media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _exactly(asked: Question, now: datetime) -> tuple[datetime, datetime]:
    """Single clicks need no rounding: moments are taken as they were given."""
    span = asked.span(now)
    begin = asked.begin if isinstance(asked.begin, datetime) else moment_of(span.begin)
    return begin, asked.end if isinstance(asked.end, datetime) else moment_of(span.end)


@of_link.get("/{dimension}", responses=problems(*_ON_A_LINK, ArchiveMissing))
async def link_breakdown(link_id: Id, dimension: LinkDimension, actor: Reader, rt: Rt, asked: Span, limit: Shown = None) -> BreakdownOut:
    """Clicks of a link by the values of a dimension. People alone; bots and those who asked not to be tracked are in none."""
    async with rt.db.read() as session:
        await stats.demand_stats(session, who(actor), link_id)
    if dimension in CAMPAIGN_PARTS:
        begin, end = _exactly(asked, rt.clock.now())
        return BreakdownOut.model_validate(await stats.campaign_parts(rt, link_id, dimension, begin, end, limit=limit))
    async with rt.db.read() as session:
        found = await stats.link_breakdown(session, link_id, dimension, asked, rt.clock.now(), limit=limit)
    return BreakdownOut.model_validate(found)


@of_mine.get("", responses=problems(*_RANGE, TooManyPoints))
async def my_stats(actor: Reader, rt: Rt, asked: Series, links: Links = 50) -> OverviewOut:
    """Clicks on all my links over time, and the most clicked of them. Mine are those I own or co-own."""
    async with rt.db.read() as session:
        found = await stats.overview(session, actor.user.id, asked, rt.clock.now(), links=links)
    return OverviewOut.model_validate(found)


@of_mine.get("/{dimension}", responses=problems(*_RANGE))
async def my_breakdown(
    dimension: Dimension, actor: Reader, rt: Rt, asked: Span, limit: Shown = None, links: Links = 50
) -> OverviewBreakdownOut:
    """Clicks on all my links by the values of a dimension, and the most clicked of the links."""
    async with rt.db.read() as session:
        found = await stats.overview_breakdown(session, actor.user.id, dimension, asked, rt.clock.now(), limit=limit, links=links)
    return OverviewBreakdownOut.model_validate(found)
