"""Kutt's REST API at `/api/v2`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import PlainTextResponse, Response

from refract.clicks.stats.calendar import Granularity, StatsQuery
from refract.clicks.stats.service import get_dashboard
from refract.compat.dialect import Dialect, Operation
from refract.compat.kutt.errors import (
    KuttDomainNotAllowed,
    KuttDomainsNotSupported,
)
from refract.compat.kutt.schemas import KuttLinkFields
from refract.compat.kutt.shapes import (
    build_link,
    build_period,
    format_time,
    parse_duration,
    parse_uuid,
)
from refract.compat.pagination import make_json_response
from refract.compat.request import DialectRequest
from refract.compat.short_links import create_short_link, get_public_host, get_short_code
from refract.core.db.session import WriteSession
from refract.core.errors import Conflict, Invalid, RefractError
from refract.core.runtime import Runtime
from refract.identity.access import AccessRight
from refract.identity.models import Scope
from refract.links import service
from refract.links.dependencies import charge_code_like_names
from refract.links.enums import LinkState
from refract.links.errors import LinkNotFound, NotOwner
from refract.links.queries import view_link
from refract.links.queries.cards import LinkCard, load_card
from refract.links.queries.numbered import (
    NumberedFilter,
    count_numbered_links,
    load_numbered_cards,
)
from refract.links.schemas import LinkCreate, LinkPatch
from refract.names.grammar import name_key
from refract.names.service import namespace_of

MAX_ITEMS = 50
_READ, _WRITE = Scope.READ, Scope.WRITE
_PERIODS = (
    ("lastDay", timedelta(days=1), Granularity.HOUR, 24),
    ("lastWeek", timedelta(days=7), Granularity.DAY, 7),
    ("lastMonth", timedelta(days=30), Granularity.DAY, 30),
    ("lastYear", timedelta(days=365), Granularity.MONTH, 12),
)


async def read_health(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    return PlainTextResponse("OK")


async def read_user(request: DialectRequest) -> Response:
    """Return the caller with the key that was sent, never another."""
    about = {
        "apikey": request.headers.get("x-api-key", ""),
        "email": request.caller.user.email,
        "domains": [],
    }
    return make_json_response(about)


async def list_links(request: DialectRequest) -> Response:
    """List links. Some clients send the parameters as the body of a GET."""
    rt, sent = request.rt, await request.read_fields()

    def read_number(name: str, default: int) -> int:
        text = str(request.query_params.get(name) or sent.get(name) or default)
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default

    limit, skip = min(read_number("limit", 10), MAX_ITEMS), read_number("skip", 0)
    filters = NumberedFilter(q=request.query_params.get("search", "")[:500])
    caller = request.link_caller
    everyone = str(request.query_params.get("all") or sent.get("all")).lower() == "true"
    if not everyone:
        caller = replace(caller, is_admin=False)
    async with rt.db.read() as session:
        found = await count_numbered_links(session, caller, filters)
        cards = await load_numbered_cards(session, found, skip, max(limit, 1))
    data = [build_link(card, rt.settings.public_url) for card in cards]
    return make_json_response({"total": found.total, "limit": limit, "skip": skip, "data": data})


async def create_link(request: DialectRequest) -> Response:
    rt, given = request.rt, await request.parse_fields(KuttLinkFields)
    if given.domain and given.domain != get_public_host(rt):
        raise KuttDomainNotAllowed
    fields: dict[str, Any] = {
        "destination": given.target or "",
        "names": [given.customurl] if given.customurl else [],
        "find_if_exists": bool(given.reuse),
    }
    if given.password:
        fields["password"] = given.password
    if given.description:
        fields["notes"] = given.description[:2000]
    if given.expire_in:
        fields["expires_at"] = rt.clock.now() + parse_duration(given.expire_in)
    made = await create_short_link(request, LinkCreate(**fields))
    shown = build_link(made.card, rt.settings.public_url)
    return make_json_response(shown, 200 if made.found else 201)


async def read_link(request: DialectRequest) -> Response:
    card = await _load_card(request)
    return make_json_response(build_link(card, request.rt.settings.public_url))


async def change_link(request: DialectRequest) -> Response:
    """Change a link. What is empty stays; a new address replaces the old name."""
    rt, given = request.rt, await request.parse_fields(KuttLinkFields)
    card = await _load_card(request)
    fields: dict[str, Any] = {}
    if given.target:
        fields["destination"] = given.target
    if given.password:
        fields["password"] = given.password
    if given.description:
        fields["notes"] = given.description[:2000]
    if given.expire_in:
        fields["expires_at"] = _compute_expiry(rt, given.expire_in)
    if given.address:
        await charge_code_like_names(rt, request.caller, [given.address])
    patch = LinkPatch(**fields)
    checked = await service.check_changes(rt, patch)
    async with rt.db.write() as session:
        locked = await service.edit_link(
            session,
            namespace_of(rt),
            request.link_caller,
            card.link.id,
            patch,
            checked,
        )
        if given.address:
            await _change_address(request, session, card, given.address)
        card = await load_card(session, locked.link)
    return make_json_response(build_link(card, rt.settings.public_url))


def _compute_expiry(rt: Runtime, text: str) -> datetime:
    """Return an expiry, which clients also send back as the time that they were shown."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return rt.clock.now() + parse_duration(text)


async def _change_address(
    request: DialectRequest, session: WriteSession, card: LinkCard, address: str
) -> None:
    space, caller = namespace_of(request.rt), request.link_caller
    old, host = get_short_code(card), card.link.domain
    if name_key(address) in {name_key(old), *map(name_key, card.own_names)}:
        return
    await service.add_name(session, space, caller, card.link.id, address, host=host)
    if card.own_names:
        await service.release_name(session, space, caller, card.link.id, old, host=host)


async def delete_link(request: DialectRequest) -> Response:
    card, rt = await _load_card(request), request.rt
    async with rt.db.write() as session:
        await service.delete_link(session, request.link_caller, card.link.id, rt.clock.now())
    return make_json_response({"message": "Link has been deleted successfully."})


async def read_stats(request: DialectRequest) -> Response:
    """Return the statistics of a link. A client that sends DELETE here means the same."""
    rt, card = request.rt, await _load_card(request)
    now = rt.clock.now()
    shown = build_link(card, rt.settings.public_url)
    for name, length, granularity, points in _PERIODS:
        asked = StatsQuery(now - length, now, granularity)
        async with rt.db.read() as session:
            found = await get_dashboard(session, card.link.id, asked, now)
        shown[name] = build_period(found, points)
    return make_json_response({**shown, "updatedAt": format_time(now)})


async def refuse_domain_change(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    raise KuttDomainsNotSupported


async def _load_card(request: DialectRequest) -> LinkCard:
    """Return the link in the path if the caller may see its clicks. Raises `LinkNotFound`."""
    link_id = parse_uuid(request.path_params["uuid"])
    if link_id is None:
        raise LinkNotFound
    async with request.rt.db.read() as session:
        try:
            link, _ = await view_link(session, request.link_caller, link_id, AccessRight.STATS)
        except NotOwner as exc:
            raise LinkNotFound from exc
        if link.status == LinkState.DELETED:
            raise LinkNotFound
        return await load_card(session, link)


class KuttDialect(Dialect):
    """Kutt's REST API."""

    name = "kutt"
    roots = (("/api/v2", "/api/v2"),)

    def list_operations(self) -> Sequence[Operation]:
        return (
            Operation("GET", "/health", read_health, None),
            Operation("GET", "/users", read_user, _READ),
            Operation("GET", "/links", list_links, _READ),
            Operation("POST", "/links", create_link, _WRITE),
            Operation("GET", "/links/{uuid}", read_link, _READ),
            Operation("PATCH", "/links/{uuid}", change_link, _WRITE),
            Operation("DELETE", "/links/{uuid}", delete_link, _WRITE),
            Operation("GET", "/links/{uuid}/stats", read_stats, _READ),
            Operation("DELETE", "/links/{uuid}/stats", read_stats, _READ),
            Operation("POST", "/domains", refuse_domain_change, _WRITE),
            Operation("DELETE", "/domains/{uuid}", refuse_domain_change, _WRITE),
        )

    def get_key(self, request: DialectRequest) -> str | None:
        return request.headers.get("x-api-key")

    def make_error_response(
        self,
        request: DialectRequest,  # noqa: ARG002 - the same for all paths
        error: RefractError,
    ) -> Response:
        is_bad = isinstance(error, Invalid | Conflict)
        details = "; ".join(f"{field.field}: {field.message}" for field in error.errors)
        words = details if details and is_bad else error.message
        return make_json_response({"error": str(words)}, 400 if is_bad else error.status)
