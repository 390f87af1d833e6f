"""Invitations: mine to answer, and those of a link to look at and withdraw."""

from fastapi import Response

from refract.core.errors import InvalidStateTransition
from refract.core.page import Cursors, InvalidCursor
from refract.core.schema import Id
from refract.identity.access import Right
from refract.identity.actors import Reader, Writer
from refract.links import queries, service
from refract.links.dependencies import ASKING, GUARDED, ON_A_LINK, shown, who
from refract.links.errors import InvitationNotFound, LinkNotFound, OwnerExists
from refract.links.schemas import InvitationList, InvitationPage, LinkOut
from refract.web.problems import problems
from refract.web.toolkit import PAGE, Cursor, IdempotencyKey, Limit, Rt, api_router

mine = api_router("/me/invitations", "me")
of_link = api_router("/links/{link_id}/invitations", "links")


@mine.get("", responses=problems(*ASKING, InvalidCursor))
async def list_my_invitations(actor: Reader, rt: Rt, limit: Limit = PAGE, cursor: Cursor = None) -> InvitationPage:
    """Links that I was invited to own, newest first. They expire in 14 days."""
    async with rt.db.read() as session:
        cursors, now = Cursors(rt.secret), rt.clock.now()
        page = await queries.page_of_invitations(session, cursors, actor.user.id, now, limit=limit, cursor=cursor)
    items = [facts.shown(rt.settings.public_url, managing=False) for facts in page.items]
    return InvitationPage(items=items, next_cursor=page.next_cursor)


@mine.post("/{invitation_id}/accept", responses=GUARDED | problems(InvitationNotFound, OwnerExists, InvalidStateTransition))
async def accept_invitation(invitation_id: Id, actor: Writer, rt: Rt, idempotency_key: IdempotencyKey = None) -> LinkOut:  # noqa: ARG001 - read by the route class
    """Become an owner of the link, or its primary owner."""
    async with rt.db.write() as session:
        return await shown(rt, await service.accept_invitation(session, actor.user.id, invitation_id, rt.clock.now()))


@mine.post("/{invitation_id}/decline", status_code=204, responses=GUARDED | problems(InvitationNotFound))
async def decline_invitation(invitation_id: Id, actor: Writer, rt: Rt, idempotency_key: IdempotencyKey = None) -> Response:  # noqa: ARG001 - read by the route class
    """Say no. Whoever made the invitation sees that it is gone."""
    async with rt.db.write() as session:
        await service.decline_invitation(session, actor.user.id, invitation_id, rt.clock.now())
    return Response(status_code=204)


@of_link.get("", responses=ON_A_LINK)
async def list_invitations(link_id: Id, actor: Reader, rt: Rt) -> InvitationList:
    """Who was invited to own a link and has not answered yet."""
    async with rt.db.read() as session:
        await queries.view_link(session, who(actor), link_id, Right.MANAGE)
        found = await queries.invitations_of(session, link_id, rt.clock.now())
    return InvitationList(items=[facts.shown(rt.settings.public_url, managing=True) for facts in found])


@of_link.delete("/{invitation_id}", status_code=204, responses=ON_A_LINK | problems(InvitationNotFound, LinkNotFound))
async def withdraw_invitation(link_id: Id, invitation_id: Id, actor: Writer, rt: Rt) -> Response:
    """Take an invitation back."""
    async with rt.db.write() as session:
        await service.withdraw_invitation(session, who(actor), link_id, invitation_id, rt.clock.now())
    return Response(status_code=204)
