"""Authentication of requests by API key, token or cookie, with or without the framework."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from structlog.contextvars import bind_contextvars

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity import audit
from refract.identity.errors import CsrfFailed, InvalidCredentials
from refract.identity.key_usage import KeyUsageTracker
from refract.identity.keys import SHOWN_PREFIX_LENGTH, ParentKey, find_key, is_key_shaped
from refract.identity.models import ApiKey, BrowserSession, Scope, User, UserRole
from refract.identity.sessions import (
    LAST_SEEN_INTERVAL,
    create_session,
    end_session,
    extend_session,
    find_session,
)
from refract.web import csrf, return_path
from refract.web.cookies import Cookie
from refract.web.networks import client_network_text

ALL_SCOPES = frozenset(Scope)
SESSION_COOKIE = Cookie("refract")


@dataclass(frozen=True, slots=True)
class Caller:
    """The user behind a request, and the scopes of their credential."""

    user: User
    scopes: frozenset[Scope]
    key_id: int | None = None
    session: BrowserSession | None = None

    @property
    def parent_key(self) -> ParentKey | None:
        """Return the calling key, which bounds the keys it creates; None for other credentials."""
        return (
            ParentKey(self.key_id, self.scopes, self.user.id) if self.key_id is not None else None
        )

    @property
    def is_admin(self) -> bool:
        return self.user.role == UserRole.ADMIN and Scope.ADMIN in self.scopes


def get_session_token(request: Request, rt: Runtime) -> str | None:
    return SESSION_COOKIE.read(request, rt)


async def authenticate(request: Request, rt: Runtime) -> Caller | None:
    """Return the caller behind a key, a token or a cookie; None for an anonymous request.

    An invalid key or token raises, a stale cookie does not.
    """
    key, token = request.headers.get("x-api-key"), _get_bearer_token(request)
    if key is None and token is not None and rt.settings.issuers and token.count(".") == 2:
        actor: Caller | None = await _authenticate_token(request, rt, token)
    elif (credential := key or token) is not None:
        actor = await authenticate_key(request, rt, credential)
    else:
        actor = await _authenticate_cookie(request, rt)
    if actor is not None:
        request.state.actor = _format_actor(actor.user)
    return actor


def _format_actor(user: User) -> str:
    """Return the owner of stored responses, which a request may repeat."""
    return f"user:{user.id}"


def _get_bearer_token(request: Request) -> str | None:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


async def authenticate_key(request: Request, rt: Runtime, clear: str) -> Caller:
    """Return the caller behind a key, and count the request. Raises `InvalidCredentials`."""
    usage: KeyUsageTracker = request.app.state.key_usage
    async with rt.db.read() as session:
        found = await find_key(session, clear, rt.clock.now())
    if found is None:
        usage.count_refusal(
            clear[:SHOWN_PREFIX_LENGTH] if is_key_shaped(clear) else "",
            client_network_text(request, rt) or "",
        )
        raise InvalidCredentials
    return admit_key(request, rt, *found)


def admit_key(request: Request, rt: Runtime, key: ApiKey, user: User) -> Caller:
    """Return the caller behind a valid key, and count the request. Raises `RateLimited`."""
    usage: KeyUsageTracker = request.app.state.key_usage
    request.scope["state"]["rate_headers"] = usage.count_key(
        key.id, client_network_text(request, rt)
    )
    bind_contextvars(**{audit.API_KEY_KEY: key.key_prefix})
    return Caller(user, frozenset(Scope(scope) for scope in key.scopes), key_id=key.id)


async def _authenticate_token(request: Request, rt: Runtime, token: str) -> Caller:
    """Return the user of a provider's token, with all their scopes but `account`.

    Requests count against the limit of the user.
    """
    from refract.identity.oidc.accounts import (  # noqa: PLC0415 - only with an issuer
        user_from_bearer_token,
    )

    usage: KeyUsageTracker = request.app.state.key_usage
    user = await user_from_bearer_token(rt, token)
    if user is None:
        usage.count_refusal("", client_network_text(request, rt) or "")
        raise InvalidCredentials
    request.scope["state"]["rate_headers"] = usage.count_user(user.id)
    return Caller(user, _get_scopes(user) - {Scope.ACCOUNT})


def _get_scopes(user: User) -> frozenset[Scope]:
    return ALL_SCOPES if user.role == UserRole.ADMIN else ALL_SCOPES - {Scope.ADMIN}


async def _authenticate_cookie(request: Request, rt: Runtime) -> Caller | None:
    token = get_session_token(request, rt)
    if token is None:
        return None
    async with rt.db.read() as session:
        found = await find_session(session, rt, token)
    if found is None:
        return None
    seen, user = found
    # Before the form is read, which may be larger for users, and before the first write, which
    # may claim an Idempotency-Key.
    request.state.actor = _format_actor(user)
    if request.method not in csrf.SAFE_METHODS and not await csrf.is_valid(rt, request, token):
        raise CsrfFailed
    if (
        rt.clock.now() - seen.last_seen_at > LAST_SEEN_INTERVAL and rt.settings.role != "redirect"
    ):  # which may only read
        async with rt.db.write() as writing:
            await extend_session(writing, rt, user, seen)
    return Caller(user, _get_scopes(user), session=seen)


# Sign-in: a new session, and its cookie.


async def start_browser_session(
    session: WriteSession,
    rt: Runtime,
    request: Request,
    user: User,
    by: str,
    *,
    sid: str | None = None,
) -> str:
    """Create a session and end the browser's old one, so that a planted token is worthless."""
    if old := get_session_token(request, rt):
        await end_session(session, old)
    cookie = await create_session(session, rt, user, request.headers.get("user-agent", ""), sid=sid)
    await audit.record_event(session, rt, "signed_in", actor=user, detail=by)
    return cookie


def set_session_cookie(request: Request, rt: Runtime, response: Response, cookie: str) -> Response:
    """Set the cookie of a new session, and forget the path that was returned to."""
    return_path.clear_path(request, response, rt)
    SESSION_COOKIE.set(response, rt, cookie, max_age=rt.settings.session_days * 86_400)
    return response
