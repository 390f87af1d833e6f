"""Authentication and pages of the slow path, as in the web app."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from refract.core.errors import Unavailable
from refract.core.runtime import Runtime
from refract.core.threads import WorkThreadPool
from refract.identity.access import AccessRight
from refract.identity.authentication import Caller, authenticate
from refract.identity.key_usage import KeyUsageTracker
from refract.identity.models import Scope as KeyScope
from refract.identity.responses import render_response
from refract.links.access import LinkCaller
from refract.links.errors import LinkNotFound, NotOwner
from refract.links.queries import view_link
from refract.names.enums import NameTarget
from refract.names.service import check_availability
from refract.redirect.asgi import RedirectApp
from refract.redirect.engine import RedirectEngine
from refract.redirect.hooks import ListHandler, RedirectFrontend
from refract.redirect.resolver import RedirectTarget, SignedInUser
from refract.web.i18n import LazyText
from refract.web.networks import find_scope_network
from refract.web.templating import TemplateRenderer


class WebFrontend:
    """Authenticates by cookie or key, renders pages in the app's frame, finds client networks."""

    def __init__(self, rt: Runtime, app: Starlette) -> None:
        self._rt = rt
        self._app = app

    async def authenticate(self, scope: Scope) -> SignedInUser | None:
        """Return the caller, or None, also for a key without the scope `read`."""
        actor = await authenticate(self._build_request(scope), self._rt)
        return actor if actor is not None and KeyScope.READ in actor.scopes else None

    def get_network(self, scope: Scope) -> str:
        return find_scope_network(scope, self._rt).hex()

    async def get_manage_url(
        self, visitor: SignedInUser | None, found: RedirectTarget
    ) -> str | None:
        if not isinstance(visitor, Caller) or found.kind != "link":
            return None
        try:
            async with self._rt.db.read() as session:
                await view_link(
                    session,
                    LinkCaller(visitor.user.id, visitor.is_admin),
                    found.id,
                    AccessRight.EDIT,
                )
        except (LinkNotFound, NotOwner, Unavailable):
            return None
        return f"/app/links/{found.id}"

    async def can_create(self, visitor: SignedInUser | None, name: str) -> bool:
        space = getattr(self._app.state, "space", None)
        if space is None or not isinstance(visitor, Caller) or KeyScope.WRITE not in visitor.scopes:
            return False
        try:
            async with self._rt.db.read() as session:
                return (await check_availability(session, space, name, NameTarget.LINK)).available
        except Unavailable:
            return False

    def render_page(
        self,
        scope: Scope,
        visitor: SignedInUser | None,
        template: str,
        *,
        status: int,
        page_title: str | LazyText,
        **context: Any,
    ) -> Response:
        actor = visitor if isinstance(visitor, Caller) else None
        return render_response(
            self._build_request(scope),
            actor,
            template,
            status=status,
            page_title=page_title,
            **context,
        )

    async def render_slow_page(
        self, scope: Scope, template: str, *, page_title: str | LazyText, **context: Any
    ) -> Response:
        rendering = partial(
            self.render_page, scope, None, template, status=200, page_title=page_title, **context
        )
        return await self._rt.singleton(WorkThreadPool).run(rendering)

    def _build_request(self, scope: Scope) -> Request:
        scope.setdefault("state", {})
        return Request({**scope, "app": self._app})


# The slow path of a process without the web app: the same responses in the same frame.


def build_standalone_app(
    rt: Runtime,
    engine: RedirectEngine,
    build_list_handler: Callable[[RedirectFrontend], ListHandler] | None = None,
    templates: Sequence[str] = ("redirect",),
) -> RedirectApp:
    """Build the slow path of a process without the web app.

    API keys that open secure links are charged to their limit here; a database role that may only
    read does not record their use.
    """
    frame = Starlette()
    frame.state.rt = rt
    frame.state.pages = TemplateRenderer(rt.settings.public_url, *templates)
    frame.state.areas = []
    frame.state.key_usage = rt.singleton(KeyUsageTracker)
    surface = WebFrontend(rt, frame)
    return RedirectApp(
        rt,
        engine.lookup,
        surface,
        engine.build_hooks(build_list_handler(surface) if build_list_handler else None),
    )
