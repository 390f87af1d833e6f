"""Sign-in with a provider or a one-time link, and sign-out, also at the provider."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Form, Query, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from refract.core.db.session import WriteSession
from refract.core.errors import RefractError, Unavailable
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.identity import audit, sessions
from refract.identity.authentication import (
    SESSION_COOKIE,
    get_session_token,
    set_session_cookie,
    start_browser_session,
)
from refract.identity.dependencies import OptionalCaller
from refract.identity.errors import (
    AccountNotAllowed,
    CsrfFailed,
    InvalidLogoutToken,
    IssuerNotFound,
    IssuerUnavailable,
    SignInFailed,
    SignInLinkExpired,
    SignInLinksDisabled,
)
from refract.identity.models import User
from refract.identity.responses import (
    build_user_context,
    get_visit_cookie,
    render_onward,
    render_response,
)
from refract.limits.shared_limits import SharedLimit
from refract.web import csrf, return_path
from refract.web.cookies import Cookie
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import LazyText, gettext, lazy_gettext, translate_error
from refract.web.networks import client_network, client_network_text
from refract.web.problems import is_html_accepted

router = page_router()
ATTEMPT_COOKIE = Cookie("refract_sign_in")
MAX_NAME_SHOWN = 80
"""Characters of a short link's path that the page shows."""
_USED_LINK = lazy_gettext("This sign-in link was already used, or it has expired.")
CallbackParam = Annotated[str | None, Query(max_length=8192)]
SignInHook = Callable[[WriteSession, Runtime, User, Issuer, Mapping[str, Any]], Awaitable[None]]
"""Follows the verified claims of a user who signs in, in the transaction of the sign-in.

Named by `refract.registry`.
"""


class SignInLimit(SharedLimit):
    """Steps of a sign-in per network. Each may cost a request to the provider or an audit entry."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(
            rt, "sign-in", rt.settings.sign_ins_per_minute, per=Phrase("per minute and network")
        )


@router.get("/auth/sign-in")
async def sign_in_page(request: Request, actor: OptionalCaller) -> Response:
    """Show how to sign in."""
    if actor is not None:
        return RedirectResponse("/", 303)
    return _render_sign_in_page(request)


@router.get("/auth/sign-in/{token}")
async def confirm_sign_in_page(token: str, request: Request, rt: Rt) -> Response:
    """Ask for confirmation: a program that only fetches the link must not use it up."""
    if not rt.settings.signin_links_allowed:
        raise SignInLinksDisabled
    async with rt.db.read() as session:
        user = await sessions.find_signin_link_user(session, rt, token)
    if user is None:
        return _refuse_sign_in(request, SignInLinkExpired(), _USED_LINK)
    return render_response(
        request,
        None,
        "identity/sign_in_confirm.html",
        page_title=gettext("Sign in"),
        token=token,
        action=f"/auth/sign-in/{token}",
        account=build_user_context(user),
    )


@router.post("/auth/sign-in/{token}")
async def sign_in(token: str, request: Request, rt: Rt) -> Response:
    """Use up the link and create a session with a new token."""
    if not await csrf.is_valid(rt, request, get_visit_cookie(request)):
        raise CsrfFailed
    if not rt.settings.signin_links_allowed:
        raise SignInLinksDisabled
    try:
        async with rt.db.write() as session:
            user = await sessions.use_signin_link(session, rt, token)
            cookie = await start_browser_session(session, rt, request, user, "one-time link")
    except SignInLinkExpired as exc:
        return _refuse_sign_in(request, exc, _USED_LINK)
    path = return_path.get_return_path(request, rt) or "/"
    response: Response = (
        RedirectResponse(path, 303)
        if return_path.is_app_page(path)
        else render_onward(request, None, path)
    )
    return set_session_cookie(request, rt, response, cookie)


@router.get("/auth/oidc/{issuer_name}")
async def start_provider_sign_in(issuer_name: str, request: Request, rt: Rt) -> Response:
    """Redirect to the provider. Needs no CSRF token: only a callback with this cookie counts."""
    from refract.identity.oidc import (  # noqa: PLC0415 - only where an issuer is configured
        flow,
        providers,
    )

    await rt.singleton(SignInLimit).charge(client_network(request, rt))
    provider = rt.singleton(providers.OidcProviders).by_name.get(issuer_name)
    if provider is None:
        raise IssuerNotFound
    try:
        url, attempt = await flow.begin_sign_in(rt, provider)
    except IssuerUnavailable as exc:
        return _refuse_sign_in(request, exc)
    response = RedirectResponse(url, 303)
    ATTEMPT_COOKIE.set(response, rt, attempt, max_age=flow.ATTEMPT_SECONDS)
    return response


@router.get("/auth/oidc/{issuer_name}/callback")
async def finish_provider_sign_in(
    issuer_name: str,
    request: Request,
    rt: Rt,
    code: CallbackParam = None,
    state: CallbackParam = None,
    iss: CallbackParam = None,
    error: CallbackParam = None,
) -> Response:
    """Handle the callback: create or update the account, and create a session with a new token."""
    from refract.identity.oidc import (  # noqa: PLC0415 - only where an issuer is configured
        flow,
        providers,
    )
    from refract.identity.oidc.accounts import sync_account  # noqa: PLC0415 - the same

    await rt.singleton(SignInLimit).charge(client_network(request, rt))
    provider = rt.singleton(providers.OidcProviders).by_name.get(issuer_name)
    try:
        if provider is None:
            raise SignInFailed(why=flow.NOT_BEGUN_HERE)
        completed = await flow.finish_sign_in(
            rt,
            provider,
            flow.CallbackParams(code, state, iss, error),
            ATTEMPT_COOKIE.read(request, rt),
        )
        async with rt.db.write() as session:
            if not await sessions.spend_token(
                session,
                completed.attempt.seed,
                until=rt.clock.now() + timedelta(seconds=flow.ATTEMPT_SECONDS),
            ):
                raise SignInFailed(why=flow.NOT_BEGUN_HERE)
            user = await sync_account(session, rt, provider.issuer, completed.claims)
            for follow_claims in request.app.state.sign_in_hooks:
                await follow_claims(session, rt, user, provider.issuer, completed.claims)
            cookie = await start_browser_session(
                session, rt, request, user, provider.name, sid=completed.sid
            )
    except (SignInFailed, AccountNotAllowed, IssuerUnavailable) as exc:
        request.app.state.key_usage.count_refusal("", client_network_text(request, rt) or "")
        return _refuse_sign_in(request, exc)
    response = RedirectResponse(return_path.get_return_path(request, rt) or "/", 303)
    set_session_cookie(request, rt, response, cookie)
    ATTEMPT_COOKIE.delete(response, rt)
    return response


@router.post("/auth/oidc/{issuer_name}/backchannel-logout")
async def backchannel_logout(
    issuer_name: str, request: Request, rt: Rt, logout_token: Annotated[str, Form()] = ""
) -> Response:
    """End sessions at a provider's request (OpenID Connect Back-Channel Logout 1.0).

    Only refused requests count against the limit.
    """
    from refract.identity.oidc import (  # noqa: PLC0415 - only where an issuer is configured
        flow as oidc_flow,
    )
    from refract.identity.oidc import providers  # noqa: PLC0415 - the same

    provider = rt.singleton(providers.OidcProviders).by_name.get(issuer_name)
    if provider is None:
        raise IssuerNotFound
    headers = {"Cache-Control": "no-store"}
    try:
        await oidc_flow.handle_backchannel_logout(rt, provider, logout_token)
    except InvalidLogoutToken as exc:
        await rt.singleton(SignInLimit).charge(client_network(request, rt))
        return JSONResponse(
            {"error": "invalid_request", "error_description": exc.message}, 400, headers=headers
        )
    return Response(status_code=200, headers=headers)


@router.post("/auth/sign-out")
async def sign_out(request: Request, actor: OptionalCaller, rt: Rt) -> Response:
    """End this session, then the provider's own, if it has an endpoint for that."""
    onward = None
    if (
        actor is not None
        and actor.session is not None
        and (token := get_session_token(request, rt))
    ):
        async with rt.db.write() as session:
            await sessions.end_session(session, token)
            await audit.record_event(session, rt, "signed_out", actor=actor.user)
        onward = await _get_provider_sign_out_url(rt, actor.user)
    # The policy of every page lets forms lead to our own origin alone, so a page redirects.
    response: Response = (
        RedirectResponse("/", 303) if onward is None else _render_signed_out_page(request, onward)
    )
    SESSION_COOKIE.delete(response, rt)
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


@router.get("/auth/signed-out")
async def signed_out_page(request: Request) -> Response:
    """Show that the user is signed out, after the provider's own sign-out."""
    return _render_signed_out_page(request, None)


async def _get_provider_sign_out_url(rt: Runtime, user: User) -> str | None:
    if not rt.settings.issuers:
        return None
    from refract.identity.oidc import (  # noqa: PLC0415 - only where an issuer is configured
        flow,
        providers,
    )

    provider = rt.singleton(providers.OidcProviders).find_by_issuer(user.issuer)
    try:
        return (
            flow.build_sign_out_url(rt, provider, (await provider.get_metadata()).discovery)
            if provider is not None
            else None
        )
    except Unavailable:
        return None  # signed out here already


def _refuse_sign_in(
    request: Request, exc: RefractError, reason: LazyText | None = None
) -> Response:
    """Show the sign-in page with the reason. The message of an error may be for programs."""
    if not is_html_accepted(request.headers):
        raise exc
    return _render_sign_in_page(request, exc, reason)


def _render_sign_in_page(
    request: Request, refused: RefractError | None = None, reason: LazyText | None = None
) -> Response:
    rt: Runtime = request.app.state.rt
    return render_response(
        request,
        None,
        "identity/sign_in.html",
        status=refused.status if refused else 200,
        page_title=gettext("Sign in"),
        providers=[
            {"name": issuer.display_name, "href": f"/auth/oidc/{name}"}
            for name, issuer in rt.settings.issuers.items()
        ],
        links_enabled=rt.settings.signin_links_allowed,
        reason=reason or (translate_error(refused) if refused else None),
        purpose=_describe_purpose(return_path.get_return_path(request, rt)),
    )


def _describe_purpose(path: str | None) -> str | None:
    """Return why a browser was sent here, by the path that it returns to after the sign-in."""
    if path is None:
        return None
    bare = return_path.strip_query(path)
    if bare == "/app/lists" or bare.startswith("/app/lists/"):
        return gettext("Sign in to create and publish lists.")
    if return_path.is_app_page(path):
        return gettext("Sign in to continue.")
    name = bare if len(bare) <= MAX_NAME_SHOWN else f"{bare[:MAX_NAME_SHOWN]}…"
    return gettext("{name} is restricted. Sign in to open it.", name=name)


def _render_signed_out_page(request: Request, onward: str | None) -> Response:
    return render_response(
        request, None, "identity/signed_out.html", page_title=gettext("Signed out"), onward=onward
    )
