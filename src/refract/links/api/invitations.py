"""API routes of invitations, for invited people and for owners."""

from fastapi import Response

from refract.core.errors import InvalidStateTransition
from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.identity.access import AccessRight
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.links import queries, service
from refract.links.dependencies import load_link_out, to_link_caller
from refract.links.errors import InvitationNotFound, LinkNotFound, NotOwner
from refract.links.schemas import InvitationList, InvitationPage, LinkOut
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems

my_router = api_router("/me/invitations", "me")
link_router = api_router("/links/{link_id}/invitations", "links")


@my_router.get("")
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


@my_router.post(
    "/{invitation_id}/accept", responses=problems(InvitationNotFound, InvalidStateTransition)
)
async def accept_invitation(invitation_id: Id, actor: WriteCaller, rt: Rt) -> LinkOut:
    """Accept an invitation and become an owner of the link, or its primary owner."""
    async with rt.db.write() as session:
        return await load_link_out(
            rt,
            await service.accept_invitation(session, actor.user.id, invitation_id, rt.clock.now()),
        )


@my_router.post("/{invitation_id}/decline", status_code=204, responses=problems(InvitationNotFound))
async def decline_invitation(invitation_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Decline an invitation. Its sender sees that it is gone."""
    async with rt.db.write() as session:
        await service.decline_invitation(session, actor.user.id, invitation_id, rt.clock.now())
    return Response(status_code=204)


@link_router.get("", responses=problems(LinkNotFound, NotOwner))
async def list_invitations(link_id: Id, actor: ReadCaller, rt: Rt) -> InvitationList:
    """List the open invitations of a link."""
    async with rt.db.read() as session:
        await queries.view_link(session, to_link_caller(actor), link_id, AccessRight.MANAGE)
        found = await queries.list_link_invitations(session, link_id, rt.clock.now())
    return InvitationList(
        items=[facts.to_schema(rt.settings.public_url, managing=True) for facts in found]
    )


@link_router.delete(
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
