"""Create, list, read, change, delete."""

from typing import Annotated

from fastapi import Query, Response

from refract.core.errors import InvalidStateTransition, Stale
from refract.core.page import Cursors, InvalidCursor
from refract.core.schema import Id, Timestamp
from refract.identity.access import Right
from refract.identity.actors import Reader, Writer
from refract.identity.errors import AdministratorsOnly
from refract.links import queries, service
from refract.links.dependencies import ASKING, GUARDED, ON_A_LINK, Space, shown, who
from refract.links.errors import LinkNotFound, NotYours, PastExpiry, SortUnavailable, TooManyNames, TooManyTags
from refract.links.models import LinkState, Visibility
from refract.links.queries import LinkQuestion, OwnerFilter, Sort
from refract.links.safety import check_destination
from refract.links.safety_errors import BlockedDestination, InvalidUrl, LinkLoop, MaliciousUrl
from refract.links.schemas import LinkCreate, LinkOut, LinkPage, LinkPatch
from refract.names.errors import InvalidSlug, SlugReserved, SlugTaken
from refract.tags.errors import InvalidTag
from refract.web.problems import problems
from refract.web.toolkit import PAGE, BadEtag, Cursor, IdempotencyKey, IfMatch, Limit, Rt, api_router, etag, expected_version

router = api_router("/links", "links")
_BAD_LINK = (InvalidUrl, LinkLoop, BlockedDestination, MaliciousUrl, PastExpiry, TooManyTags, InvalidTag)


@router.post(
    "",
    status_code=201,
    responses=problems(*ASKING, *_BAD_LINK, TooManyNames, InvalidSlug, SlugReserved, SlugTaken)
    | {200: {"model": LinkOut, "description": "There was one already (`find_if_exists`)."}},
)
async def create_link(
    new: LinkCreate,
    actor: Writer,
    rt: Rt,
    response: Response,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> LinkOut:
    """Create a short link."""
    checked = await service.check_link(rt, new)
    async with rt.db.write() as session:
        made = await service.create_link(session, rt, actor.user, checked)
        out = made.card.shown(rt.settings.public_url, rt.clock.now())
    response.status_code = 200 if made.found else 201
    response.headers["ETag"] = etag(out.version)
    response.headers["Location"] = f"/api/v1/links/{out.id}"
    return out


@router.get("", responses=problems(*ASKING, AdministratorsOnly, InvalidCursor, SortUnavailable))
async def list_links(
    actor: Reader,
    rt: Rt,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    owner: Annotated[OwnerFilter, Query(description="`me`: owned or co-owned. `all` is for administrators.")] = OwnerFilter.ME,
    status: Annotated[LinkState | None, Query(description="As it is now; left out, everything but deleted links.")] = None,
    tag: Annotated[str | None, Query(max_length=200, description="A shared tag.")] = None,
    q: Annotated[str | None, Query(max_length=200, description="Words that name, title, notes or destination must contain.")] = None,
    sort: Annotated[
        Sort,
        Query(description="What comes first: the newest, the last changed, the most or the last clicked. Public links: the first two."),
    ] = Sort.CREATED,
    created_after: Annotated[Timestamp | None, Query(description="Made at this moment or later.")] = None,
    created_before: Annotated[Timestamp | None, Query(description="Made before this moment.")] = None,
    visibility: Annotated[Visibility | None, Query(description="Only links of this visibility.")] = None,
) -> LinkPage:
    """My links, those shared with me, everybody's public ones, or for administrators all; newest or most first."""
    if owner == OwnerFilter.ALL and not actor.is_admin:
        raise AdministratorsOnly
    asked = LinkQuestion(owner, status, tag, q, sort, created_after, created_before, visibility)
    now = rt.clock.now()
    async with rt.db.read() as session:
        page = await queries.page_of_links(session, Cursors(rt.secret), who(actor), asked, now, limit=limit, cursor=cursor)
        cards = await queries.cards_of(session, page.items)
    mine = owner in (OwnerFilter.ME, OwnerFilter.ALL)
    items = [card.shown(rt.settings.public_url, now, stats=owner != OwnerFilter.PUBLIC, managing=mine) for card in cards]
    return LinkPage(items=items, next_cursor=page.next_cursor)


@router.get("/{link_id}", responses=GUARDED | problems(LinkNotFound))
async def read_link(link_id: Id, actor: Reader, rt: Rt, response: Response) -> LinkOut:
    """One link."""
    async with rt.db.read() as session:
        link, standing = await queries.view_link(session, who(actor), link_id)
        card = await queries.card_of(session, link)
    out = card.shown(rt.settings.public_url, rt.clock.now(), stats=standing.may(Right.STATS), managing=standing.may(Right.MANAGE))
    response.headers["ETag"] = etag(out.version)
    return out


@router.patch("/{link_id}", responses=problems(*ASKING, *_BAD_LINK, LinkNotFound, NotYours, Stale, BadEtag, InvalidStateTransition))
async def change_link(
    link_id: Id, changes: LinkPatch, actor: Writer, rt: Rt, space: Space, response: Response, if_match: IfMatch = None
) -> LinkOut:
    """Change what is named; everything else stays. With If-Match only the version that was seen is changed."""
    vetted = await check_destination(rt, changes.destination) if changes.destination is not None else None
    async with rt.db.write() as session:
        held = await service.edit_link(session, space, who(actor), link_id, changes, vetted, version=expected_version(if_match))
        out = await shown(rt, held)
    response.headers["ETag"] = etag(out.version)
    return out


@router.delete("/{link_id}", status_code=204, responses=ON_A_LINK | problems(Stale, BadEtag))
async def delete_link(link_id: Id, actor: Writer, rt: Rt, if_match: IfMatch = None) -> Response:
    """Delete a link: it answers 410, its history and names stay, and it can be undone within 24 hours."""
    async with rt.db.write() as session:
        await service.delete_link(session, who(actor), link_id, rt.clock.now(), version=expected_version(if_match))
    return Response(status_code=204)
