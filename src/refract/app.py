"""The composition root: the only module that knows every feature."""

from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from refract import __version__
from refract.admin import api as admin_api
from refract.admin import pages as admin_pages
from refract.clicks.stats import analytics_pages
from refract.clicks.stats import api as analytics_api
from refract.compat.app import DialectDispatcher, list_dialects
from refract.core.clock import SystemClock
from refract.core.db.session import Database
from refract.core.errors import RefractError, Unauthenticated
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.core.settings.model import Settings
from refract.domains import api as domains_api
from refract.home import api as home_api
from refract.home import api_docs
from refract.home import pages as home_pages
from refract.identity import api as identity_api
from refract.identity import pages as identity_pages
from refract.identity.dependencies import SECURITY_SCHEMES, identify_caller
from refract.identity.errors import SignInRequired
from refract.identity.key_usage import KeyUsageTracker
from refract.identity.responses import render_response
from refract.library import api as library_api
from refract.library import pages as library_pages
from refract.links import api as links_api
from refract.links import pages as link_pages
from refract.lists import api as lists_api
from refract.lists import pages as builder
from refract.lists.errors import AnonymousListsDisabled
from refract.lists.pages import picker
from refract.names.grammar import is_route
from refract.names.service import namespace_of
from refract.redirect import api as redirect_api
from refract.redirect import follow
from refract.redirect import pages as redirect_pages
from refract.redirect.asgi import RedirectApp
from refract.redirect.engine import RedirectEngine
from refract.redirect.frontend import WebFrontend
from refract.registry import build_list_handler, build_page_hooks
from refract.reports import api as reports_api
from refract.reports import pages as report_pages
from refract.server.node import ServerNode
from refract.teams import api as teams_api
from refract.teams import pages as team_pages
from refract.web import assets, health_api, return_path
from refract.web.health import HealthEndpoints
from refract.web.hosts import get_domain
from refract.web.i18n import lazy_gettext
from refract.web.middleware import HeadOnlySend
from refract.web.openapi import describe
from refract.web.problems import (
    ClientDisconnected,
    InternalError,
    MethodNotAllowed,
    PageNotFound,
    build_error_context,
    build_problem_headers,
    is_html_accepted,
    make_problem_response,
    translate_http_exception,
    translate_validation_error,
)
from refract.web.templating import TemplateRenderer

TAGS = {
    "links": "Short links: destination, names, owners, expiry and history.",
    "names": "The names that links and published lists share.",
    "stats": "Clicks over time and by country, referrer, device and more. Bots are excluded.",
    "lists": "Ordered pages of links: drafts until you publish them.",
    "items": "What you save to the library, and its review.",
    "library": "Browse, search, import and export everything you saved.",
    "tags": "Shared tags for links, personal ones for the library.",
    "teams": "Groups of people who own links together.",
    "domains": "Hosts with names of their own, beside the one of the base URL.",
    "me": "Your profile, preferences, invitations and sessions.",
    "keys": "API keys: shown once, revoked immediately.",
    "reports": "Abuse reports. No account is necessary.",
    "admin": "For administrators.",
    "operations": "Health, readiness and metrics of the server.",
}
"""Chapters of the API documentation, in order. A router's tag must be one of them."""

DESCRIPTION = """Everything that the web app can do, for programs.

Bodies and responses are JSON in snake_case; times are RFC 3339 in UTC; ids are decimal text. Send
an API key as `X-API-Key` or as a Bearer token. Unknown fields and query parameters are rejected.
Every error is `application/problem+json` (RFC 9457) with a stable `code` and a `request_id`.
Collections return `items` and `next_cursor`; send the cursor to get the next page. Every POST that
changes something accepts an `Idempotency-Key`.
"""


PAGE_ROUTERS = (
    health_api.router,
    assets.router,
    assets.well_known_router,
    *home_pages.ROUTERS,
    *identity_pages.ROUTERS,
    *link_pages.ROUTERS,
    redirect_pages.router,
    follow.router,
    *analytics_pages.ROUTERS,
    picker.router,
    *builder.ROUTERS,
    *library_pages.ROUTERS,
    *team_pages.ROUTERS,
    *report_pages.ROUTERS,
    *admin_pages.ROUTERS,
)
API_ROUTERS = (
    *identity_api.ROUTERS,
    *links_api.ROUTERS,
    *analytics_api.ROUTERS,
    *lists_api.ROUTERS,
    *library_api.ROUTERS,
    *teams_api.ROUTERS,
    *domains_api.ROUTERS,
    *reports_api.ROUTERS,
    *admin_api.ROUTERS,
    *home_api.ROUTERS,
)
TEMPLATES = (
    "admin",
    "clicks",
    "home",
    "identity",
    "imports",
    "library",
    "links",
    "lists",
    "redirect",
    "reports",
    "tags",
    "teams",
)
"""Features with templates of their own."""


AREAS = ("links", "analytics", "lists", "library", "tags", "teams", "settings", "admin")
"""Parts of the web app, in the order of the navigation."""


def build_api(rt: Runtime, vitals: HealthEndpoints | None = None) -> FastAPI:
    """Everything but redirects."""
    api = FastAPI(
        title="Refract",
        version=__version__,
        summary="One home for every link.",
        description=DESCRIPTION,
        openapi_url=None,  # `home.api_docs` serves it prepared
        redirect_slashes=False,  # the framework would redirect to the host that a request names
        telemetry={
            "auto_configure": False,
            "tracing": False,
            "metrics": False,
            "logs": False,
        },  # its spans hold visitors' paths
    )
    api.state.rt = rt
    api.state.pages = TemplateRenderer(rt.settings.public_url, *TEMPLATES)
    api.state.areas = list(AREAS)
    api.state.key_usage = rt.singleton(KeyUsageTracker)
    api.state.vitals = vitals or HealthEndpoints(rt)
    for name, hook in build_page_hooks().items():
        setattr(api.state, name, hook)
    for router in (*PAGE_ROUTERS, *API_ROUTERS, redirect_api.router):
        api.router.routes.extend(
            router.routes
        )  # as they were made: `include_router` would analyse every one of them again
    api.state.literal_paths = frozenset(path for _, path in list_routes(api) if "{" not in path)
    api.state.space = namespace_of(rt)
    build = partial(_build_openapi, api, rt.settings.public_url)
    api.openapi = cache(build)  # type: ignore[method-assign]
    api.add_exception_handler(RefractError, _handle_error)
    api.add_exception_handler(RequestValidationError, _handle_error)
    api.add_exception_handler(HTTPException, _handle_error)
    api.add_exception_handler(ClientDisconnect, _handle_error)
    api.add_exception_handler(Exception, _handle_error)
    return api


def build_sample_api(base_url: str) -> FastAPI:
    """Return the pages and the API of an installation that is not served."""
    with TemporaryDirectory() as folder:
        settings, clock = Settings(data_dir=Path(folder), base_url=base_url), SystemClock()
        rt = Runtime(
            settings=settings,
            db=Database(settings),
            clock=clock,
            ids=SnowflakeGenerator(0, clock),
            secret=Secret(b"d" * 32),
        )
        return build_api(rt)


def describe_api(_body: bytes, *, base_url: str) -> bytes:
    """Return the API of an installation with this URL, in a process of its own."""
    return api_docs.pack_description(build_sample_api(base_url).openapi())


def _build_openapi(api: FastAPI, public_url: str) -> dict[str, Any]:
    return describe(api, public_url=public_url, security_schemes=SECURITY_SCHEMES, tags=TAGS)


def list_routes(api: FastAPI) -> list[tuple[str, str]]:
    """Return method and path of every route, those of included routers too."""
    found = [
        (method, route.path)
        for route in iter_route_contexts(api.routes)
        for method in route.methods or ()
    ]
    return sorted((method, path) for method, path in found if path)


def list_methods(api: FastAPI, path: str) -> list[str]:
    """Return the methods of a path, over all routes that match it.

    HEAD is allowed wherever GET is.
    """
    literal = path in api.state.literal_paths
    matching = [
        route
        for route in iter_route_contexts(api.routes)
        if (route.path == path if literal else route.path_regex.match(path))
    ]
    methods = {method for route in matching for method in route.methods or ()}
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


class PathDispatcher:
    """Routing by the first segment: a word of our routes, or else a name or a code.

    On other domains than the default one such words are few, and `/` is not ours either.
    """

    def __init__(self, api: ASGIApp, redirects: ASGIApp) -> None:
        self._api = api
        self._redirects = redirects

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = (
            scope["path"].split("/", 2)[1]
            if scope["type"] == "http" and scope["path"].startswith("/")
            else ""
        )
        domain = get_domain(scope)
        if (first or domain) and not is_route(first, domain):
            await self._redirects(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "HEAD":
            await self._api({**scope, "method": "GET"}, receive, HeadOnlySend(send))
        else:
            await self._api(scope, receive, send)


class WebApp:
    """Pages and API, and beside them the names and codes that the engine knows.

    Everything there is to answer.
    """

    def __init__(self, rt: Runtime, engine: RedirectEngine | None, vitals: HealthEndpoints) -> None:
        self.api = build_api(rt, vitals)
        dispatcher = PathDispatcher(self.api, self._build_redirects(rt, engine))
        dialects = list_dialects(rt.settings)
        self._dispatcher: ASGIApp = (
            DialectDispatcher(self.api, dialects, dispatcher) if dialects else dispatcher
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._dispatcher(scope, receive, send)

    def _build_redirects(self, rt: Runtime, engine: RedirectEngine | None) -> ASGIApp:
        if engine is None:
            return _respond_not_found
        surface = WebFrontend(rt, self.api)
        hooks = engine.build_hooks(build_list_handler(rt, engine, surface))
        follow = RedirectApp(rt, engine.lookup, surface, hooks)
        self.api.state.redirects = follow
        return follow


class WebNode(ServerNode):
    """The whole program as one ASGI application, loaded at once, with what runs beside it."""

    def build_application(self) -> ASGIApp:
        web = WebApp(self.rt, self.engine, self.vitals)
        self.api = web.api
        return web


async def _respond_not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await make_problem_response(PageNotFound())(scope, receive, send)


_SIGN_IN_DETAIL = lazy_gettext("Sign in to see this page. You’ll come right back to it.")


async def _handle_error(request: Request, error: Exception) -> Response:
    """Return an error page for browsers, a problem document for programs.

    A path with a trailing slash is redirected to the one without, if that exists.
    """
    if (
        isinstance(error, HTTPException)
        and error.status_code == 404
        and (onward := _strip_slash(request))
    ):
        return RedirectResponse(onward, 307)
    word = _translate_error(request, error)
    if request.url.path.startswith("/api/") or not is_html_accepted(request.headers):
        return make_problem_response(word)
    if isinstance(word, AnonymousListsDisabled):
        return return_path.redirect_to_sign_in(
            request.app.state.rt, request.url.path if request.method == "GET" else "/app/lists"
        )
    try:
        actor = (
            await identify_caller(request, request.app.state.rt)
            if request.method in ("GET", "HEAD")
            else None
        )
    except RefractError:
        actor = None
    # Users sign in; how to send an API key is for programs.
    detail = _SIGN_IN_DETAIL if isinstance(word, SignInRequired) else None
    context = build_error_context(word, request.state.request_id, detail=detail)
    response = render_response(request, actor, "error.html", **context)
    response.headers.update(build_problem_headers(word))
    if isinstance(word, Unauthenticated):
        rt = request.app.state.rt
        return_path.remember_path(response, rt, _get_page_path(request, rt))
    return response


def _get_page_path(request: Request, rt: Runtime) -> str:
    """Return the page to come back to after the sign-in: of a form, the one it was sent from."""
    if request.method != "GET":
        return return_path.get_referring_path(request, rt, "/")
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def _strip_slash(request: Request) -> str | None:
    """Return the same URL without its trailing slash, if a route matches it."""
    path = request.url.path.rstrip("/")
    if (
        path == request.url.path
        or not path
        or path.startswith("//")
        or request.method not in list_methods(request.app, path)
    ):
        return None
    return f"{path}?{request.url.query}" if request.url.query else path


def _translate_error(request: Request, error: Exception) -> RefractError:
    match error:
        case RefractError():
            return error
        case RequestValidationError():
            if not request.url.path.startswith("/api/") and any(
                detail["loc"][:1] == ("path",) for detail in error.errors()
            ):
                return PageNotFound()  # the path has no valid id
            return translate_validation_error(error)
        case ClientDisconnect():
            return ClientDisconnected()
        case HTTPException():
            word = translate_http_exception(error, request)
            if isinstance(word, MethodNotAllowed):
                word.headers = {"Allow": ", ".join(list_methods(request.app, request.url.path))}
            return word
    return InternalError()
