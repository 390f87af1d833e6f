"""What the slow path is handed: the people's side, and what others do when a link is followed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from refract.redirect.resolver import (
    DeadOutcome,
    MissingOutcome,
    RedirectOutcome,
    RedirectTarget,
    ShortLinkRequest,
    SignedInUser,
    WarningOutcome,
)
from refract.web.i18n import LazyText

ListHandler = Callable[
    [Scope, RedirectTarget, ShortLinkRequest],
    Awaitable[ASGIApp | RedirectOutcome | WarningOutcome | DeadOutcome | MissingOutcome],
]
RecordHook = Callable[[Scope, RedirectTarget], Awaitable[None]]
FillHook = Callable[[bytes, RedirectTarget, str], None]
StaleHook = Callable[[bytes, bytes], RedirectOutcome | None]


class RedirectFrontend(Protocol):
    """The people's side: who asks, from where, and how a page looks to them."""

    async def authenticate(self, scope: Scope) -> SignedInUser | None: ...

    def get_network(self, scope: Scope) -> str:
        """Return the network that a request's misses are charged to."""

    async def get_manage_url(
        self, visitor: SignedInUser | None, found: RedirectTarget
    ) -> str | None:
        """Where the visitor can change what was found, if they may."""

    async def can_create(self, visitor: SignedInUser | None, name: str) -> bool:
        """Return whether the visitor could create a link with this name now."""

    def render_page(
        self,
        scope: Scope,
        visitor: SignedInUser | None,
        template: str,
        *,
        status: int,
        page_title: str | LazyText,
        **context: Any,
    ) -> Response: ...

    async def render_slow_page(
        self, scope: Scope, template: str, *, page_title: str | LazyText, **context: Any
    ) -> Response:
        """Render a page that takes long, as strangers see it, outside of the event loop."""


async def _skip_record(scope: Scope, found: RedirectTarget) -> None:
    """Until there is a spool."""


def _skip_fill(path: bytes, found: RedirectTarget, href: str) -> None:
    """Until there is a table."""


def _skip_stale(path: bytes, query: bytes) -> None:
    """Until there is a table."""


@dataclass(frozen=True, slots=True)
class RedirectHooks:
    """What others do when a link is followed."""

    record: RecordHook = _skip_record
    """Called before a counted redirect leaves, and waited for: a click is durable first."""
    fill: FillHook = _skip_fill
    """Called with the raw path of an answer that every visitor would get; never for restricted links."""
    lists: ListHandler | None = None
    """What answers for a list's name: a page, or what becomes of one of its entries."""
    stale: StaleHook = _skip_stale
    """Called with raw path and query: where it led before we lost touch, for when nobody can be asked."""
