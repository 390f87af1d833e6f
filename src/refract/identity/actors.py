"""Who is asking: the dependencies that every protected endpoint names."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.responses import Response

from refract.core.runtime import Runtime
from refract.identity.errors import AdministratorsOnly, BadCredentials, MissingScope, OriginUnproven, SignInNeeded
from refract.identity.keys import find_by_key
from refract.identity.models import BrowserSession, Scope, User, UserRole
from refract.identity.sessions import SEEN_EVERY, find_session, keep_alive
from refract.identity.usage import KeyUsage
from refract.web import csrf
from refract.web.limits import RateLimited
from refract.web.openapi import Errors, Guard
from refract.web.toolkit import Rt

ALL_SCOPES = frozenset(Scope)
_NAME = "refract"


@dataclass(frozen=True, slots=True)
class Actor:
    """A person, and the rights that came with this request."""

    user: User
    scopes: frozenset[Scope]
    key_id: int | None = None
    session: BrowserSession | None = None

    @property
    def grantable(self) -> frozenset[Scope] | None:
        """The scopes of the key that asks, which bound those of keys it makes; None where a person asks themself."""
        return self.scopes if self.key_id is not None else None

    @property
    def is_admin(self) -> bool:
        return self.user.role == UserRole.ADMIN and Scope.ADMIN in self.scopes


def cookie_name(rt: Runtime) -> str:
    """`__Host-` makes browsers insist on Secure, on this host alone; it cannot be used on plain http."""
    return f"__Host-{_NAME}" if rt.settings.https else _NAME


def set_session_cookie(response: Response, rt: Runtime, token: str) -> None:
    response.set_cookie(
        cookie_name(rt), token, max_age=rt.settings.session_days * 86_400, path="/", secure=rt.settings.https, httponly=True, samesite="lax"
    )


def clear_session_cookie(response: Response, rt: Runtime) -> None:
    response.delete_cookie(cookie_name(rt), path="/", secure=rt.settings.https, httponly=True, samesite="lax")


def session_token(request: Request, rt: Runtime) -> str | None:
    return request.cookies.get(cookie_name(rt))


async def identify(request: Request, rt: Rt) -> Actor | None:
    """The person behind a key or a cookie; None for a stranger. A key that is wrong is an error, a stale cookie is not."""
    key = request.headers.get("x-api-key") or _bearer(request)
    actor = await _by_key(request, rt, key) if key is not None else await _by_cookie(request, rt)
    if actor is not None:
        request.state.actor = _actor_name(actor.user)
    return actor


def _actor_name(user: User) -> str:
    """Whose stored answers a request may repeat."""
    return f"user:{user.id}"


def _bearer(request: Request) -> str | None:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


async def _by_key(request: Request, rt: Runtime, clear: str) -> Actor:
    usage: KeyUsage = request.app.state.key_usage
    async with rt.db.read() as session:
        found = await find_by_key(session, clear)
    if found is None:
        usage.refused()
        raise BadCredentials
    key, user = found
    request.scope["state"]["rate_headers"] = usage.count(key.id)
    return Actor(user, frozenset(Scope(scope) for scope in key.scopes), key_id=key.id)


async def _by_cookie(request: Request, rt: Runtime) -> Actor | None:
    token = session_token(request, rt)
    if token is None:
        return None
    async with rt.db.read() as session:
        found = await find_session(session, rt, token)
    if found is None:
        return None
    seen, user = found
    if request.method not in csrf.SAFE_METHODS and not await csrf.proven(rt, request, token):
        raise OriginUnproven
    request.state.actor = _actor_name(user)  # before the first write, which may claim an Idempotency-Key for them
    if rt.clock.now() - seen.last_seen_at > SEEN_EVERY:
        async with rt.db.write() as writing:
            await keep_alive(writing, rt, seen)
    scopes = ALL_SCOPES if user.role == UserRole.ADMIN else ALL_SCOPES - {Scope.ADMIN}
    return Actor(user, scopes, session=seen)


MaybeActor = Annotated[Actor | None, Depends(identify)]


def _needs(scope: Scope, actor: Actor | None) -> Actor:
    if actor is None:
        raise SignInNeeded
    if scope not in actor.scopes:
        raise MissingScope(scope=scope)
    return actor


async def _reader(actor: MaybeActor) -> Actor:
    return _needs(Scope.READ, actor)


async def _writer(actor: MaybeActor) -> Actor:
    return _needs(Scope.WRITE, actor)


async def _admin(actor: MaybeActor) -> Actor:
    if actor is not None and actor.user.role != UserRole.ADMIN:
        raise AdministratorsOnly
    return _needs(Scope.ADMIN, actor)


_REQUIRED: dict[Callable[..., Any], Scope] = {_reader: Scope.READ, _writer: Scope.WRITE, _admin: Scope.ADMIN}

SECURITY_SCHEMES = {
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key, made in the settings."},
    "bearer": {"type": "http", "scheme": "bearer", "description": "The same API key as a Bearer token."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": _NAME,
        "description": "The cookie of a signed-in browser (`__Host-refract` on https). Changes need an Origin of ours or X-CSRF-Token too.",
    },
}


GUARDING: Errors = (SignInNeeded, BadCredentials, MissingScope, AdministratorsOnly, OriginUnproven, RateLimited)
"""Errors that follow from asking who somebody is; no endpoint names them."""


def guard_of(calls: Iterable[Callable[..., Any]], method: str) -> Guard | None:
    """What the dependencies of an endpoint ask of its caller, for the OpenAPI document."""
    asked = set(calls)
    if identify not in asked:
        return None
    scope = next((scope for call, scope in _REQUIRED.items() if call in asked), None)
    errors = [BadCredentials, RateLimited]
    if scope is not None:
        errors += [SignInNeeded, MissingScope]
    if scope is Scope.ADMIN:
        errors.append(AdministratorsOnly)
    if method not in csrf.SAFE_METHODS:
        errors.append(OriginUnproven)
    return Guard(scope, optional=scope is None, errors=tuple(errors))


Reader = Annotated[Actor, Depends(_reader)]
Writer = Annotated[Actor, Depends(_writer)]
Admin = Annotated[Actor, Depends(_admin)]
