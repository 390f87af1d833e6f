"""Owners, shares, transfer, history."""

from typing import Annotated

from fastapi import Path, Response

from refract.core.errors import InvalidStateTransition
from refract.core.page import Cursors, InvalidCursor
from refract.core.schema import Id
from refract.identity.access import Right
from refract.identity.actors import Reader, Writer
from refract.identity.errors import EmailAmbiguous, UserNotFound
from refract.links import queries, service
from refract.links.dependencies import ASKING, ON_A_LINK, Space, offer, shown, who
from refract.links.errors import (
    LinkNotFound,
    NotYours,
    OwnerExists,
    OwnerNotFound,
    PrimaryOwnerProtected,
    ShareExists,
    ShareNotFound,
    TooManyInvitations,
    VersionNotFound,
)
from refract.links.models import InvitedRole
from refract.links.safety import check_destination
from refract.links.safety_errors import BlockedDestination, InvalidUrl, LinkLoop, MaliciousUrl
from refract.links.schemas import (
    InvitationMade,
    LinkOut,
    LinkOwnerOut,
    LinkShareOut,
    OwnerList,
    PersonIn,
    ShareList,
    VersionOut,
    VersionPage,
)
from refract.web.problems import problems
from refract.web.toolkit import PAGE, Cursor, IdempotencyKey, Limit, Rt, api_router

router = api_router("/links/{link_id}", "links")
_PEOPLE = (*ASKING, LinkNotFound, NotYours, UserNotFound, EmailAmbiguous, OwnerExists, InvalidStateTransition)
_OFFERED = problems(*_PEOPLE, TooManyInvitations)
_DONE = {"model": LinkOut, "description": "An administrator assigned it: nobody had to be asked."}


@router.get("/owners", responses=ON_A_LINK)
async def list_owners(link_id: Id, actor: Reader, rt: Rt) -> OwnerList:
    """Who owns a link, the primary owner first."""
    async with rt.db.read() as session:
        _, standing = await queries.view_link(session, who(actor), link_id)
        found = await queries.owners_of(session, link_id)
    managing = standing.may(Right.MANAGE)
    return OwnerList(
        items=[
            LinkOwnerOut(
                user_id=user.id,
                name=user.shown_name,
                email=user.email if managing else None,
                primary=owner.is_primary,
                added_at=owner.created_at,
            )
            for owner, user in found
        ]
    )


@router.post("/owners", status_code=202, responses=_OFFERED | {201: _DONE})
async def add_owner(
    link_id: Id,
    person: PersonIn,
    actor: Writer,
    rt: Rt,
    response: Response,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> InvitationMade | LinkOut:
    """Invite somebody to own the link too. What an administrator does to somebody else's link needs no acceptance."""
    offered = await offer(rt, actor, link_id, person.email, InvitedRole.OWNER)
    response.status_code = 202 if isinstance(offered, InvitationMade) else 201
    return offered


@router.delete("/owners/{user_id}", status_code=204, responses=ON_A_LINK | problems(OwnerNotFound, LinkNotFound, PrimaryOwnerProtected))
async def remove_owner(link_id: Id, user_id: Id, actor: Writer, rt: Rt) -> Response:
    """Take the link from a co-owner, or step down oneself."""
    async with rt.db.write() as session:
        await service.remove_owner(session, who(actor), link_id, user_id, rt.clock.now())
    return Response(status_code=204)


@router.post("/transfer", status_code=202, responses=_OFFERED | {200: _DONE})
async def transfer_link(
    link_id: Id,
    person: PersonIn,
    actor: Writer,
    rt: Rt,
    response: Response,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> InvitationMade | LinkOut:
    """Invite somebody to become the primary owner. Only the primary owner and administrators can; the latter need no acceptance."""
    offered = await offer(rt, actor, link_id, person.email, InvitedRole.PRIMARY)
    response.status_code = 202 if isinstance(offered, InvitationMade) else 200
    return offered


@router.get("/shares", responses=ON_A_LINK)
async def list_shares(link_id: Id, actor: Reader, rt: Rt) -> ShareList:
    """Who may look at a link and its figures."""
    async with rt.db.read() as session:
        await queries.view_link(session, who(actor), link_id, Right.MANAGE)
        found = await queries.shares_of(session, link_id)
    return ShareList(
        items=[LinkShareOut(user_id=user.id, name=user.shown_name, email=user.email, added_at=share.created_at) for share, user in found]
    )


@router.post("/shares", status_code=201, responses=problems(*_PEOPLE, ShareExists))
async def share_link(link_id: Id, person: PersonIn, actor: Writer, rt: Rt, idempotency_key: IdempotencyKey = None) -> LinkShareOut:  # noqa: ARG001 - read by the route class
    """Let somebody look at the link and its figures."""
    await rt.part(service.AddressLimit).charge_caller(who(actor))
    async with rt.db.write() as session:
        held, user = await service.share_link(session, who(actor), link_id, person.email, rt.clock.now())
        return LinkShareOut(user_id=user.id, name=user.shown_name, email=user.email, added_at=held.now)


@router.delete("/shares/{user_id}", status_code=204, responses=ON_A_LINK | problems(ShareNotFound, LinkNotFound))
async def unshare_link(link_id: Id, user_id: Id, actor: Writer, rt: Rt) -> Response:
    """Stop sharing a link with somebody, or leave what was shared with you."""
    async with rt.db.write() as session:
        await service.unshare_link(session, who(actor), link_id, user_id, rt.clock.now())
    return Response(status_code=204)


@router.get("/history", responses=problems(*ASKING, LinkNotFound, NotYours, InvalidCursor))
async def read_history(link_id: Id, actor: Reader, rt: Rt, limit: Limit = PAGE, cursor: Cursor = None) -> VersionPage:
    """Every version of a link, newest first."""
    cursors, question = Cursors(rt.secret), ["history", link_id]
    before = cursors.read(question, cursor)[0] if cursor else None
    async with rt.db.read() as session:
        await queries.view_link(session, who(actor), link_id, Right.EDIT)
        rows = await queries.history_of(session, link_id, limit + 1, before)
    page = cursors.page(question, rows, limit, lambda row: [row.version])
    return VersionPage(items=[VersionOut.model_validate(row) for row in page.items], next_cursor=page.next_cursor)


@router.post(
    "/history/{version}/revert",
    responses=problems(
        *ASKING, LinkNotFound, NotYours, VersionNotFound, InvalidStateTransition, InvalidUrl, LinkLoop, BlockedDestination, MaliciousUrl
    ),
)
async def revert_link(
    link_id: Id,
    version: Annotated[int, Path(ge=1, le=2_147_483_647)],
    actor: Writer,
    rt: Rt,
    space: Space,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> LinkOut:
    """Give a link the fields of an earlier version again."""
    async with rt.db.read() as session:
        await queries.view_link(session, who(actor), link_id, Right.EDIT)
        kept = await queries.version_of(session, link_id, version)
    vetted = await check_destination(rt, kept.snapshot["destination"])
    async with rt.db.write() as session:
        held = await service.revert_link(session, space, who(actor), link_id, version, vetted)
        return await shown(rt, held)
