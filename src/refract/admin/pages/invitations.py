"""Admin page of invitations to create an account, and sign-in links for people."""

from typing import Annotated, Any

from fastapi import Form, Request
from pydantic import BaseModel, ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from refract.admin.pages.people import get_label, render_people
from refract.admin.service import create_person_signin_link
from refract.core.errors import RefractError
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import AccountCaller, AdminCaller
from refract.identity.invitations import service
from refract.identity.invitations.models import AccountInvitation
from refract.identity.invitations.schemas import (
    DEFAULT_VALID_DAYS,
    AccountInvitationCreate,
    AccountInvitationOut,
)
from refract.identity.models import User
from refract.identity.responses import render_response
from refract.web import flash
from refract.web.dependencies import PER_PAGE, CursorParam, Rt, build_pager, page_router
from refract.web.i18n import gettext, lazy_gettext, translate, translate_error
from refract.web.problems import list_field_errors

router = page_router()
PATH = "/app/admin/invitations"
VALID_DAYS = (
    ("1", lazy_gettext("1 day")),
    ("7", lazy_gettext("7 days")),
    ("30", lazy_gettext("30 days")),
)
ROLES = (("user", lazy_gettext("Member")), ("admin", lazy_gettext("Administrator")))


class InvitationForm(BaseModel):
    """The form of a new invitation, every field as text."""

    name: str = ""
    email: str = ""
    role: str = "user"
    valid_days: str = str(DEFAULT_VALID_DAYS)
    note: str = ""


@router.get(PATH)
async def invitations_page(
    request: Request, actor: AdminCaller, rt: Rt, cursor: CursorParam = None
) -> Response:
    """Show the form and all invitations, newest first."""
    return await _render_invitations(request, actor, rt, cursor=cursor)


@router.post(PATH)
async def create_invitation(
    request: Request, actor: AdminCaller, rt: Rt, form: Annotated[InvitationForm, Form()]
) -> Response:
    """Create an invitation and show its link, the only time, or send it by email."""
    values = form.model_dump()
    given = {field: value for field, value in values.items() if value.strip()}
    try:
        new = AccountInvitationCreate.model_validate(given)
    except ValidationError as exc:
        errors = {
            error.field.partition(".")[0]: translate(error.message)
            for error in list_field_errors(exc.errors())
        }
        return await _render_invitations(
            request, actor, rt, status=422, values=values, errors=errors
        )
    try:
        async with rt.db.write() as session:
            row, url = await service.create_invitation(session, rt, actor.user, new)
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await _render_invitations(
            request, actor, rt, status=exc.status, values=values, problem=translate_error(exc)
        )
    if url is not None:
        return await _render_invitations(request, actor, rt, new_link=_describe_link(row, url))
    response = RedirectResponse(PATH, 303)
    flash.add(response, rt, gettext("Sending the invitation to {email}", email=row.email))
    return response


@router.post(PATH + "/{invitation_id}/link")
async def renew_link(invitation_id: Id, request: Request, actor: AdminCaller, rt: Rt) -> Response:
    """Replace the link of an open invitation and show the new one, the only time."""
    try:
        async with rt.db.write() as session:
            row, url = await service.renew_link(session, rt, actor.user, invitation_id)
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await _render_invitations(
            request, actor, rt, status=exc.status, problem=translate_error(exc)
        )
    return await _render_invitations(request, actor, rt, new_link=_describe_link(row, url))


@router.post(PATH + "/{invitation_id}/revoke")
async def revoke_invitation(
    invitation_id: Id, request: Request, actor: AdminCaller, rt: Rt
) -> Response:
    """Revoke an open invitation."""
    try:
        async with rt.db.write() as session:
            await service.revoke_invitation(session, rt, actor.user, invitation_id)
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await _render_invitations(
            request, actor, rt, status=exc.status, problem=translate_error(exc)
        )
    response = RedirectResponse(PATH, 303)
    flash.add(response, rt, gettext("Invitation revoked"))
    return response


@router.post("/app/admin/people/{user_id}/signin-link")
async def create_signin_link(
    user_id: Id,
    request: Request,
    actor: AdminCaller,
    account: AccountCaller,  # noqa: ARG001 - it guards: a session has the scope `account`
    rt: Rt,
) -> Response:
    """Create a one-time sign-in link for a person and show it, the only time."""
    try:
        async with rt.db.write() as session:
            user, url = await create_person_signin_link(session, rt, actor.user, user_id)
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await render_people(
            request, actor, rt, status=exc.status, problem=translate_error(exc)
        )
    return await render_people(
        request, actor, rt, signin_link={"name": get_label(user), "url": url}
    )


def _describe_link(row: AccountInvitation, url: str) -> dict[str, Any]:
    return {"name": row.name or row.email, "url": url, "expires_at": row.expires_at}


async def _render_invitations(
    request: Request,
    actor: Caller,
    rt: Runtime,
    *,
    cursor: str | None = None,
    status: int = 200,
    **context: Any,
) -> HTMLResponse:
    async with rt.db.read() as session:
        page = await service.list_invitations(
            session, CursorCodec(rt.secret), limit=PER_PAGE, cursor=cursor
        )
    return render_response(
        request,
        actor,
        "admin/invitations.html",
        status=status,
        page_title=gettext("Invitations"),
        here="people",
        is_allowed=rt.settings.signin_links_allowed,
        sends_email=rt.settings.smtp_url is not None,
        invitations=[_build_row(row, inviter, rt) for row, inviter in page.items],
        valid_days=VALID_DAYS,
        default_days=str(DEFAULT_VALID_DAYS),
        roles=ROLES,
        **context,
        **build_pager(PATH, {}, cursor, page.next_cursor),
    )


def _build_row(row: AccountInvitation, inviter: User, rt: Runtime) -> dict[str, Any]:
    shown = AccountInvitationOut.from_invitation(row, inviter, rt.clock.now())
    return dict(shown) | {"inviter": get_label(inviter)}
