"""Strangers who make lists: a cookie is all that is known of them, and only its digest is kept."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import Response

from refract.core.db import ReadSession
from refract.core.runtime import Runtime
from refract.core.secrets import digest
from refract.identity.actors import MaybeActor
from refract.identity.errors import MissingScope, OriginUnproven
from refract.identity.models import Scope
from refract.identity.visitors import Actor
from refract.lists.access import Who
from refract.lists.errors import AnonymousListsOff
from refract.lists.models import LinkList
from refract.lists.queries import claimable
from refract.web import csrf
from refract.web.networks import client_network
from refract.web.toolkit import Rt

COOKIE = "refract_creator"
KEPT_SECONDS = 30 * 86_400


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whoever asks. `creator` is the cookie in the clear: one that was sent and may be used, or a new one for whoever has none."""

    actor: Actor | None
    creator: str | None
    network: str
    fresh: bool = False

    @property
    def who(self) -> Who:
        """A new cookie has made nothing yet, but what is made now belongs to it."""
        creator = digest(self.creator) if self.creator else None
        if self.actor is None:
            return Who(creator=creator)
        return Who(self.actor.user.id, creator, self.actor.is_admin)

    @property
    def anonymous(self) -> bool:
        return self.actor is None


def cookie_name(rt: Runtime) -> str:
    return f"__Host-{COOKIE}" if rt.settings.https else COOKIE


def creator_cookie(request: Request, rt: Runtime) -> str | None:
    """The cookie that was sent, if it is one of ours."""
    sent = request.cookies.get(cookie_name(rt), "")
    try:
        return str(uuid.UUID(sent)) if len(sent) == 36 else None
    except ValueError:
        return None


async def made_before(session: ReadSession, request: Request, rt: Runtime) -> list[str]:
    """Titles of the lists that this browser made and nobody has claimed: to be offered to whoever has signed in since."""
    cookie = creator_cookie(request, rt)
    return titles(await claimable(session, digest(cookie))) if cookie else []


def titles(found: Sequence[LinkList]) -> list[str]:
    return [one.title or "Untitled list" for one in found]


def remember(response: Response, rt: Runtime, visitor: Visitor) -> None:
    """Let the browser of a stranger keep the cookie, for another 30 days."""
    if visitor.anonymous and visitor.creator:
        response.set_cookie(
            cookie_name(rt), visitor.creator, max_age=KEPT_SECONDS, path="/", secure=rt.settings.https, httponly=True, samesite="lax"
        )


def _demand_lists(rt: Runtime, actor: Actor | None) -> None:
    """Raise unless somebody without an account may have lists here."""
    if actor is None and rt.settings.effective_anonymous_lists == "off":
        raise AnonymousListsOff


async def _reading(request: Request, rt: Rt, actor: MaybeActor) -> Visitor:
    _demand_lists(rt, actor)
    creator = creator_cookie(request, rt)
    if actor is not None and Scope.READ not in actor.scopes:
        raise MissingScope(scope=Scope.READ)
    return Visitor(actor, creator, client_network(request, rt))


async def _writing(request: Request, rt: Rt, actor: MaybeActor) -> Visitor:
    """A cookie authorises no change unless the request is shown to come from our pages."""
    _demand_lists(rt, actor)
    if actor is not None and Scope.WRITE not in actor.scopes:
        raise MissingScope(scope=Scope.WRITE)
    creator = creator_cookie(request, rt)
    if creator is not None and not await csrf.proven(rt, request, creator):
        if actor is None:
            raise OriginUnproven
        creator = None  # who comes with a key or a proven session goes without it
    visitor = Visitor(actor, creator or (str(uuid.uuid4()) if actor is None else None), client_network(request, rt), fresh=creator is None)
    if actor is None:
        request.state.actor = f"creator:{(visitor.who.creator or '')[:48]}"  # whose stored answers a request may repeat
    return visitor


Reading = Annotated[Visitor, Depends(_reading)]
Writing = Annotated[Visitor, Depends(_writing)]
