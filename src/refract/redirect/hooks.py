"""What the slow path is handed: the people's side, and what others do when a link is followed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from refract.redirect.resolve import Dead, Found, Leads, Missing, Visitor, Warns
from refract.redirect.wish import Wish

ListPage = Callable[[Scope, Found, Wish], Awaitable[ASGIApp | Leads | Warns | Dead | Missing]]
Record = Callable[[Scope, Found], Awaitable[None]]
Fill = Callable[[bytes, Found, str], None]
Stale = Callable[[bytes, bytes], Leads | None]


class Surface(Protocol):
    """The people's side: who asks, from where, and how a page looks to them."""

    async def visitor(self, scope: Scope) -> Visitor | None: ...

    def network(self, scope: Scope) -> str:
        """The network a request comes from, as far as misses are counted by it."""

    async def manage_url(self, visitor: Visitor | None, found: Found) -> str | None:
        """Where the visitor can change what was found, if they may."""

    async def can_create(self, visitor: Visitor | None, name: str) -> bool:
        """Return whether the visitor could create a link with this name now."""

    def page(self, scope: Scope, visitor: Visitor | None, template: str, *, status: int, page_title: str, **context: Any) -> Response: ...

    async def long_page(self, scope: Scope, template: str, *, page_title: str, **context: Any) -> Response:
        """Render a page that takes long, as strangers see it, outside of the event loop."""


async def _count_nothing(scope: Scope, found: Found) -> None:
    """Until there is a spool."""


def _keep_nothing(path: bytes, found: Found, href: str) -> None:
    """Until there is a table."""


def _knew_nothing(path: bytes, query: bytes) -> None:
    """Until there is a table."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What others do when a link is followed."""

    record: Record = _count_nothing
    """Called before a counted redirect leaves, and waited for: a click is durable first."""
    fill: Fill = _keep_nothing
    """Called with the raw path of an answer that every visitor would get; never for restricted links."""
    lists: ListPage | None = None
    """What answers for a list's name: a page, or what becomes of one of its entries."""
    stale: Stale = _knew_nothing
    """Called with raw path and query: where it led before we lost touch, for when nobody can be asked."""
