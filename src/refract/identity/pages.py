"""Sign-in, sign-out, and the settings page."""

from typing import Annotated, Any

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity import audit, keys, sessions
from refract.identity.actors import MaybeActor, Reader, Writer
from refract.identity.errors import OriginUnproven, SigninLinkSpent
from refract.identity.models import Scope, UserRole
from refract.identity.rendering import respond, shown, visit_cookie
from refract.identity.schemas import KeyCreate, KeyOut
from refract.identity.visitors import Actor, clear_session_cookie, session_token, set_session_cookie
from refract.web import csrf, returning
from refract.web.toolkit import Rt, page_router

router = page_router()


@router.get("/auth/sign-in")
async def sign_in_page(request: Request, actor: MaybeActor) -> Response:
    """How to get in, for people who are not."""
    if actor is not None:
        return RedirectResponse("/", 303)
    return respond(request, None, "signin.html", page_title="Sign in")


@router.get("/auth/sign-in/{token}")
async def confirm_page(token: str, request: Request, rt: Rt) -> Response:
    """Ask before signing in: a program that merely looks at the link must not use it up."""
    async with rt.db.read() as session:
        user = await sessions.peek_signin_link(session, rt, token)
    if user is None:
        raise SigninLinkSpent
    return respond(
        request, None, "signin_confirm.html", page_title="Sign in", token=token, action=f"/auth/sign-in/{token}", account=shown(user)
    )


@router.post("/auth/sign-in/{token}")
async def sign_in(token: str, request: Request, rt: Rt) -> Response:
    """Spend the link and begin a session with a new token."""
    if not await csrf.proven(rt, request, visit_cookie(request)):
        raise OriginUnproven
    async with rt.db.write() as session:
        user = await sessions.spend_signin_link(session, rt, token)
        if old := session_token(request, rt):
            await sessions.end_session(session, old)
        cookie = await sessions.begin_session(session, rt, user, request.headers.get("user-agent", ""))
        await audit.note(session, rt, "signed_in", actor=user, detail="one-time link")
    response = RedirectResponse(returning.wanted(request, rt) or "/", 303)
    returning.forget(request, response, rt)
    set_session_cookie(response, rt, cookie)
    return response


@router.post("/auth/sign-out")
async def sign_out(request: Request, actor: MaybeActor, rt: Rt) -> Response:
    """End this session, here and in the database."""
    if actor is not None and actor.session is not None and (token := session_token(request, rt)):
        async with rt.db.write() as session:
            await sessions.end_session(session, token)
            await audit.note(session, rt, "signed_out", actor=actor.user)
    response = RedirectResponse("/", 303)
    clear_session_cookie(response, rt)
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


@router.get("/app/settings")
async def settings_page(request: Request, actor: Reader, rt: Rt) -> Response:
    return await _settings(request, actor, rt)


@router.post("/app/settings/keys")
async def create_key(
    request: Request, actor: Writer, rt: Rt, name: Annotated[str, Form()] = "", scopes: Annotated[list[str] | None, Form()] = None
) -> Response:
    """Make a key and show it, this once."""
    typed = {"name": name, "scopes": scopes or []}
    try:
        new = KeyCreate.model_validate(typed)
    except ValidationError as wrong:
        errors = {str(one["loc"][0]): str(one["msg"]) for one in wrong.errors()}
        return await _settings(request, actor, rt, status=422, values=typed, errors=errors)
    try:
        async with rt.db.write() as session:
            row, clear = await keys.create_key(session, rt, actor.user, new.name, new.scopes, granted_by=actor.grantable)
            await audit.note(session, rt, "key.created", actor=actor.user, target=row.key_prefix)
    except RefractError as error:
        return await _settings(request, actor, rt, status=error.status, values=typed, errors={"scopes": error.message})
    return await _settings(request, actor, rt, new_key={"name": row.name, "key": clear})


@router.post("/app/settings/keys/{key_id}/revoke")
async def revoke_key(key_id: Id, actor: Writer, rt: Rt) -> Response:
    async with rt.db.write() as session:
        row = await keys.revoke_key(session, actor.user, key_id)
        await audit.note(session, rt, "key.revoked", actor=actor.user, target=row.key_prefix)
    return RedirectResponse("/app/settings#keys-section", 303)


async def _settings(request: Request, actor: Actor, rt: Runtime, *, status: int = 200, **context: Any) -> HTMLResponse:
    async with rt.db.read() as session:
        mine = await keys.keys_of(session, actor.user, revoked_too=True)
    scopes = [Scope.READ, Scope.WRITE, *([Scope.ADMIN] if actor.user.role == UserRole.ADMIN else [])]
    return respond(
        request,
        actor,
        "settings.html",
        status=status,
        page_title="Settings",
        keys=[KeyOut.model_validate(one) for one in mine],
        allowed_scopes=[str(scope) for scope in scopes],
        **context,
    )
