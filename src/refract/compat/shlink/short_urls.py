"""Short URLs: list, create, read, edit and delete."""

from typing import Any

from starlette.responses import PlainTextResponse, Response

from refract.compat.pagination import NumberedPage, make_json_response, make_list_response
from refract.compat.request import DialectRequest, parse_time
from refract.compat.shlink.errors import ShlinkDomainNotFound, UnsupportedShortUrlField
from refract.compat.shlink.schemas import NewShortUrl, RedirectRules, ShortUrlFields
from refract.compat.shlink.shapes import build_short_url, enclose_list
from refract.compat.short_links import (
    create_short_link,
    find_short_link,
    get_public_host,
    get_short_url,
    load_short_link,
)
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.domains.models import MAX_HOST_LENGTH
from refract.domains.queries import find_domain
from refract.links import service
from refract.links.enums import Visibility
from refract.links.queries.cards import LinkCard, load_card
from refract.links.queries.numbered import (
    NumberedFilter,
    NumberedSort,
    count_numbered_links,
    load_numbered_cards,
)
from refract.links.schemas import MAX_CLICK_LIMIT, LinkCreate, LinkPatch
from refract.names.service import namespace_of

DEFAULT_ITEMS = 10
_SORTS = {
    "dateCreated": NumberedSort.CREATED,
    "shortCode": NumberedSort.CODE,
    "longUrl": NumberedSort.DESTINATION,
    "title": NumberedSort.TITLE,
    "visits": NumberedSort.CLICKS,
    "nonBotVisits": NumberedSort.PEOPLE,
}


def is_default_domain(rt: Runtime, domain: str | None) -> bool:
    return domain in (None, "", "DEFAULT") or domain == get_public_host(rt)


async def find_host(request: DialectRequest) -> str | None:
    """Return the domain that the query names; None for the default one.

    Raises `ShlinkDomainNotFound`.
    """
    domain = request.query_params.get("domain")
    if domain is None or is_default_domain(request.rt, domain):
        return None
    async with request.rt.db.read() as session:
        found = await find_domain(session, domain[:MAX_HOST_LENGTH])
    if found is None or not found.is_active:
        raise ShlinkDomainNotFound(authority=domain[:100])
    return found.host


def require_default_domain(request: DialectRequest) -> None:
    """Raise `ShlinkDomainNotFound` if the query names another domain."""
    domain = request.query_params.get("domain")
    if not is_default_domain(request.rt, domain):
        raise ShlinkDomainNotFound(authority=domain)


def parse_order(request: DialectRequest, default: str) -> tuple[str, bool]:
    """Return the field and whether it descends: `orderBy` is `title-ASC`, older `title`."""
    field, _, direction = (request.query_params.get("orderBy") or default).partition("-")
    return field, direction.upper() == "DESC"


def parse_filter(request: DialectRequest) -> NumberedFilter:
    query = request.query_params
    field, descending = parse_order(request, "dateCreated-DESC")
    until = request.get_time("endDate")
    hides_past = query.get("excludePastValidUntil") == "true"
    return NumberedFilter(
        q=query.get("searchTerm", "")[:500],
        tags=request.list_values("tags"),
        any_tag=query.get("tagsMode") != "all",
        excluded_tags=request.list_values("excludeTags"),
        any_excluded=query.get("excludeTagsMode") != "all",
        created_after=request.get_time("startDate"),
        created_before=until,
        unexpired_at=request.rt.clock.now() if hides_past else None,
        sort=_SORTS.get(field, NumberedSort.CREATED),
        descending=descending,
    )


async def list_short_urls(request: DialectRequest) -> Response:
    rt, caller = request.rt, request.link_caller
    require_default_domain(request)
    filters, page = parse_filter(request), NumberedPage.from_number(request, DEFAULT_ITEMS)
    async with rt.db.read() as session:
        found = await count_numbered_links(session, caller, filters)

    async def load() -> Any:
        for part in page.iter_batches(found.total):
            async with rt.db.read() as session:
                cards = await load_numbered_cards(session, found, part.offset, part.limit)
            yield [build_short_url(card, rt.settings.public_url) for card in cards]

    return await make_list_response(load(), **enclose_list("shortUrls", page, found.total))


async def create_short_url(request: DialectRequest) -> Response:
    card = await _create(request, await request.parse_fields(NewShortUrl))
    return make_json_response(build_short_url(card, request.rt.settings.public_url))


async def shorten_in_one_step(request: DialectRequest) -> Response:
    """Create a short URL by a plain GET; the key is in the query."""
    query = request.query_params
    card = await _create(request, NewShortUrl(longUrl=query.get("longUrl")))
    accepted = request.headers.get("accept", "").strip().startswith("text/plain")
    if (query.get("format") or ("txt" if accepted else "json")) == "txt":
        return PlainTextResponse(get_short_url(request.rt, card))
    return make_json_response(build_short_url(card, request.rt.settings.public_url))


async def _create(request: DialectRequest, given: NewShortUrl) -> LinkCard:
    rt = request.rt
    if given.path_prefix:
        raise UnsupportedShortUrlField("pathPrefix", Phrase("Path prefixes aren't supported here."))
    fields = _build_fields(given)
    if given.domain and not is_default_domain(rt, given.domain):
        if len(given.domain) > MAX_HOST_LENGTH:
            raise ShlinkDomainNotFound(authority=given.domain[:100])
        fields["domain"] = given.domain
    fields.setdefault("forward_query", True)
    fields["destination"] = given.long_url or ""
    fields["names"] = [given.custom_slug] if given.custom_slug else []
    new = LinkCreate(**fields, find_if_exists=given.find_if_exists)
    return (await create_short_link(request, new)).card


def _build_fields(given: ShortUrlFields) -> dict[str, Any]:
    """Return the fields that were given, in our words. Raises what we do not have."""
    found: dict[str, Any] = {}
    if given.tags is not None:
        found["tags"] = given.tags
    if given.title is not None:
        found["title"] = given.title[:200]
    if given.valid_since:
        found["starts_at"] = parse_time("validSince", given.valid_since)
    if given.max_visits:
        found["click_limit"] = _parse_limit(given.max_visits)
    if given.valid_until:
        found["expires_at"] = parse_time("validUntil", given.valid_until)
    if given.crawlable:
        found["visibility"] = Visibility.PUBLIC
    if given.forward_query is not None:
        found["forward_query"] = given.forward_query
    return found


async def read_short_url(request: DialectRequest) -> Response:
    card = await load_short_link(request, request.path_params["code"], await find_host(request))
    return make_json_response(build_short_url(card, request.rt.settings.public_url))


def _parse_limit(most: int) -> int:
    if not 1 <= most <= MAX_CLICK_LIMIT:
        why = Phrase("Enter a number from 1 to {most}.", most=MAX_CLICK_LIMIT)
        raise UnsupportedShortUrlField("maxVisits", why)
    return most


_CLEARED_FIELDS = {
    "title": "title",
    "valid_since": "starts_at",
    "valid_until": "expires_at",
    "max_visits": "click_limit",
}
"""Fields that an empty value clears, with our names."""


async def edit_short_url(request: DialectRequest) -> Response:
    rt, given = request.rt, await request.parse_fields(ShortUrlFields)
    link = await find_short_link(request, request.path_params["code"], await find_host(request))
    fields = _build_fields(given)
    for field, name in _CLEARED_FIELDS.items():
        if field in given.model_fields_set and not getattr(given, field):
            fields[name] = None
    if given.crawlable is False and link.effective_visibility == Visibility.PUBLIC:
        fields["visibility"] = Visibility.UNLISTED
    if given.long_url:
        fields["destination"] = given.long_url
    patch = LinkPatch(**fields)
    checked = await service.check_changes(rt, patch)
    async with rt.db.write() as session:
        locked = await service.edit_link(
            session, namespace_of(rt), request.link_caller, link.id, patch, checked
        )
        card = await load_card(session, locked.link)
    return make_json_response(build_short_url(card, rt.settings.public_url))


async def delete_short_url(request: DialectRequest) -> Response:
    rt = request.rt
    link = await find_short_link(request, request.path_params["code"], await find_host(request))
    async with rt.db.write() as session:
        await service.delete_link(session, request.link_caller, link.id, rt.clock.now())
    return Response(status_code=204)


async def read_redirect_rules(request: DialectRequest) -> Response:
    card = await load_short_link(request, request.path_params["code"])
    return make_json_response({"defaultLongUrl": card.link.destination, "redirectRules": []})


async def replace_redirect_rules(request: DialectRequest) -> Response:
    """Accept an empty list of rules, which is what every link has here."""
    rules = await request.parse_fields(RedirectRules)
    card = await load_short_link(request, request.path_params["code"])
    if rules.redirect_rules:
        why = Phrase("Redirect rules aren't supported here.")
        raise UnsupportedShortUrlField("redirectRules", why)
    return make_json_response({"defaultLongUrl": card.link.destination, "redirectRules": []})
