"""API routes to create, list, read, update and delete links."""

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from refract.core.errors import InvalidStateTransition, NothingToUndo
from refract.core.pagination import CursorCodec
from refract.core.schemas import Id, Timestamp
from refract.domains.errors import DomainDisabled, DomainNotAllowed, DomainNotFound
from refract.domains.models import MAX_HOST_LENGTH
from refract.identity.access import AccessRight
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.errors import AdminRequired
from refract.identity.users import save_preferences
from refract.links import queries, service
from refract.links.campaigns.errors import UtmTemplateNotFound
from refract.links.campaigns.service import apply_template, apply_template_to_change
from refract.links.dependencies import Space, charge_code_like_names, load_link_out, to_link_caller
from refract.links.enums import LinkState, Visibility
from refract.links.errors import (
    ChangedByAdmin,
    ExpiryInPast,
    LinkNotFound,
    NotOwner,
    PasswordRequired,
    PasswordUnused,
    RenewalRequired,
    RulesTooLong,
    StartAfterExpiry,
    TeamRequired,
    TooManyTags,
    UnlistedRequired,
    UnsupportedSort,
)
from refract.links.qr_styles import QR_PREFERENCE
from refract.links.queries import LinkFilter, LinkSort, OwnerFilter
from refract.links.queries.qr_styles import get_default_style
from refract.links.safety.errors import BlockedDestination, InvalidUrl, LinkLoop, MaliciousUrl
from refract.links.schemas import (
    LinkCreate,
    LinkOut,
    LinkPatch,
    LinkRenewal,
    LinksPage,
    QrStyleIn,
    QrStyleOut,
)
from refract.names.errors import InvalidSlug, SlugReserved, SlugTaken
from refract.tags.errors import InvalidTag
from refract.teams.errors import TeamNotFound
from refract.web.dependencies import (
    DEFAULT_PAGE_SIZE,
    CursorParam,
    IfMatchHeader,
    LimitParam,
    Rt,
    api_router,
    make_etag,
    parse_if_match,
)
from refract.web.problems import problems

router = api_router("/links", "links")
MAX_TAG_FILTERS = 10
TagFilterParam = Annotated[
    list[Annotated[str, Field(max_length=200)]] | None,
    Query(
        max_length=MAX_TAG_FILTERS, description="A shared tag. Repeat for links with all of them."
    ),
]
_BAD_LINK = (
    InvalidUrl,
    LinkLoop,
    BlockedDestination,
    MaliciousUrl,
    ExpiryInPast,
    StartAfterExpiry,
    PasswordRequired,
    PasswordUnused,
    TooManyTags,
    InvalidTag,
    TeamRequired,
    UtmTemplateNotFound,
    UnlistedRequired,
)


@router.post(
    "",
    status_code=201,
    responses=problems(
        *_BAD_LINK,
        *(InvalidSlug, SlugReserved, SlugTaken, TeamNotFound, RulesTooLong),
        *(DomainNotFound, DomainNotAllowed, DomainDisabled),
    )
    | {200: {"model": LinkOut, "description": "An equivalent link existed (`find_if_exists`)."}},
)
async def create_link(new: LinkCreate, actor: WriteCaller, rt: Rt, response: Response) -> LinkOut:
    """Create a short link."""
    await charge_code_like_names(rt, actor, new.names)
    new = await apply_template(rt, actor.user.id, new)
    checked = await service.check_link(rt, new)
    async with rt.db.write() as session:
        made = await service.create_link(session, rt, actor.user, checked)
        out = made.card.to_schema(rt.settings.public_url, rt.clock.now())
    response.status_code = 200 if made.found else 201
    response.headers["ETag"] = make_etag(out.version)
    response.headers["Location"] = f"/api/v1/links/{out.id}"
    return out


@router.get("", responses=problems(AdminRequired, UnsupportedSort))
async def list_links(
    actor: ReadCaller,
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
    owner: Annotated[
        OwnerFilter, Query(description="`me`: owned or co-owned. `all` is for administrators.")
    ] = OwnerFilter.ME,
    status: Annotated[
        LinkState | None, Query(description="The current state. Omitted: all but deleted links.")
    ] = None,
    tag: TagFilterParam = None,
    q: Annotated[
        str | None,
        Query(max_length=200, description="Words to find in names, title, notes and destination."),
    ] = None,
    sort: Annotated[
        LinkSort,
        Query(
            description=(
                "Newest, last updated, most clicked or last clicked first. "
                "Public links support the first two."
            )
        ),
    ] = LinkSort.CREATED,
    created_after: Annotated[
        Timestamp | None, Query(description="Created at this time or later.")
    ] = None,
    created_before: Annotated[
        Timestamp | None, Query(description="Created before this time.")
    ] = None,
    visibility: Annotated[
        Visibility | None, Query(description="Only links with this visibility.")
    ] = None,
    team: Annotated[
        str | None,
        Query(max_length=50, description="Only links that the team with this handle owns."),
    ] = None,
    domain: Annotated[
        str | None,
        Query(max_length=MAX_HOST_LENGTH, description="Only links on the domain with this host."),
    ] = None,
) -> LinksPage:
    """List your links, links shared with you, public links, or for administrators all of them.

    Sorted newest or most first.
    """
    if owner == OwnerFilter.ALL and not actor.is_admin:
        raise AdminRequired
    tags = tuple(tag or ())
    filters = LinkFilter(
        owner, status, tags, q, sort, created_after, created_before, visibility, team
    ).on_domain(rt.settings.public_url, domain)
    now = rt.clock.now()
    async with rt.db.read() as session:
        page = await queries.load_links_page(
            session,
            CursorCodec(rt.secret),
            to_link_caller(actor),
            filters,
            now,
            limit=limit,
            cursor=cursor,
        )
        cards = await queries.load_cards(session, page.items)
    mine = owner in (OwnerFilter.ME, OwnerFilter.ALL)
    items = [
        card.to_schema(
            rt.settings.public_url, now, stats=owner != OwnerFilter.PUBLIC, managing=mine
        )
        for card in cards
    ]
    return LinksPage(items=items, next_cursor=page.next_cursor)


@router.get("/{link_id}", responses=problems(LinkNotFound))
async def read_link(link_id: Id, actor: ReadCaller, rt: Rt, response: Response) -> LinkOut:
    """Get a link."""
    async with rt.db.read() as session:
        link, access = await queries.view_link(session, to_link_caller(actor), link_id)
        card = await queries.load_card(session, link)
    out = card.to_schema(
        rt.settings.public_url,
        rt.clock.now(),
        stats=access.allows(AccessRight.STATS),
        managing=access.allows(AccessRight.MANAGE),
    )
    response.headers["ETag"] = make_etag(out.version)
    return out


@router.patch(
    "/{link_id}", responses=problems(*_BAD_LINK, LinkNotFound, NotOwner, InvalidStateTransition)
)
async def change_link(
    link_id: Id,
    changes: LinkPatch,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    response: Response,
    if_match: IfMatchHeader = None,
) -> LinkOut:
    """Update a link. Omitted fields are unchanged.

    With If-Match the update only applies to that version.
    """
    caller = to_link_caller(actor)
    changes, versions = await apply_template_to_change(
        rt, caller, link_id, changes, parse_if_match(if_match)
    )
    checked = await service.check_changes(rt, changes)
    async with rt.db.write() as session:
        locked = await service.edit_link(
            session, space, caller, link_id, changes, checked, version=versions
        )
        out = await load_link_out(rt, locked)
    response.headers["ETag"] = make_etag(out.version)
    return out


@router.delete("/{link_id}", status_code=204, responses=problems(LinkNotFound, NotOwner))
async def delete_link(
    link_id: Id, actor: WriteCaller, rt: Rt, if_match: IfMatchHeader = None
) -> Response:
    """Delete a link. It responds with 410; its history and names stay.

    The deletion can be undone within 24 hours.
    """
    async with rt.db.write() as session:
        await service.delete_link(
            session,
            to_link_caller(actor),
            link_id,
            rt.clock.now(),
            version=parse_if_match(if_match),
        )
    return Response(status_code=204)


# Disable, enable, renew, undo.

lifecycle_router = api_router("/links/{link_id}", "links")
_LIFE = (LinkNotFound, NotOwner, InvalidStateTransition)


@lifecycle_router.post("/disable", responses=problems(*_LIFE))
async def disable_link(
    link_id: Id, actor: WriteCaller, rt: Rt, if_match: IfMatchHeader = None
) -> LinkOut:
    """Disable a link. It responds with 410 everywhere within a second."""
    async with rt.db.write() as session:
        locked = await service.disable_link(
            session,
            to_link_caller(actor),
            link_id,
            rt.clock.now(),
            version=parse_if_match(if_match),
        )
        return await load_link_out(rt, locked)


@lifecycle_router.post("/enable", responses=problems(*_LIFE, ChangedByAdmin, RenewalRequired))
async def enable_link(
    link_id: Id, actor: WriteCaller, rt: Rt, if_match: IfMatchHeader = None
) -> LinkOut:
    """Enable a disabled link. Only an administrator can enable what an administrator disabled."""
    async with rt.db.write() as session:
        locked = await service.enable_link(
            session,
            to_link_caller(actor),
            link_id,
            rt.clock.now(),
            version=parse_if_match(if_match),
        )
        return await load_link_out(rt, locked)


@lifecycle_router.post("/renew", responses=problems(*_LIFE, ExpiryInPast))
async def renew_link(
    link_id: Id,
    actor: WriteCaller,
    rt: Rt,
    renewal: LinkRenewal | None = None,
    if_match: IfMatchHeader = None,
) -> LinkOut:
    """Set a new expiry, or remove it."""
    until = renewal.expires_at if renewal else None
    async with rt.db.write() as session:
        locked = await service.renew_link(
            session,
            to_link_caller(actor),
            link_id,
            rt.clock.now(),
            until,
            version=parse_if_match(if_match),
        )
        return await load_link_out(rt, locked)


@lifecycle_router.post(
    "/undo", responses=problems(LinkNotFound, NotOwner, NothingToUndo, ChangedByAdmin)
)
async def undo(link_id: Id, actor: WriteCaller, rt: Rt, space: Space) -> LinkOut:
    """Undo the latest delete, disable or edit, within 24 hours."""
    async with rt.db.write() as session:
        locked = await service.undo_link(session, space, to_link_caller(actor), link_id)
        return await load_link_out(rt, locked)


# The looks of QR codes.

qr_style_router = api_router("/me/qr-style", "me")


@qr_style_router.get("")
async def read_default_qr_style(actor: ReadCaller) -> QrStyleOut:
    """Get the looks of the QR codes of your links, where they have no style of their own."""
    return QrStyleOut.model_validate(get_default_style(actor.user.preferences))


@qr_style_router.put("")
async def set_default_qr_style(style: QrStyleIn, actor: WriteCaller, rt: Rt) -> QrStyleOut:
    """Set the looks of your QR codes. An empty object makes them plain again."""
    chosen = style.to_style()
    async with rt.db.write() as session:
        await save_preferences(session, actor.user.id, {QR_PREFERENCE: chosen.to_json()})
    return QrStyleOut.model_validate(chosen)
