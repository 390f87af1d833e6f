"""Who is asking: the dependencies that every protected endpoint names."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Annotated, Any

from fastapi import Depends, Request

from refract.core.runtime import Runtime
from refract.identity.errors import (
    AdministratorsOnly,
    BadCredentials,
    KeyExpired,
    MissingScope,
    OriginUnproven,
    SignInNeeded,
)
from refract.identity.models import Scope, UserRole
from refract.identity.parts import Part
from refract.identity.visitors import COOKIE, Actor, who_asks
from refract.limits.errors import RateLimited
from refract.web import csrf
from refract.web.openapi import Errors, Guard
from refract.web.toolkit import Rt


async def identify(request: Request, rt: Rt) -> Actor | None:
    """Return the person behind a key or a cookie; None for a stranger. A wrong key is an error, a stale cookie is not.

    One request is asked once, however many dependencies and attempts want to know.
    """
    known: dict[str, Any] = request.scope["state"]
    if _CALLER not in known:
        known[_CALLER] = await who_asks(request, rt)
    actor: Actor | None = known[_CALLER]
    return actor


_CALLER = "caller"
MaybeActor = Annotated[Actor | None, Depends(identify)]


def _needs(scope: Scope, actor: Actor | None) -> Actor:
    if actor is None:
        raise SignInNeeded
    if scope not in actor.scopes:
        raise MissingScope(scope=scope)
    return actor


async def _reader(actor: MaybeActor) -> Actor:
    return _needs(Scope.READ, actor)


async def _visiting(actor: MaybeActor) -> Actor | None:
    return None if actor is None else _needs(Scope.READ, actor)


async def _writer(actor: MaybeActor) -> Actor:
    return _needs(Scope.WRITE, actor)


async def _account_holder(actor: MaybeActor) -> Actor:
    return _needs(Scope.ACCOUNT, actor)


async def _admin(actor: MaybeActor) -> Actor:
    if actor is not None and actor.user.role != UserRole.ADMIN:
        raise AdministratorsOnly
    return _needs(Scope.ADMIN, actor)


_REQUIRED: dict[Callable[..., Any], Scope] = {
    _reader: Scope.READ,
    _writer: Scope.WRITE,
    _admin: Scope.ADMIN,
    _account_holder: Scope.ACCOUNT,
}
_GUARDS = (*_REQUIRED, _visiting)


async def admit(request: Request, rt: Runtime, calls: Collection[Callable[..., Any]]) -> bool:
    """Refuse a caller by headers alone, for an endpoint with these dependencies; return whether it is a known person."""
    if identify not in calls:
        return False
    actor = await identify(request, rt)
    for guard in _GUARDS:
        if guard in calls:
            await guard(actor)
    return actor is not None


_API_KEY = (
    "An API key, made in the settings, with the scopes it was given: `read`, `write`, `admin`, or `account` "
    "(manage keys and sessions, delete the account), which no other scope implies."
)
_BEARER = "The same API key as a Bearer token; or a provider's access token, which has every scope of its person but `account`."
SECURITY_SCHEMES = {
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": _API_KEY},
    "bearer": {"type": "http", "scheme": "bearer", "description": _BEARER},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "The cookie of a signed-in browser (`__Host-refract` on https). Changes need an Origin of ours or X-CSRF-Token too.",
    },
}


GUARDING: Errors = (SignInNeeded, BadCredentials, KeyExpired, MissingScope, AdministratorsOnly, OriginUnproven, RateLimited)
"""Errors that follow from asking who somebody is; no endpoint names them."""


def guard_of(calls: Iterable[Callable[..., Any]], method: str) -> Guard | None:
    """What the dependencies of an endpoint ask of its caller, for the OpenAPI document."""
    asked = set(calls)
    if identify not in asked:
        return None
    scope = next((scope for call, scope in _REQUIRED.items() if call in asked), None)
    errors = [BadCredentials, KeyExpired, RateLimited]
    if scope is not None:
        errors += [SignInNeeded, MissingScope]
    if scope is Scope.ADMIN:
        errors.append(AdministratorsOnly)
    if method not in csrf.SAFE_METHODS:
        errors.append(OriginUnproven)
    return Guard(scope, optional=scope is None, errors=tuple(errors))


MaybeReader = Annotated[Actor | None, Depends(_visiting)]
"""Strangers are welcome too; but a key that may not read sees nothing of its person's."""
Reader = Annotated[Actor, Depends(_reader)]
Writer = Annotated[Actor, Depends(_writer)]
Admin = Annotated[Actor, Depends(_admin)]
AccountHolder = Annotated[Actor, Depends(_account_holder)]
"""Somebody in a browser, or a key with the scope `account`."""


def _parts(request: Request) -> Sequence[Part]:
    parts: Sequence[Part] = request.app.state.parts
    return parts


Parts = Annotated[Sequence[Part], Depends(_parts)]
"""What the features above keep of a person, as `app` gathered it."""
