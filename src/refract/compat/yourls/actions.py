"""The actions of YOURLS' API."""

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from refract.compat.request import DialectRequest
from refract.compat.short_links import (
    create_short_link,
    find_short_link,
    get_short_code,
    get_short_url,
    load_short_link,
    parse_short_code,
)
from refract.compat.yourls.errors import YourlsFailure
from refract.core.errors import Invalid
from refract.identity.models import Scope
from refract.links import service
from refract.links.errors import LinkNotFound
from refract.links.queries.cards import LinkCard, load_card
from refract.links.queries.numbered import (
    NumberedFilter,
    NumberedSort,
    count_numbered_links,
    load_numbered_cards,
    sum_clicks,
)
from refract.links.safety.errors import LinkLoop
from refract.links.schemas import LinkCreate, LinkPatch
from refract.links.service.new_links import find_links_to
from refract.names.errors import InvalidSlug, SlugReserved, SlugTaken
from refract.names.service import namespace_of

YOURLS_VERSION = "1.10.4"
MAX_LISTED = 1_000
Parameters = Mapping[str, Any]


class YourlsAnswer(NamedTuple):
    """An answer, and what it is as bare text."""

    answer: dict[str, Any]
    simple: str = ""


class YourlsAction(NamedTuple):
    """An action, and the scope that it needs."""

    run: Callable[[DialectRequest, Parameters], Awaitable[YourlsAnswer]]
    scope: Scope


def _format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _get_short_url(request: DialectRequest, card: LinkCard) -> str:
    return get_short_url(request.rt, card)


def _build_url(card: LinkCard) -> dict[str, str]:
    """Return a link as creations show it. The address of its maker is not told."""
    return {
        "keyword": get_short_code(card),
        "url": card.link.destination,
        "title": card.link.title or card.link.destination,
        "date": _format_time(card.link.created_at),
        "ip": "",
    }


def _build_link(request: DialectRequest, card: LinkCard) -> dict[str, str]:
    """Return a link as statistics show it. Clicks are those of people and bots."""
    return {
        "shorturl": _get_short_url(request, card),
        "url": card.link.destination,
        "title": card.link.title or card.link.destination,
        "timestamp": _format_time(card.link.created_at),
        "ip": "",
        "clicks": str(card.totals.people + card.totals.bots),
    }


def _fail(code: str, message: str, **more: Any) -> YourlsFailure:
    answer = {
        "status": "fail",
        "code": f"error:{code}",
        "message": message,
        "errorCode": "400",
        "statusCode": "400",
    }
    return YourlsFailure({**answer, **more}, str(more.get("shorturl", message)))


async def shorten(request: DialectRequest, parameters: Parameters) -> YourlsAnswer:
    """Create a link. A URL that the caller has shortened already is an error that names it."""
    url, keyword = str(parameters.get("url") or "").strip(), str(parameters.get("keyword") or "")
    if not url:
        raise _fail("nourl", "Missing or malformed URL")
    if "://" not in url:
        url = f"http://{url}"
    await _refuse_known_url(request, url)
    title = str(parameters.get("title") or "")[:200]
    new = LinkCreate(destination=url, names=[keyword] if keyword else [], title=title or None)
    try:
        card = (await create_short_link(request, new)).card
    except (SlugTaken, SlugReserved, InvalidSlug) as exc:
        message = f"Short URL {keyword} already exists in database or is reserved"
        raise _fail("keyword", message) from exc
    except LinkLoop as exc:
        raise _fail("noloop", "URL is a short URL") from exc
    except Invalid as exc:
        raise _fail("nourl", exc.message) from exc
    shown, short_url = _build_url(card), _get_short_url(request, card)
    answer = {
        "status": "success",
        "code": "",
        "message": f"{url} added to database",
        "errorCode": "",
        "statusCode": "200",
        "url": shown,
        "title": shown["title"],
        "shorturl": short_url,
    }
    return YourlsAnswer(answer, short_url)


async def _refuse_known_url(request: DialectRequest, url: str) -> None:
    rt = request.rt
    async with rt.db.read() as session:
        known = await find_links_to(session, request.caller.user.id, url, rt.clock.now())
        if not known:
            return
        card = await load_card(session, known[0])
    shown = {**_build_url(card), "clicks": str(card.totals.people + card.totals.bots)}
    raise _fail(
        "url",
        f"{url} already exists in database",
        url=shown,
        title=shown["title"],
        shorturl=_get_short_url(request, card),
    )


async def expand(request: DialectRequest, parameters: Parameters) -> YourlsAnswer:
    keyword = _get_keyword(request, parameters)
    try:
        card = await load_short_link(request, keyword)
    except LinkNotFound as exc:
        answer = {
            "keyword": keyword,
            "message": "Error: short URL not found",
            "errorCode": "404",
        }
        raise YourlsFailure(answer, "not found") from exc
    answer = {
        "keyword": get_short_code(card),
        "shorturl": _get_short_url(request, card),
        "longurl": card.link.destination,
        "title": card.link.title or card.link.destination,
        "message": "success",
        "statusCode": "200",
    }
    return YourlsAnswer(answer, card.link.destination)


def _get_keyword(request: DialectRequest, parameters: Parameters) -> str:
    return parse_short_code(request.rt, str(parameters.get("shorturl") or ""))


def _make_not_found() -> YourlsFailure:
    return YourlsFailure(
        {"statusCode": "404", "message": "Error: short URL not found"}, "not found"
    )


async def read_url_stats(request: DialectRequest, parameters: Parameters) -> YourlsAnswer:
    try:
        card = await load_short_link(request, _get_keyword(request, parameters))
    except LinkNotFound as exc:
        raise _make_not_found() from exc
    link = _build_link(request, card)
    return YourlsAnswer({"statusCode": "200", "message": "success", "link": link}, link["clicks"])


_FILTERS = {
    "top": NumberedFilter(sort=NumberedSort.CLICKS),
    "bottom": NumberedFilter(sort=NumberedSort.CLICKS, descending=False),
    "last": NumberedFilter(),
    "rand": NumberedFilter(),
}


async def read_stats(request: DialectRequest, parameters: Parameters) -> YourlsAnswer:
    limit, start = _get_number(parameters, "limit"), _get_number(parameters, "start")
    name = str(parameters.get("filter") or "top")
    filters = replace(_FILTERS.get(name, _FILTERS["top"]))
    cards: list[LinkCard] = []
    async with request.rt.db.read() as session:
        total, sums = await sum_clicks(session, request.link_caller)
        if limit:
            found = await count_numbered_links(session, request.link_caller, filters)
            if name == "rand":
                start = random.randrange(max(1, found.total - limit + 1))  # noqa: S311 - no secret
            cards = await load_numbered_cards(session, found, start, min(limit, MAX_LISTED))
    links = {f"link_{place}": _build_link(request, card) for place, card in enumerate(cards, 1)}
    clicks = sums.people + sums.bots
    answer = {
        **({"links": links} if links else {}),
        "stats": {"total_links": str(total), "total_clicks": str(clicks)},
        "statusCode": "200",
        "message": "success",
    }
    return YourlsAnswer(answer, f"{total} {clicks}")


def _get_number(parameters: Parameters, name: str) -> int:
    text = str(parameters.get(name) or "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


async def read_db_stats(request: DialectRequest, parameters: Parameters) -> YourlsAnswer:
    answer = (await read_stats(request, {**parameters, "limit": ""})).answer
    counts = {
        "db-stats": answer["stats"],
        "statusCode": "200",
        "message": "success",
    }
    return YourlsAnswer(counts, " ".join(answer["stats"].values()))


async def read_version(
    request: DialectRequest,  # noqa: ARG001 - an action
    parameters: Parameters,
) -> YourlsAnswer:
    answer = {"version": YOURLS_VERSION}
    if parameters.get("db"):
        answer["db_version"] = "507"
    return YourlsAnswer(answer, YOURLS_VERSION)


async def delete(request: DialectRequest, parameters: Parameters) -> YourlsAnswer:
    """Delete a link, as a common plug-in does."""
    rt = request.rt
    try:
        link = await find_short_link(request, _get_keyword(request, parameters))
    except LinkNotFound as exc:
        raise _make_not_found() from exc
    async with rt.db.write() as session:
        await service.delete_link(session, request.link_caller, link.id, rt.clock.now())
    answer = {"statusCode": "200", "simple": "Link deleted", "message": "success: deleted"}
    return YourlsAnswer(answer, "Link deleted")


async def update(request: DialectRequest, parameters: Parameters) -> YourlsAnswer:
    """Change URL and title of a link, as a common plug-in does."""
    rt = request.rt
    try:
        link = await find_short_link(request, _get_keyword(request, parameters))
    except LinkNotFound as exc:
        raise _make_not_found() from exc
    fields: dict[str, Any] = {}
    if url := str(parameters.get("url") or ""):
        fields["destination"] = url
    if title := str(parameters.get("title") or ""):
        fields["title"] = title[:200]
    patch = LinkPatch(**fields)
    checked = await service.check_changes(rt, patch)
    async with rt.db.write() as session:
        await service.edit_link(
            session, namespace_of(rt), request.link_caller, link.id, patch, checked
        )
    return YourlsAnswer({"statusCode": "200", "message": "success: updated"}, "updated")


ACTIONS: Mapping[str, YourlsAction] = {
    "shorturl": YourlsAction(shorten, Scope.WRITE),
    "expand": YourlsAction(expand, Scope.READ),
    "url-stats": YourlsAction(read_url_stats, Scope.READ),
    "stats": YourlsAction(read_stats, Scope.READ),
    "db-stats": YourlsAction(read_db_stats, Scope.READ),
    "version": YourlsAction(read_version, Scope.READ),
    "delete": YourlsAction(delete, Scope.WRITE),
    "update": YourlsAction(update, Scope.WRITE),
}
