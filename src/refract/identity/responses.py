"""HTML responses with the user, the CSRF token and the language of the request."""

import gzip
import secrets
from collections.abc import Callable
from datetime import UTC, tzinfo
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from refract.core.runtime import Runtime
from refract.core.threads import WorkThreadPool
from refract.identity.authentication import Caller, get_session_token
from refract.identity.errors import UnknownTimeZone
from refract.identity.models import User
from refract.identity.time_zones import parse_zone
from refract.web import csrf, flash
from refract.web.cookies import Cookie
from refract.web.formats import use_zone
from refract.web.hosts import get_domain
from refract.web.i18n import LazyText, Locale, choose_locale, gettext, use_locale
from refract.web.templating import TemplateRenderer

VISIT_COOKIE = Cookie("refract_visit")
_MIN_COMPRESSED_BYTES = 1_000
_ZONE_COOKIE: Final = "refract_zone"
"""Written by app.js."""
_MAX_NAME_LENGTH: Final = 64


def get_visit_cookie(request: Request) -> str | None:
    """Return the cookie that CSRF tokens of anonymous visitors are bound to, its only use."""
    return VISIT_COOKIE.read(request, request.app.state.rt)


def build_user_context(user: User | None) -> dict[str, Any] | None:
    """Return the user for templates."""
    return (
        None
        if user is None
        else {
            "id": str(user.id),
            "display": user.chosen_name,
            "email": user.email,
            "role": user.role,
            "time_zone": user.preferences.get("time_zone"),
        }
    )


def get_request_locale(request: Request, actor: Caller | None) -> Locale:
    """Return the language of a page: the user's preference, or else the browser's."""
    preference = actor.user.preferences.get("locale") if actor else None
    return choose_locale(preference, request.headers.get("accept-language", ""))


def get_zone_name(request: Request, actor: Caller) -> str:
    """Return the name of the zone: the user's preference, else the browser's, else UTC."""
    name = (
        actor.user.preferences.get("time_zone")
        or unquote(request.cookies.get(_ZONE_COOKIE, ""))[:_MAX_NAME_LENGTH]
    )
    try:
        return str(parse_zone(name)) if name else "UTC"
    except UnknownTimeZone:
        return "UTC"


def _get_page_zone(request: Request, actor: Caller | None) -> tzinfo:
    """Return the zone in which a page writes times: UTC for pages without a user."""
    name = get_zone_name(request, actor) if actor else "UTC"
    return UTC if name == "UTC" else parse_zone(name)


def render_response(
    request: Request,
    actor: Caller | None,
    template: str,
    *,
    status: int = 200,
    page_title: str | LazyText,
    bound: str | None = None,
    **context: Any,
) -> HTMLResponse:
    """Render a page, with the message of the form before it.

    An anonymous visitor gets a cookie that the page's forms are bound to, unless `bound` names
    another one. On other domains than the default one, `home` is the URL of the web app.
    """
    rt: Runtime = request.app.state.rt
    message = flash.read(request, rt)
    visit = bound or get_visit_cookie(request) or secrets.token_urlsafe(16)
    render = partial(
        _render_template,
        request,
        actor,
        template,
        visit,
        status=status,
        page_title=page_title,
        toasts=[message] if message else [],
        **context,
    )
    response = PageResponse(
        request, render, status, get_request_locale(request, actor), _get_page_zone(request, actor)
    )
    if message:
        flash.clear(request, response, rt)
    if (
        (actor is None or get_session_token(request, rt) is None)
        and bound is None
        and get_visit_cookie(request) is None
        and not get_domain(request.scope)  # which has no forms
    ):
        VISIT_COOKIE.set(response, rt, visit, max_age=86_400)
    return response


def render_onward(request: Request, actor: Caller | None, path: str) -> HTMLResponse:
    """Render a page that opens a path of ours, in answer to a form.

    The policy of every page lets forms lead to our own origin alone, redirects included, and a
    short link leads to another one.
    """
    return render_response(
        request, actor, "onward.html", page_title=gettext("Opening {path}…", path=path), onward=path
    )


def render_fragment(
    request: Request,
    actor: Caller | None,
    template: str,
    *,
    status: int = 200,
    bound: str = "",
    **context: Any,
) -> HTMLResponse:
    """Render a fragment of a page."""
    render = partial(_render_template, request, actor, template, bound, page_title="", **context)
    return PageResponse(
        request, render, status, get_request_locale(request, actor), _get_page_zone(request, actor)
    )


class PageResponse(HTMLResponse):
    """A page that is rendered when it is sent, in a thread: meanwhile redirects are answered.

    It is compressed where the browser accepts it and it pays. Secrets in a page are masked, so that
    its compressed size reveals nothing (BREACH).
    """

    def __init__(
        self,
        request: Request,
        render: Callable[[], str],
        status: int,
        locale: Locale,
        zone: tzinfo = UTC,
    ) -> None:
        headers = {"Content-Language": locale.tag, "Vary": "Accept-Encoding, Accept-Language"}
        super().__init__(status_code=status, headers=headers)
        del self.headers["Content-Length"]  # not known yet
        self._render = render
        self._locale = locale
        self._zone = zone
        self._accepts_gzip = "gzip" in request.headers.get("accept-encoding", "")
        self._threads = request.app.state.rt.singleton(WorkThreadPool)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.body, is_compressed = await self._threads.run(self._build_body)
        self.headers["Content-Length"] = str(len(self.body))
        if is_compressed:
            self.headers["Content-Encoding"] = "gzip"
        await super().__call__(scope, receive, send)

    def _build_body(self) -> tuple[bytes, bool]:
        with use_locale(self._locale), use_zone(self._zone):
            body = self._render().encode()
        if len(body) < _MIN_COMPRESSED_BYTES or not self._accepts_gzip:
            return body, False
        return gzip.compress(body, 5, mtime=0), True


def _render_template(
    request: Request, actor: Caller | None, template: str, visit: str, **context: Any
) -> str:
    rt: Runtime = request.app.state.rt
    pages: TemplateRenderer = request.app.state.pages
    token = get_session_token(request, rt) if actor is not None else None
    return pages.render(
        template,
        user=build_user_context(actor.user if actor else None),
        csrf=csrf.make_token(rt, token or visit),
        request_path=request.url.path,
        areas=request.app.state.areas,
        home=rt.settings.public_url if get_domain(request.scope) else "",
        **context,
    )
