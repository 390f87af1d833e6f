"""The people's side of the slow path, made of the web app's own parts."""

from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from refract.core.address import TrustedProxies, network_of
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime
from refract.core.threads import WorkThreads
from refract.identity.access import Right
from refract.identity.models import Scope as KeyScope
from refract.identity.rendering import respond
from refract.identity.visitors import Actor, who_asks
from refract.links.access import Who
from refract.links.errors import LinkNotFound, NotYours
from refract.links.queries import view_link
from refract.names.models import Kind
from refract.names.service import availability
from refract.redirect.resolve import Found, Visitor


class WebSurface:
    """Visitors by cookie or key, pages in the app's frame, networks behind the proxies we trust."""

    def __init__(self, rt: Runtime, app: Starlette) -> None:
        self._rt = rt
        self._app = app
        self._proxies = TrustedProxies(rt.settings.trusted_proxies)

    async def visitor(self, scope: Scope) -> Visitor | None:
        """Whoever asks, as far as they may look: a key without the right to read opens no more than a stranger does."""
        actor = await who_asks(self._request(scope), self._rt)
        return actor if actor is not None and KeyScope.READ in actor.scopes else None

    def network(self, scope: Scope) -> str:
        peer = scope["client"][0] if scope.get("client") else ""
        forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        return network_of(self._proxies.client(peer, forwarded)).hex()

    async def manage_url(self, visitor: Visitor | None, found: Found) -> str | None:
        if not isinstance(visitor, Actor) or found.kind != "link":
            return None
        try:
            async with self._rt.db.read() as session:
                await view_link(session, Who(visitor.user.id, visitor.is_admin), found.id, Right.EDIT)
        except (LinkNotFound, NotYours, Unavailable):
            return None
        return f"/app/links/{found.id}"

    async def can_create(self, visitor: Visitor | None, name: str) -> bool:
        space = getattr(self._app.state, "space", None)
        if space is None or not isinstance(visitor, Actor) or KeyScope.WRITE not in visitor.scopes:
            return False
        try:
            async with self._rt.db.read() as session:
                return (await availability(session, space, name, Kind.LINK)).available
        except Unavailable:
            return False

    def page(self, scope: Scope, visitor: Visitor | None, template: str, *, status: int, page_title: str, **context: Any) -> Response:
        actor = visitor if isinstance(visitor, Actor) else None
        return respond(self._request(scope), actor, template, status=status, page_title=page_title, **context)

    async def long_page(self, scope: Scope, template: str, *, page_title: str, **context: Any) -> Response:
        rendering = partial(self.page, scope, None, template, status=200, page_title=page_title, **context)
        return await self._rt.part(WorkThreads).run(rendering)

    def _request(self, scope: Scope) -> Request:
        scope.setdefault("state", {})
        return Request({**scope, "app": self._app})
