"""The page behind the link of an invitation, which creates an account."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from refract.core.runtime import Runtime
from refract.identity.authentication import set_session_cookie, start_browser_session
from refract.identity.dependencies import OptionalCaller
from refract.identity.errors import (
    CsrfFailed,
    EmailTaken,
    InvitationLinkExpired,
    InvitationsDisabled,
)
from refract.identity.invitations import service
from refract.identity.invitations.schemas import AcceptanceForm
from refract.identity.models import User
from refract.identity.pages.sign_in import SignInLimit
from refract.identity.responses import build_user_context, get_visit_cookie, render_response
from refract.web import csrf, flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, translate, translate_error
from refract.web.networks import client_network
from refract.web.problems import is_html_accepted, list_field_errors

router = page_router()
PATH = "/auth/invitation/{token}"


@router.get(PATH)
async def invitation_page(token: str, request: Request, actor: OptionalCaller, rt: Rt) -> Response:
    """Show who invites to what. A program that only fetches the link does not use it up."""
    await rt.singleton(SignInLimit).charge(client_network(request, rt))
    return await _render_invitation(request, rt, token, signed_in=actor.user if actor else None)


@router.post(PATH)
async def accept_invitation(
    token: str, request: Request, rt: Rt, name: Annotated[str, Form(max_length=1000)] = ""
) -> Response:
    """Use up the link: create the account and sign it in."""
    if not await csrf.is_valid(rt, request, get_visit_cookie(request)):
        raise CsrfFailed
    await rt.singleton(SignInLimit).charge(client_network(request, rt))
    if not rt.settings.signin_links_allowed:
        raise InvitationsDisabled
    try:
        form = AcceptanceForm(name=name)
    except ValidationError as exc:
        error = translate(list_field_errors(exc.errors())[0].message)
        return await _render_invitation(request, rt, token, status=422, name=name, error=error)
    try:
        async with rt.db.write() as session:
            user = await service.accept_invitation(session, rt, token, form.name)
            cookie = await start_browser_session(session, rt, request, user, "invitation")
    except InvitationLinkExpired as exc:
        return _render_expired(request, exc)
    except EmailTaken as exc:
        return await _render_invitation(
            request, rt, token, status=exc.status, name=name, error=translate_error(exc)
        )
    response = RedirectResponse("/", 303)
    flash.add(response, rt, gettext("Welcome, {name}", name=form.name))
    return set_session_cookie(request, rt, response, cookie)


async def _render_invitation(
    request: Request,
    rt: Runtime,
    token: str,
    *,
    status: int = 200,
    signed_in: User | None = None,
    name: str | None = None,
    error: str | None = None,
) -> HTMLResponse:
    """Render the invitation. Its form is bound to the visit, also for a user who is signed in."""
    if not rt.settings.signin_links_allowed:
        raise InvitationsDisabled
    async with rt.db.read() as session:
        found = await service.find_invitation(session, rt, token)
    if found is None:
        return _render_expired(request, InvitationLinkExpired())
    invitation, inviter = found
    return render_response(
        request,
        None,
        "identity/invitation.html",
        status=status,
        page_title=gettext("Invitation"),
        action=request.url.path,
        host=urlsplit(rt.settings.public_url).netloc,
        inviter=inviter.chosen_name,
        invitation=invitation,
        signed_in=build_user_context(signed_in),
        is_own=signed_in is not None and signed_in.id == inviter.id,
        name=invitation.name if name is None else name,
        error=error,
    )


def _render_expired(request: Request, exc: InvitationLinkExpired) -> HTMLResponse:
    if not is_html_accepted(request.headers):
        raise exc
    return render_response(
        request,
        None,
        "identity/invitation_expired.html",
        status=exc.status,
        page_title=gettext("Invitation"),
    )
