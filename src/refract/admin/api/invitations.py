"""Admin API of invitations to create an account."""

from fastapi import Response

from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.dependencies import AdminCaller
from refract.identity.errors import (
    AccountInvitationNotFound,
    EmailTaken,
    InvitationsDisabled,
    OpenInvitationLimit,
)
from refract.identity.invitations import service
from refract.identity.invitations.models import AccountInvitation
from refract.identity.invitations.schemas import (
    AccountInvitationCreate,
    AccountInvitationOut,
    AccountInvitationPage,
    NewAccountInvitation,
)
from refract.identity.models import User
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems

router = api_router("/admin/invitations", "admin")


@router.get("")
async def list_account_invitations(
    actor: AdminCaller,  # noqa: ARG001 - it guards
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
) -> AccountInvitationPage:
    """List invitations to create an account, newest first.

    They are deleted 30 days after their expiry.
    """
    async with rt.db.read() as session:
        page = await service.list_invitations(
            session, CursorCodec(rt.secret), limit=limit, cursor=cursor
        )
    now = rt.clock.now()
    return AccountInvitationPage(
        items=[AccountInvitationOut.from_invitation(*row, now) for row in page.items],
        next_cursor=page.next_cursor,
    )


@router.post(
    "",
    status_code=201,
    responses=problems(InvitationsDisabled, EmailTaken, OpenInvitationLimit),
    openapi_extra={"x-secret-fields": ["url"]},
)
async def create_account_invitation(
    new: AccountInvitationCreate, actor: AdminCaller, rt: Rt
) -> NewAccountInvitation:
    """Invite a person to create an account, for installations without an identity provider.

    Only this response contains the link, unless it is sent by email.
    """
    async with rt.db.write() as session:
        row, url = await service.create_invitation(session, rt, actor.user, new)
        return _build_new(rt, row, actor.user, url)


@router.post(
    "/{invitation_id}/link",
    responses=problems(AccountInvitationNotFound),
    openapi_extra={"x-secret-fields": ["url"]},
)
async def renew_account_invitation(
    invitation_id: Id, actor: AdminCaller, rt: Rt
) -> NewAccountInvitation:
    """Replace the link of an open invitation. The old one stops working."""
    async with rt.db.write() as session:
        row, url = await service.renew_link(session, rt, actor.user, invitation_id)
        inviter = await session.get_one(User, row.inviter_id)
        return _build_new(rt, row, inviter, url)


@router.delete("/{invitation_id}", status_code=204, responses=problems(AccountInvitationNotFound))
async def revoke_account_invitation(invitation_id: Id, actor: AdminCaller, rt: Rt) -> Response:
    """Revoke an open invitation. Its link stops working immediately."""
    async with rt.db.write() as session:
        await service.revoke_invitation(session, rt, actor.user, invitation_id)
    return Response(status_code=204)


def _build_new(
    rt: Runtime, row: AccountInvitation, inviter: User, url: str | None
) -> NewAccountInvitation:
    shown = AccountInvitationOut.from_invitation(row, inviter, rt.clock.now())
    return NewAccountInvitation(**dict(shown), url=url)
