"""Dependencies that authenticate and authorize the caller of an endpoint."""

from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.identity.authentication import SESSION_COOKIE, Caller, authenticate
from refract.identity.errors import (
    AdminRequired,
    CsrfFailed,
    InvalidCredentials,
    IssuerUnavailable,
    KeyExpired,
    MissingScope,
    SignInRequired,
    TeamKeyForbidden,
)
from refract.identity.models import Scope, UserRole
from refract.identity.personal_data import PersonalDataHook
from refract.identity.responses import get_request_locale
from refract.limits.errors import RateLimited
from refract.web.dependencies import Rt
from refract.web.formats import prepare_language
from refract.web.i18n import set_locale
from refract.web.openapi import Errors, Guard, guards

_CREDENTIALS: Errors = (InvalidCredentials, KeyExpired, RateLimited, IssuerUnavailable)
GUARD_ERRORS: Errors = (
    *_CREDENTIALS,
    TeamKeyForbidden,
    SignInRequired,
    MissingScope,
    AdminRequired,
    CsrfFailed,
)
"""Errors of authentication and authorization; endpoints do not list them."""


TEAM_KEY_TAGS: Final = frozenset({"links", "lists", "names", "stats"})
"""Tags of routes that keys of teams may use: links, lists and analytics, nothing personal."""


@guards(
    Guard(
        errors=_CREDENTIALS,
        unsafe_errors=(CsrfFailed,),
        tags=TEAM_KEY_TAGS,
        untagged_errors=(TeamKeyForbidden,),
    )
)
async def identify_caller(request: Request, rt: Rt) -> Caller | None:
    """Return the caller behind a key, token or cookie; None for an anonymous request.

    An invalid key raises, a stale cookie does not. Runs once per request, for all dependencies.
    """
    state: dict[str, Any] = request.scope["state"]
    if _CALLER not in state:
        state[_CALLER] = await authenticate(request, rt)
    actor: Caller | None = state[_CALLER]
    if actor is not None and actor.user.is_team_account:
        _require_team_route(request)
    if actor is not None and state.get("translated"):
        locale = get_request_locale(request, actor)
        await prepare_language(locale, rt)
        set_locale(locale)
    return actor


def _require_team_route(request: Request) -> None:
    if TEAM_KEY_TAGS.isdisjoint(request.scope["route"].tags):
        raise TeamKeyForbidden


_CALLER = "caller"
OptionalCaller = Annotated[Caller | None, Depends(identify_caller)]


def _require_scope(scope: Scope, actor: Caller | None) -> Caller:
    if actor is None:
        raise SignInRequired
    if scope not in actor.scopes:
        raise MissingScope(scope=scope)
    return actor


def _required(scope: Scope, *further: type[RefractError]) -> Guard:
    return Guard(scope, required=True, errors=(SignInRequired, MissingScope, *further))


@guards(_required(Scope.READ))
async def _require_read(actor: OptionalCaller) -> Caller:
    return _require_scope(Scope.READ, actor)


@guards(Guard(Scope.READ, errors=(MissingScope,)))
async def _allow_anonymous_read(actor: OptionalCaller) -> Caller | None:
    return None if actor is None else _require_scope(Scope.READ, actor)


@guards(_required(Scope.WRITE))
async def _require_write(actor: OptionalCaller) -> Caller:
    return _require_scope(Scope.WRITE, actor)


@guards(_required(Scope.ACCOUNT))
async def _require_account(actor: OptionalCaller) -> Caller:
    return _require_scope(Scope.ACCOUNT, actor)


@guards(_required(Scope.ADMIN, AdminRequired))
async def _require_admin(actor: OptionalCaller) -> Caller:
    if actor is not None and actor.user.role != UserRole.ADMIN:
        raise AdminRequired
    return _require_scope(Scope.ADMIN, actor)


_GUARDS = (_require_read, _require_write, _require_admin, _require_account, _allow_anonymous_read)


async def authorize_before_body(
    request: Request, rt: Runtime, calls: Collection[Callable[..., Any]]
) -> bool:
    """Apply the guards among an endpoint's dependencies before the body is read.

    Return whether the caller is authenticated.
    """
    if identify_caller not in calls:
        return False
    actor = await identify_caller(request, rt)
    for guard in _GUARDS:
        if guard in calls:
            await guard(actor)
    return actor is not None


_API_KEY = (
    "An API key, made in the settings, with the scopes it was given: `read`, `write`, `admin`, or"
    " `account` (manage keys and sessions, delete the account), which no other scope implies."
)
_BEARER = (
    "The same API key as a Bearer token; or a provider's access token, which has every scope of its"
    " person but `account`."
)
SECURITY_SCHEMES = {
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": _API_KEY},
    "bearer": {"type": "http", "scheme": "bearer", "description": _BEARER},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": SESSION_COOKIE.base_name,
        "description": (
            "The cookie of a signed-in browser (`__Host-refract` on https). Changes need an Origin"
            " of ours or X-CSRF-Token too."
        ),
    },
}

OptionalReadCaller = Annotated[Caller | None, Depends(_allow_anonymous_read)]
"""Anonymous callers are allowed, but a key needs the scope `read`."""
ReadCaller = Annotated[Caller, Depends(_require_read)]
WriteCaller = Annotated[Caller, Depends(_require_write)]
AdminCaller = Annotated[Caller, Depends(_require_admin)]
AccountCaller = Annotated[Caller, Depends(_require_account)]
"""A user in a browser, or a key with the scope `account`."""
IncludeRevoked = Annotated[bool, Query(description="Keys that were revoked as well.")]


async def _get_personal_data_hooks(request: Request) -> Sequence[PersonalDataHook]:
    parts: Sequence[PersonalDataHook] = request.app.state.parts
    return parts


PersonalDataHooks = Annotated[Sequence[PersonalDataHook], Depends(_get_personal_data_hooks)]
"""The personal data hooks of all features, as `refract.registry` lists them."""
