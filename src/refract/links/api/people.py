"""API routes of owners, shares, transfers, invitations and history."""

from typing import Annotated

from fastapi import Path, Response

from refract.core.errors import InvalidStateTransition
from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.identity.access import AccessRight
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.errors import AmbiguousEmail, UserNotFound
from refract.limits.shared_limits import AddressLimit
from refract.links import queries, service
from refract.links.dependencies import Space, invite_or_assign_owner, load_link_out, to_link_caller
from refract.links.enums import InvitedRole
from refract.links.errors import (
    InvitationNotFound,
    LinkNotFound,
    NotOwner,
    OwnerExists,
    OwnerNotFound,
    PrimaryOwnerProtected,
    PrimaryOwnerRequired,
    ShareExists,
    ShareNotFound,
    TooManyInvitations,
    VersionNotFound,
)
from refract.links.safety.errors import BlockedDestination, LinkLoop, MaliciousUrl
from refract.links.schemas import (
    InvitationCreated,
    InvitationList,
    InvitationPage,
    LinkOut,
    LinkOwnerOut,
    LinkShareOut,
    OwnerList,
    PersonIn,
    ShareList,
    VersionOut,
    VersionPage,
)
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems

router = api_router("/links/{link_id}", "links")
_PEOPLE = (
    LinkNotFound,
    NotOwner,
    UserNotFound,
    AmbiguousEmail,
    OwnerExists,
    InvalidStateTransition,
)
_OFFERED = problems(*_PEOPLE, TooManyInvitations)
_TRANSFERRED = problems(*_PEOPLE, PrimaryOwnerRequired, TooManyInvitations)
_DONE = {"model": LinkOut, "description": "Assigned by an administrator, without an invitation."}


@router.get("/owners", responses=problems(LinkNotFound))
async def list_owners(link_id: Id, actor: ReadCaller, rt: Rt) -> OwnerList:
    """List the owners of a link, the primary owner first."""
    async with rt.db.read() as session:
        _, access = await queries.view_link(session, to_link_caller(actor), link_id)
        found = await queries.list_owners(session, link_id)
    managing = access.allows(AccessRight.MANAGE)
    return OwnerList(
        items=[
            LinkOwnerOut(
                user_id=user.id,
                name=user.public_name,
                email=user.email if managing else None,
                primary=owner.is_primary,
                added_at=owner.created_at,
            )
            for owner, user in found
        ]
    )


@router.post("/owners", status_code=202, responses=_OFFERED | {201: _DONE})
async def add_owner(
    link_id: Id, person: PersonIn, actor: WriteCaller, rt: Rt, response: Response
) -> InvitationCreated | LinkOut:
    """Invite a co-owner. On another's link, an administrator adds them without acceptance."""
    offered = await invite_or_assign_owner(rt, actor, link_id, person.email, InvitedRole.OWNER)
    response.status_code = 202 if isinstance(offered, InvitationCreated) else 201
    return offered


@router.delete(
    "/owners/{user_id}",
    status_code=204,
    responses=problems(LinkNotFound, NotOwner, OwnerNotFound, PrimaryOwnerProtected),
)
async def remove_owner(link_id: Id, user_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Remove a co-owner, or leave as one."""
    async with rt.db.write() as session:
        await service.remove_owner(session, to_link_caller(actor), link_id, user_id, rt.clock.now())
    return Response(status_code=204)


@router.post("/transfer", status_code=202, responses=_TRANSFERRED | {200: _DONE})
async def transfer_link(
    link_id: Id, person: PersonIn, actor: WriteCaller, rt: Rt, response: Response
) -> InvitationCreated | LinkOut:
    """Invite someone to become the primary owner.

    Only the primary owner and administrators can do this; administrators need no acceptance.
    """
    offered = await invite_or_assign_owner(rt, actor, link_id, person.email, InvitedRole.PRIMARY)
    response.status_code = 202 if isinstance(offered, InvitationCreated) else 200
    return offered


@router.get("/shares", responses=problems(LinkNotFound, NotOwner))
async def list_shares(link_id: Id, actor: ReadCaller, rt: Rt) -> ShareList:
    """List the users whom a link is shared with."""
    async with rt.db.read() as session:
        await queries.view_link(session, to_link_caller(actor), link_id, AccessRight.MANAGE)
        found = await queries.list_shares(session, link_id)
    return ShareList(
        items=[
            LinkShareOut(
                user_id=user.id, name=user.public_name, email=user.email, added_at=share.created_at
            )
            for share, user in found
        ]
    )


@router.post("/shares", status_code=201, responses=problems(*_PEOPLE, ShareExists))
async def share_link(link_id: Id, person: PersonIn, actor: WriteCaller, rt: Rt) -> LinkShareOut:
    """Share a link and its analytics with a user."""
    await rt.singleton(AddressLimit).charge_user(actor.user.id, is_admin=actor.is_admin)
    async with rt.db.write() as session:
        locked, user = await service.share_link(
            session, to_link_caller(actor), link_id, person.email, rt.clock.now()
        )
        return LinkShareOut(
            user_id=user.id, name=user.public_name, email=user.email, added_at=locked.now
        )


@router.delete(
    "/shares/{user_id}", status_code=204, responses=problems(LinkNotFound, NotOwner, ShareNotFound)
)
async def unshare_link(link_id: Id, user_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Stop sharing a link with a user, or leave a link that was shared with you."""
    async with rt.db.write() as session:
        await service.unshare_link(session, to_link_caller(actor), link_id, user_id, rt.clock.now())
    return Response(status_code=204)


@router.get("/history", responses=problems(LinkNotFound, NotOwner))
async def read_history(
    link_id: Id,
    actor: ReadCaller,
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
) -> VersionPage:
    """List the versions of a link, newest first."""
    cursors, scope = CursorCodec(rt.secret), ["history", link_id]
    before = cursors.decode(scope, cursor)[0] if cursor else None
    async with rt.db.read() as session:
        await queries.view_link(session, to_link_caller(actor), link_id, AccessRight.EDIT)
        rows = await queries.list_versions(session, link_id, limit + 1, before)
    page = cursors.build_page(scope, rows, limit, lambda row: [row.version])
    return VersionPage(
        items=[VersionOut.model_validate(row) for row in page.items], next_cursor=page.next_cursor
    )


@router.post(
    "/history/{version}/revert",
    responses=problems(
        LinkNotFound,
        NotOwner,
        VersionNotFound,
        InvalidStateTransition,
        LinkLoop,
        BlockedDestination,
        MaliciousUrl,
    ),
)
async def revert_link(
    link_id: Id,
    version: Annotated[int, Path(ge=1, le=2_147_483_647)],
    actor: WriteCaller,
    rt: Rt,
    space: Space,
) -> LinkOut:
    """Restore the fields of an earlier version."""
    async with rt.db.read() as session:
        await queries.view_link(session, to_link_caller(actor), link_id, AccessRight.EDIT)
        kept = await queries.get_version(session, link_id, version)
    vetted = await service.check_version(rt, kept.snapshot)
    async with rt.db.write() as session:
        locked = await service.revert_link(
            session, space, to_link_caller(actor), link_id, version, vetted
        )
        return await load_link_out(rt, locked)


# Invitations, for invited people and for owners.

my_invitations_router = api_router("/me/invitations", "me")
invitations_router = api_router("/links/{link_id}/invitations", "links")


@my_invitations_router.get("")
async def list_my_invitations(
    actor: ReadCaller, rt: Rt, limit: LimitParam = DEFAULT_PAGE_SIZE, cursor: CursorParam = None
) -> InvitationPage:
    """List links that you are invited to own, newest first. Invitations expire in 14 days."""
    async with rt.db.read() as session:
        cursors, now = CursorCodec(rt.secret), rt.clock.now()
        page = await queries.load_invitations_page(
            session, cursors, actor.user.id, now, limit=limit, cursor=cursor
        )
    items = [facts.to_schema(rt.settings.public_url, managing=False) for facts in page.items]
    return InvitationPage(items=items, next_cursor=page.next_cursor)


@my_invitations_router.post(
    "/{invitation_id}/accept", responses=problems(InvitationNotFound, InvalidStateTransition)
)
async def accept_invitation(invitation_id: Id, actor: WriteCaller, rt: Rt) -> LinkOut:
    """Accept an invitation and become an owner of the link, or its primary owner."""
    async with rt.db.write() as session:
        return await load_link_out(
            rt,
            await service.accept_invitation(session, actor.user.id, invitation_id, rt.clock.now()),
        )


@my_invitations_router.post(
    "/{invitation_id}/decline", status_code=204, responses=problems(InvitationNotFound)
)
async def decline_invitation(invitation_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Decline an invitation. Its sender sees that it is gone."""
    async with rt.db.write() as session:
        await service.decline_invitation(session, actor.user.id, invitation_id, rt.clock.now())
    return Response(status_code=204)


@invitations_router.get("", responses=problems(LinkNotFound, NotOwner))
async def list_invitations(link_id: Id, actor: ReadCaller, rt: Rt) -> InvitationList:
    """List the open invitations of a link."""
    async with rt.db.read() as session:
        await queries.view_link(session, to_link_caller(actor), link_id, AccessRight.MANAGE)
        found = await queries.list_link_invitations(session, link_id, rt.clock.now())
    return InvitationList(
        items=[facts.to_schema(rt.settings.public_url, managing=True) for facts in found]
    )


@invitations_router.delete(
    "/{invitation_id}",
    status_code=204,
    responses=problems(LinkNotFound, NotOwner, InvitationNotFound),
)
async def withdraw_invitation(
    link_id: Id, invitation_id: Id, actor: WriteCaller, rt: Rt
) -> Response:
    """Withdraw an invitation."""
    async with rt.db.write() as session:
        await service.withdraw_invitation(
            session, to_link_caller(actor), link_id, invitation_id, rt.clock.now()
        )
    return Response(status_code=204)
