"""Draft owners without an account, known by a cookie of which only the digest is stored."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import Response

from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.core.secrets import hash_credential
from refract.identity.authentication import Caller
from refract.identity.dependencies import OptionalCaller
from refract.identity.errors import CsrfFailed, MissingScope
from refract.identity.models import Scope
from refract.lists.access import ListCaller
from refract.lists.errors import AnonymousListsDisabled
from refract.lists.models import LinkList
from refract.lists.queries import list_claimable
from refract.web import csrf
from refract.web.cookies import Cookie
from refract.web.dependencies import Rt
from refract.web.i18n import gettext
from refract.web.networks import client_network
from refract.web.openapi import Guard, guards

CREATOR_COOKIE = Cookie("refract_creator")
COOKIE_MAX_AGE_SECONDS = 30 * 86_400


@dataclass(frozen=True, slots=True)
class ListClient:
    """The client of a request. `creator` is the creator cookie in plain text, sent or new."""

    actor: Caller | None
    creator: str | None
    network: str
    is_new: bool = False

    @property
    def caller(self) -> ListCaller:
        """Return the caller. Lists made in this request belong to a new cookie too."""
        creator = hash_credential(self.creator) if self.creator else None
        if self.actor is None:
            return ListCaller(creator=creator)
        return ListCaller(self.actor.user.id, creator, self.actor.is_admin)

    @property
    def is_anonymous(self) -> bool:
        return self.actor is None


def read_creator_cookie(request: Request, rt: Runtime) -> str | None:
    """Return the cookie that was sent, if it is valid."""
    sent = CREATOR_COOKIE.read(request, rt) or ""
    try:
        return str(uuid.UUID(sent)) if len(sent) == 36 else None
    except ValueError:
        return None


def _read_claimable_cookie(request: Request, rt: Runtime, actor: Caller | None) -> str | None:
    """Return the cookie that was sent. A key of a team claims nothing."""
    is_team = actor is not None and actor.user.is_team_account
    return None if is_team else read_creator_cookie(request, rt)


async def list_claimable_titles(session: ReadSession, request: Request, rt: Runtime) -> list[str]:
    """Return the titles of unclaimed lists of this browser, to offer them after signing in."""
    cookie = read_creator_cookie(request, rt)
    return format_titles(await list_claimable(session, hash_credential(cookie))) if cookie else []


def format_titles(found: Sequence[LinkList]) -> list[str]:
    return [link_list.title or gettext("Untitled list") for link_list in found]


def set_creator_cookie(response: Response, rt: Runtime, client: ListClient) -> None:
    """Set the cookie of an anonymous client for another 30 days."""
    if client.is_anonymous and client.creator:
        CREATOR_COOKIE.set(response, rt, client.creator, max_age=COOKIE_MAX_AGE_SECONDS)


def _require_lists_allowed(rt: Runtime, actor: Caller | None) -> None:
    """Raise unless lists are allowed without an account."""
    if actor is None and rt.settings.effective_anonymous_lists == "off":
        raise AnonymousListsDisabled


@guards(Guard(Scope.READ, errors=(MissingScope,), anonymous_errors=(AnonymousListsDisabled,)))
async def _authorize_read(request: Request, rt: Rt, actor: OptionalCaller) -> ListClient:
    _require_lists_allowed(rt, actor)
    creator = _read_claimable_cookie(request, rt, actor)
    if actor is not None and Scope.READ not in actor.scopes:
        raise MissingScope(scope=Scope.READ)
    return ListClient(actor, creator, client_network(request, rt))


@guards(Guard(Scope.WRITE, errors=(MissingScope,), anonymous_errors=(AnonymousListsDisabled,)))
async def _authorize_write(request: Request, rt: Rt, actor: OptionalCaller) -> ListClient:
    """Accept the creator cookie only if the request provably comes from our pages."""
    _require_lists_allowed(rt, actor)
    if actor is not None and Scope.WRITE not in actor.scopes:
        raise MissingScope(scope=Scope.WRITE)
    creator = _read_claimable_cookie(request, rt, actor)
    if creator is not None and not await csrf.is_valid(rt, request, creator):
        if actor is None:
            raise CsrfFailed
        creator = None  # a key or a proven session works without it
    visitor = ListClient(
        actor,
        creator or (str(uuid.uuid4()) if actor is None else None),
        client_network(request, rt),
        is_new=creator is None,
    )
    if actor is None:
        request.state.actor = (  # whose stored answers a request may repeat
            f"creator:{(visitor.caller.creator or '')[:48]}"
        )
    return visitor


ReadListClient = Annotated[ListClient, Depends(_authorize_read)]
WriteListClient = Annotated[ListClient, Depends(_authorize_write)]
