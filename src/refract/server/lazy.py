"""A process with the web app that redirects immediately while the web app is still loading.

Loading the web app takes longer than everything before it. It is loaded in pieces on the event loop
itself, and between two of them pending redirects are answered; other requests wait.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from refract.core.threads import WorkThreadPool
from refract.redirect.engine import RedirectEngine
from refract.server.node import ServerNode, build_redirect_app
from refract.web.health import is_health_path

LAZY_MODULES = (
    "fastapi.openapi.models",
    "fastapi",
    "refract.identity.api",
    "refract.identity.pages",
    "refract.links.api",
    "refract.links.pages",
    "refract.clicks.stats.api",
    "refract.clicks.stats.pages",
    "refract.lists.api",
    "refract.lists.pages",
    "refract.library.api",
    "refract.library.pages",
    "refract.admin.api",
    "refract.admin.pages",
    "refract.compat.app",
    "refract.app",
)
TURNS_BETWEEN_MODULES = 5
"""Turns of the event loop between two pieces, for reading and answering requests."""
YIELD_SECONDS = 0.5
"""Pause in which waiting requests are answered before the rest is loaded."""


class LazyWebNode(ServerNode):
    """A node with the web app, once that is loaded."""

    engine: RedirectEngine

    def build_application(self) -> ASGIApp:
        self._redirect_app = build_redirect_app(self.rt, self.engine)
        self._web_app: asyncio.Future[ASGIApp] = asyncio.get_running_loop().create_future()
        self._loading: asyncio.Future[None] = self._web_app.get_loop().create_future()
        self.vitals.is_starting = True
        return self._dispatch

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._web_app.done():
            if is_health_path(scope):
                await self.vitals(scope, receive, send)
                return
            if await self._redirect_app.try_redirect(scope, receive, send):
                return
        web = await asyncio.shield(self._web_app)
        await web(scope, receive, send)

    async def wait_until_loaded(self) -> None:
        either: list[asyncio.Future[Any]] = [self._web_app, self._loading]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._web_app.done():
            await self._loading  # says why

    async def wait_until_complete(self) -> None:
        await asyncio.shield(self._loading)

    @asynccontextmanager
    async def run_background(self) -> AsyncIterator[None]:
        async with self.run_essentials(), AsyncExitStack() as rest:
            self._loading = asyncio.create_task(self._load_web_app(rest), name="loading")
            try:
                yield
            finally:
                self._loading.cancel()
                await asyncio.gather(self._loading, return_exceptions=True)

    async def _load_web_app(self, rest: AsyncExitStack) -> None:
        for module in LAZY_MODULES:
            import_module(module)
            for _ in range(TURNS_BETWEEN_MODULES):
                await asyncio.sleep(0)
        from refract.app import WebApp  # noqa: PLC0415 - loaded by now

        web = WebApp(self.rt, self.engine, self.vitals)
        self._web_app.set_result(web)
        self.vitals.is_starting = False
        await asyncio.sleep(YIELD_SECONDS)
        await rest.enter_async_context(self.run_auxiliaries())
        await self.rt.singleton(WorkThreadPool).run(web.api.state.pages.compile_templates)
