"""A process that has the web app, from its first moment on: links are followed at once, everything else waits until the rest is loaded.

Loading the web app takes longer than everything before it. It is loaded in pieces on the event loop itself, and between two of
them whoever came meanwhile is answered.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from refract.core.threads import WorkThreads
from refract.node import Node, follow
from refract.redirect.engine import Engine
from refract.web.vitals import is_vital

PIECES = (
    "fastapi.openapi.models",
    "fastapi",
    "refract.identity.api",
    "refract.identity.pages",
    "refract.links.api",
    "refract.links.pages",
    "refract.analytics.api",
    "refract.analytics.pages",
    "refract.lists.api",
    "refract.lists.pages",
    "refract.library.api",
    "refract.library.pages",
    "refract.admin.api",
    "refract.admin.pages",
    "refract.app",
)
TURNS_BETWEEN = 5
"""Turns of the event loop between two pieces: what came meanwhile is read, looked up and answered."""
BREATH_SECONDS = 0.5
"""Whoever has waited is answered before the rest begins: it loads things, too."""


class Opening(Node):
    """The whole program, as soon as that is there."""

    engine: Engine

    def application(self) -> ASGIApp:
        self._links = follow(self.rt, self.engine)
        self._web: asyncio.Future[ASGIApp] = asyncio.get_running_loop().create_future()
        self._loading: asyncio.Future[None] = self._web.get_loop().create_future()
        self.vitals.starting = True
        return self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._web.done():
            if is_vital(scope["path"]):
                await self.vitals(scope, receive, send)
                return
            if await self._links.redirected(scope, receive, send):
                return
        web = await asyncio.shield(self._web)
        await web(scope, receive, send)

    async def loaded(self) -> None:
        either: list[asyncio.Future[Any]] = [self._web, self._loading]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._web.done():
            await self._loading  # says why

    async def complete(self) -> None:
        await asyncio.shield(self._loading)

    @asynccontextmanager
    async def background(self) -> AsyncIterator[None]:
        async with self.answering(), AsyncExitStack() as rest:
            self._loading = asyncio.create_task(self._load(rest), name="loading")
            try:
                yield
            finally:
                self._loading.cancel()
                await asyncio.gather(self._loading, return_exceptions=True)

    async def _load(self, rest: AsyncExitStack) -> None:
        for piece in PIECES:
            import_module(piece)
            for _ in range(TURNS_BETWEEN):
                await asyncio.sleep(0)
        from refract.app import Web  # noqa: PLC0415 - loaded by now

        web = Web(self.rt, self.engine, self.vitals)
        self._web.set_result(web)
        self.vitals.starting = False
        await asyncio.sleep(BREATH_SECONDS)
        await rest.enter_async_context(self.helping())
        await self.rt.part(WorkThreads).run(web.api.state.pages.compile_all)
