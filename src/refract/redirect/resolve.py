"""From a wish to what becomes of it: the one place that knows the order of the questions.

Exact name, then code, then forgiveness; a restricted link asks who is there before it says anything; then blocked, deleted, disabled,
expired; and at last whether the extra path fits. `POST /resolve` and the redirect itself both go through here.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from refract.identity.models import User
from refract.links.golinks import Unfillable, expand
from refract.links.templates import Template
from refract.redirect.wish import View, Wish, forgiven

Kind = Literal["link", "list", "entry"]
State = Literal["active", "disabled", "expired", "deleted", "blocked", "on_hold"]

_POSSIBLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}")


class Visitor(Protocol):
    """Somebody signed in, or a key that speaks for them."""

    @property
    def user(self) -> User: ...

    @property
    def is_admin(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Found:
    """Everything about a link that its answer depends on. Of a list only `kind`, `id`, `name`, `status` and `on_hold` are known."""

    kind: Kind
    id: int
    name: str
    """The name as it was chosen, or the code: what the short URL ends with."""
    by_code: bool = False
    template: Template | None = None
    redirect_status: int = 302
    status: str = "active"
    expires_at: datetime | None = None
    restricted: bool = False
    """Not everyone may follow it: it is kept in no cache, and who asks is found out first."""
    audience: str | None = None
    """Who may follow a restricted link beside owners, recipients and administrators."""
    forward_query: bool = False
    blocked: bool = False
    on_hold: bool = False
    """Whoever owns it is suspended, links and all."""
    flag_reason: str | None = None
    """Why a preview is shown before it redirects (a `FlagReason` of links); None where none is."""
    title: str | None = None
    created_at: datetime | None = None
    version: int = 0
    epoch: int = 0
    """Which list of blocked domains `blocked` was judged by."""
    asked_at: float = float("-inf")
    """When somebody set out to find this, in monotonic seconds: what was forgotten since must not be kept."""

    @property
    def is_cacheable(self) -> bool:
        """Whether every visitor gets the same redirect. Others are never in L1, L2 or the lane."""
        return self.kind == "link" and not (self.restricted or self.on_hold or self.flag_reason)

    def state_at(self, now: datetime) -> State:
        """Expiry is a fact about time, to the instant, whatever a job has marked."""
        if self.status == "deleted":
            return "deleted"
        if self.on_hold:
            return "on_hold"
        if self.status == "disabled":
            return "disabled"
        if self.blocked or self.template is None:
            return "blocked"
        return "expired" if self.expires_at is not None and now >= self.expires_at else "active"


class Lookup(Protocol):
    """Who knows the names."""

    async def find(self, text: str) -> Found | None:
        """What a chosen name or a canonical code stands for; names come first."""

    async def may_open(self, found: Found, visitor: Visitor) -> bool:
        """Return whether a visitor who is signed in may follow a restricted link."""

    async def suggest(self, text: str, visitor: Visitor | None) -> list[str]:
        """At most three names that may have been meant and that the visitor may know of."""


@dataclass(frozen=True, slots=True)
class Leads:
    """A redirect."""

    found: Found
    href: str


@dataclass(frozen=True, slots=True)
class Warns:
    """A redirect that the visitor confirms first: the link is flagged."""

    found: Found
    href: str


@dataclass(frozen=True, slots=True)
class Shows:
    """A page about the link, or its QR code. `href` is where it would lead."""

    found: Found
    href: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A list's own page, its feed, or one of its entries: the lists' business."""

    found: Found


@dataclass(frozen=True, slots=True)
class Missing:
    """Nothing that this visitor may know of."""


@dataclass(frozen=True, slots=True)
class SignInFirst:
    """A restricted link, and nobody is signed in."""


@dataclass(frozen=True, slots=True)
class Dead:
    """A link that leads nowhere."""

    found: Found
    state: State


@dataclass(frozen=True, slots=True)
class Unfit:
    """The link is there, but the path that was asked for does not fit it."""

    found: Found
    reason: str
    usage: str


Outcome = Leads | Warns | Shows | Listed | Missing | SignInFirst | Dead | Unfit


async def resolve(lookup: Lookup, wish: Wish, who: Callable[[], Awaitable[Visitor | None]], now: Callable[[], datetime]) -> Outcome:
    """`who` is asked only when the answer depends on it, `now` after everything that takes time."""
    found = await find(lookup, wish.name)
    if found is not None and found.kind == "list" and found.status != "deleted":
        return Dead(found, "on_hold") if found.on_hold else Listed(found)
    if found is None or found.kind == "list" or wish.view in (View.FEED, View.CARD):
        return Missing()
    if found.restricted:
        visitor = await who()
        if visitor is None or not await lookup.may_open(found, visitor):
            return SignInFirst() if visitor is None else Missing()
    state = found.state_at(now())
    if state != "active" or found.template is None:
        return Dead(found, state)
    outcome = fit(found, found.template, wish)
    return Warns(found, outcome.href) if found.flag_reason and isinstance(outcome, Leads) else outcome


async def find(lookup: Lookup, name: str) -> Found | None:
    """What cannot be a name or a code is not asked for."""
    found = await lookup.find(name) if _POSSIBLE.fullmatch(name) else None
    bare = forgiven(name) if found is None else None
    if bare and _POSSIBLE.fullmatch(bare):
        found = await lookup.find(bare)
    return found


def fit(found: Found, template: Template, wish: Wish) -> Leads | Shows | Unfit:
    """Put the extra path and the query into a live link's destination."""
    if wish.view is not View.FOLLOW and not wish.extra:
        return Shows(found, template.href)
    href = expand(template, wish.segments, wish.query, forward_query=found.forward_query)
    if isinstance(href, Unfillable):
        return Unfit(found, href.reason, template.usage(found.name))
    return Leads(found, href) if wish.view is View.FOLLOW else Shows(found, href)
