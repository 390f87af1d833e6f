"""Interfaces of the slow path: its frontend, and hooks for followed links."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from refract.domains.table import KnownDomain
from refract.links.qr_styles import PLAIN_STYLE, QrStyle
from refract.redirect.resolver import (
    CardOutcome,
    DeadOutcome,
    MissingOutcome,
    RedirectOutcome,
    RedirectTarget,
    ShortLinkRequest,
    SignedInUser,
    WarningOutcome,
)
from refract.redirect.visitors import Visitor
from refract.web.i18n import LazyText

ListHandler = Callable[
    [Scope, RedirectTarget, ShortLinkRequest],
    Awaitable[ASGIApp | RedirectOutcome | WarningOutcome | DeadOutcome | MissingOutcome],
]
RecordHook = Callable[[Scope, RedirectTarget], Awaitable[None]]
FillHook = Callable[[bytes, RedirectTarget, str], None]
TakeHook = Callable[[RedirectTarget], Awaitable[bool]]
QrStyleHook = Callable[[RedirectTarget], Awaitable[QrStyle]]
StaleHook = Callable[[bytes, bytes, Callable[[], Visitor]], RedirectOutcome | CardOutcome | None]


class RedirectFrontend(Protocol):
    """Authentication, client networks and pages."""

    async def authenticate(self, scope: Scope) -> SignedInUser | None: ...

    def get_network(self, scope: Scope) -> str:
        """Return the network that a request's misses are charged to."""

    async def get_manage_url(
        self, visitor: SignedInUser | None, found: RedirectTarget
    ) -> str | None:
        """Return the URL where the visitor can edit the target, or None."""

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
        """Render a slow page in a thread, as signed-out visitors see it."""


async def _skip_record(scope: Scope, found: RedirectTarget) -> None:
    """Record nothing."""


async def _refuse_click(found: RedirectTarget) -> bool:  # noqa: ARG001 - hook signature
    """Take nothing."""
    return False


def _skip_fill(path: bytes, found: RedirectTarget, href: str) -> None:
    """Cache nothing."""


def _skip_stale(path: bytes, query: bytes, build_visitor: Callable[[], Visitor]) -> None:
    """Find nothing."""


async def _find_plain_style(_found: RedirectTarget) -> QrStyle:
    """Find no style of the owner's."""
    return PLAIN_STYLE


def _find_no_domain(host: str) -> None:
    """Find nothing."""


@dataclass(frozen=True, slots=True)
class RedirectHooks:
    """Callbacks for followed links."""

    record: RecordHook = _skip_record
    """Awaited before a counted redirect is sent: the click is durable first."""
    fill: FillHook = _skip_fill
    """Called with the cache key of a redirect that all visitors get; never for restricted links."""
    lists: ListHandler | None = None
    """Returns the page of a list's name, or the outcome of one of its entries."""
    stale: StaleHook = _skip_stale
    """Called with cache key, query and visitor if the store is unavailable: a stale outcome."""
    find_domain: Callable[[str], KnownDomain | None] = _find_no_domain
    """Returns the domain with a host; None for the default domain."""
    take: TakeHook = _refuse_click
    """Takes a redirect from the limit of a link; returns whether one was left."""
    find_qr_style: QrStyleHook = _find_plain_style
    """Returns the style of a target's QR code."""
