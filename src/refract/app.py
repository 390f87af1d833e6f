"""The composition root: the only module that knows every feature."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from refract import __version__
from refract.core.errors import RefractError, Unavailable
from refract.core.runtime import Runtime
from refract.home import pages as home_pages
from refract.identity import api as identity_api
from refract.identity import pages as identity_pages
from refract.identity.actors import identify
from refract.identity.rendering import respond
from refract.identity.usage import KeyUsage
from refract.node import Node
from refract.redirect.follow import Follow
from refract.redirect.surface import WebSurface
from refract.web import assets, health
from refract.web.problems import InternalError, NoSuchPage, from_http, from_validation, problem_headers, problem_response, wants_page
from refract.web.render import Pages
from refract.web.vitals import Vitals

SEED_WORDS = frozenset(
    [
        "admin",
        "api",
        "app",
        "auth",
        "dashboard",
        "docs",
        "help",
        "health",
        "login",
        "logout",
        "register",
        "signup",
        "settings",
        "status",
        "support",
        "www",
        "web",
        "assets",
        "static",
        "mcp",
        "metrics",
        "links",
        "u",
        "favicon.ico",
        "robots.txt",
        "sitemap.xml",
        "opensearch.xml",
        "manifest.webmanifest",
        ".well-known",
        "ready",
    ]
)
"""Words that no name may be, whether a route uses them today or not."""


def build_api(rt: Runtime) -> FastAPI:
    """Everything but redirects."""
    api = FastAPI(
        title="Refract",
        version=__version__,
        summary="One home for every link.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    api.state.rt = rt
    api.state.pages = Pages(rt.settings.public_url)
    api.state.areas = ["settings"]
    api.state.key_usage = KeyUsage(rt)
    api.state.vitals = Vitals(rt)
    for router in (health.router, assets.router, home_pages.router, identity_pages.router, *identity_api.ROUTERS):
        api.include_router(router)
    api.add_exception_handler(RefractError, _refused)
    api.add_exception_handler(RequestValidationError, _refused)
    api.add_exception_handler(HTTPException, _refused)
    api.add_exception_handler(Exception, _refused)
    return api


def reserved_words(api: FastAPI) -> frozenset[str]:
    """First segments of every route, and the words we keep for later."""
    routed = {path.split("/")[1].lower() for path in (getattr(route, "path", "") for route in api.routes) if path.count("/")}
    return SEED_WORDS | (routed - {""})


class Dispatcher:
    """The first segment decides: a reserved word is ours, anything else is a name or a code. So routing and reserved words are one set."""

    def __init__(self, api: ASGIApp, redirects: ASGIApp, reserved: frozenset[str]) -> None:
        self._api = api
        self._redirects = redirects
        self._reserved = reserved

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = scope["path"].split("/", 2)[1].lower() if scope["type"] == "http" and scope["path"].startswith("/") else ""
        mine = not first or first in self._reserved
        await (self._api if mine else self._redirects)(scope, receive, send)


class Application(Node):
    """The whole program as one ASGI application, with what runs beside it."""

    def application(self) -> ASGIApp:
        self.api = build_api(self.rt)
        self.api.state.vitals = self.vitals
        self.reserved = reserved_words(self.api)
        return Dispatcher(self.api, self._redirects(), self.reserved)

    def _redirects(self) -> ASGIApp:
        if self.engine is None:
            return _nothing_there
        return Follow(self.rt, self.engine.tiers, WebSurface(self.rt, self.api), self.engine.hooks())

    @asynccontextmanager
    async def background(self) -> AsyncIterator[None]:
        usage: KeyUsage = self.api.state.key_usage
        async with super().background():
            try:
                async with self.beside("key-usage", usage.run):
                    yield
            finally:
                with contextlib.suppress(Unavailable):  # counts of the last second, on a database that is away
                    await usage.flush()


async def _nothing_there(scope: Scope, receive: Receive, send: Send) -> None:
    await problem_response(NoSuchPage())(scope, receive, send)


async def _refused(request: Request, error: Exception) -> Response:
    """A page for people, a problem document for programs."""
    word = _word_for(request, error)
    if request.url.path.startswith("/api/") or not wants_page(request.headers):
        return problem_response(word)
    try:
        actor = await identify(request, request.app.state.rt) if request.method in ("GET", "HEAD") else None
    except RefractError:
        actor = None
    response = respond(
        request,
        actor,
        "error.html",
        status=word.status,
        page_title=str(word.status),
        title=_heading(word.status),
        detail=word.message,
        request_id=request.state.request_id,
        retry_after=getattr(word, "retry_after", None),
    )
    response.headers.update(problem_headers(word))
    return response


def _word_for(request: Request, error: Exception) -> RefractError:
    match error:
        case RefractError():
            return error
        case RequestValidationError():
            return from_validation(error)
        case HTTPException():
            return from_http(error, request)
    return InternalError()


def _heading(status: int) -> str:
    return {
        401: "Please sign in",
        403: "This is not allowed",
        404: "Nothing here",
        429: "A little too fast",
        503: "Back in a moment",
    }.get(status, "That did not work" if status < 500 else "Something went wrong")
