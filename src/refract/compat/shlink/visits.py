"""Visits: the single clicks of a short URL, a tag, a domain or all short URLs."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import Select, literal, select
from sqlalchemy.types import BigInteger
from starlette.responses import Response

from refract.clicks.stats.newest import (
    COLUMN_INDEXES,
    ClickSelection,
    count_clicks,
    load_clicks,
)
from refract.compat.pagination import NumberedPage, make_json_response, make_list_response
from refract.compat.request import DialectRequest
from refract.compat.shlink.errors import ShlinkDomainNotFound, ShlinkTagNotFound
from refract.compat.shlink.shapes import build_summary, build_sums, build_visit, enclose_list
from refract.compat.shlink.short_urls import (
    find_host,
    is_default_domain,
    require_default_domain,
)
from refract.compat.short_links import find_short_link, get_short_url
from refract.links.enums import LinkState
from refract.links.models import Link, LinkTag
from refract.links.queries.cards import load_cards
from refract.links.queries.numbered import select_listed_links, sum_clicks
from refract.tags.service import find_live_shared_tags

ALL_ITEMS = -1


async def read_overview(request: DialectRequest) -> Response:
    """Return the totals. Requests for unknown paths are not kept, so there are no orphans."""
    async with request.rt.db.read() as session:
        _, sums = await sum_clicks(session, request.link_caller)
    none = build_summary(0, 0)
    counts = {
        "nonOrphanVisits": build_sums(sums),
        "orphanVisits": none,
        "visitsCount": sums.people + sums.bots,
        "orphanVisitsCount": 0,
    }
    return make_json_response({"visits": counts})


async def list_short_url_visits(request: DialectRequest) -> Response:
    link = await find_short_link(request, request.path_params["code"], await find_host(request))
    return await _list_visits(request, select(literal(link.id, BigInteger)))


async def list_all_visits(request: DialectRequest) -> Response:
    require_default_domain(request)
    return await _list_visits(request, _select_own(request))


async def list_domain_visits(request: DialectRequest) -> Response:
    domain = request.path_params["domain"]
    if not is_default_domain(request.rt, domain):
        raise ShlinkDomainNotFound(authority=domain)
    return await _list_visits(request, _select_own(request))


async def list_tag_visits(request: DialectRequest) -> Response:
    name = request.path_params["tag"]
    async with request.rt.db.read() as session:
        tags = await find_live_shared_tags(session, [name])
        tagged = _select_own(request).where(
            Link.id.in_(select(LinkTag.link_id).where(LinkTag.tag_id.in_(list(tags))))
        )
        if await session.scalar(tagged.limit(1)) is None:
            raise ShlinkTagNotFound(tag=name)
    return await _list_visits(request, tagged)


async def list_orphan_visits(request: DialectRequest) -> Response:
    page = NumberedPage.from_number(request, ALL_ITEMS)
    return await make_list_response(_load_none(), **enclose_list("visits", page, 0))


async def delete_visits(request: DialectRequest) -> Response:
    """Delete nothing: clicks are history here. Clients read the number alone."""
    if code := request.path_params.get("code"):
        await find_short_link(request, code, await find_host(request))
    return make_json_response({"deletedVisits": 0})


def _select_own(request: DialectRequest) -> Select[int]:
    return select_listed_links(request.link_caller).where(Link.status != LinkState.DELETED)


async def _list_visits(request: DialectRequest, links: Select[int]) -> Response:
    rt = request.rt
    selection = ClickSelection(
        links,
        request.get_time("startDate"),
        request.get_time("endDate"),
        request.query_params.get("excludeBots") == "true",
    )
    page = NumberedPage.from_number(request, ALL_ITEMS)
    counted = await count_clicks(rt, selection)
    short_urls: dict[int, str] = {}

    async def load() -> Any:
        for part in page.iter_batches(counted.total):
            events = await load_clicks(rt, counted, part.offset, part.limit)
            await _load_short_urls(
                request, {event[COLUMN_INDEXES["target_id"]] for event in events}, short_urls
            )
            yield [build_visit(event, short_urls) for event in events]

    return await make_list_response(load(), **enclose_list("visits", page, counted.total))


async def _load_short_urls(
    request: DialectRequest, link_ids: set[int], known: dict[int, str]
) -> None:
    """Add the short URLs of these links to the known ones."""
    if missing := link_ids - set(known):
        async with request.rt.db.read() as session:
            links = list(await session.scalars(select(Link).where(Link.id.in_(sorted(missing)))))
            cards = await load_cards(session, links)
        known.update({card.link.id: get_short_url(request.rt, card) for card in cards})


async def _load_none() -> AsyncIterator[list[Any]]:
    yield []
