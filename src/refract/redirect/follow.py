"""The slow path: every address whose first segment is not ours is a name or a code, and this answers it.

Redirects, pages for people and problem documents for programs; preview pages and QR codes. It knows no table and no cache: who
knows the names is handed in, and so are the hooks that count a click and keep an answer ready.
"""

import asyncio
from dataclasses import replace

from starlette.datastructures import Headers, QueryParams
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from refract.core.errors import RefractError, Unavailable
from refract.core.runtime import Runtime
from refract.identity.errors import SignInNeeded
from refract.limits.service import MissLimit
from refract.redirect.errors import (
    LinkBlocked,
    LinkDeleted,
    LinkDisabled,
    LinkExpired,
    LinkGone,
    LinkUnavailable,
    NoSuchLink,
    PathDoesNotFit,
    PathTooLong,
)
from refract.redirect.hooks import Hooks, ListPage, Surface
from refract.redirect.resolve import (
    Dead,
    Found,
    Leads,
    Listed,
    Lookup,
    Missing,
    Outcome,
    Shows,
    SignInFirst,
    State,
    Unfit,
    Visitor,
    Warns,
    fit,
    resolve,
)
from refract.redirect.responses import Redirect, json_preview, qr_image, without_body
from refract.redirect.warning import PARAMETER, confirm, explain_flag, is_confirmed, split_confirmation
from refract.redirect.wish import View, raw_path_of, read_wish
from refract.web import returning
from refract.web.problems import MethodNotAllowed, problem_headers, problem_response, wants_page

STALE_SECONDS = 0.25
HASTY_SECONDS = 0.5
"""Once somebody has waited in vain, what we knew is the answer at once for so long."""

MAX_PATH = 8192
"""Bytes of a path, as `POST /resolve` takes it. No server behind a link reads longer ones, and filling them in takes long."""

_METHODS = ("GET", "HEAD")
_KEEPING_METHOD = (307, 308)
_SIGN_IN = "/auth/sign-in"
_GONE: dict[State, type[LinkGone]] = {
    "expired": LinkExpired,
    "disabled": LinkDisabled,
    "deleted": LinkDeleted,
    "blocked": LinkBlocked,
    "on_hold": LinkUnavailable,
}


class Follow:
    """The ASGI application behind every name and code."""

    def __init__(self, rt: Runtime, lookup: Lookup, surface: Surface, hooks: Hooks | None = None) -> None:
        self.rt = rt
        self.lookup = lookup
        self.surface = surface
        self.hooks = hooks or Hooks()
        self.hasty_until = float("-inf")
        self.misses = rt.part(MissLimit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await _Request(self, scope).answer()
        await response(scope, receive, without_body(send) if scope["method"] == "HEAD" else send)

    async def redirected(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer if the answer is a redirect. If it is not, nothing has been sent, counted or taken from anybody's limit."""
        response = await _Request(self, scope).redirect()
        if response is None:
            return False
        await response(scope, receive, without_body(send) if scope["method"] == "HEAD" else send)
        return True


class _Request:
    """One request on its way to an answer. Who asks is found out once, and only when it matters."""

    def __init__(self, follow: Follow, scope: Scope) -> None:
        self._follow = follow
        self._rt = follow.rt
        self._surface = follow.surface
        self._scope = scope
        self._raw_path = raw_path_of(scope["path"], scope.get("raw_path"))
        self._wish = read_wish(self._raw_path[:MAX_PATH], scope["query_string"])
        self._page = wants_page(Headers(scope=scope))
        self._visitor: Visitor | None = None
        self._asked = False

    async def answer(self) -> ASGIApp:
        try:
            outcome = await self._outcome()
            if not self._is_allowed(outcome):
                raise _not_allowed(self._scope["method"])
            return await self._respond(outcome)
        except RefractError as refused:
            return await self._refused(refused)

    async def redirect(self) -> ASGIApp | None:
        try:
            outcome = await self._outcome()
            if not isinstance(outcome, Leads) or not self._is_allowed(outcome):
                return None
            return await self._redirect(outcome.found, outcome.href)
        except RefractError:
            return None  # whoever has pages to say it with finds out the same

    def _is_allowed(self, outcome: Outcome) -> bool:
        """Return whether the method fits: any does for a redirect that keeps it, and where there is nothing to see."""
        if self._scope["method"] in _METHODS or isinstance(outcome, Missing | SignInFirst):
            return True
        return isinstance(outcome, Leads | Dead | Unfit) and outcome.found.redirect_status in _KEEPING_METHOD

    async def _outcome(self) -> Outcome:
        """What we knew before we lost touch is asked for again, but nobody is made to wait for long, and few are made to wait at all."""
        if len(self._raw_path) > MAX_PATH:
            raise PathTooLong(most=MAX_PATH)
        follow, monotonic = self._follow, self._rt.clock.monotonic
        stale = follow.hooks.stale(self._raw_path, self._scope["query_string"])
        if stale is not None and monotonic() < follow.hasty_until:
            return stale
        try:
            async with asyncio.timeout(STALE_SECONDS if stale is not None else None):
                return await resolve(follow.lookup, self._wish, self._who, self._rt.clock.now)
        except (Unavailable, TimeoutError):
            if stale is None:
                raise
            follow.hasty_until = monotonic() + HASTY_SECONDS
            return stale

    async def _who(self) -> Visitor | None:
        if not self._asked:
            self._asked = True
            self._visitor = await self._surface.visitor(self._scope)
        return self._visitor

    async def _respond(self, outcome: Outcome) -> ASGIApp:  # noqa: PLR0911 - one for each outcome
        match outcome:
            case Leads(found, href):
                return await self._redirect(found, href)
            case Warns(found, href):
                return await self._warn(found, href)
            case Shows(found, href):
                return await self._preview(found, href) if self._wish.view is View.PREVIEW else await self._qr(found)
            case Listed(found) if self._follow.hooks.lists is not None:
                return await self._listed(found, self._follow.hooks.lists)
            case SignInFirst():
                return self._sign_in()
            case Dead(found, state) if self._rt.settings.dead_link_status != 404:
                return await self._gone(found, state)
            case Unfit(_, reason, usage):
                raise PathDoesNotFit(reason=reason, usage=usage)
            case Missing() | Listed() | Dead():
                return await self._missing()

    async def _listed(self, found: Found, lists: ListPage) -> ASGIApp:
        if self._wish.view is View.QR and not self._wish.extra:
            return await self._qr(found)
        answer = await lists(self._scope, found, self._wish)
        return await self._respond(answer) if isinstance(answer, Leads | Warns | Dead | Missing) else answer

    async def _redirect(self, found: Found, href: str) -> ASGIApp:
        if found.is_cacheable and not (found.forward_query and self._wish.query):
            self._follow.hooks.fill(self._raw_path, found, href)  # at once: the next who asks should not have to ask for it again
        if self._scope["method"] != "HEAD":
            await self._follow.hooks.record(self._scope, found)
        self._scope.setdefault("state", {})["redirect"] = True
        return Redirect(found.redirect_status, href, keep=not found.restricted)

    def _sign_in(self) -> Response:
        if not self._page:
            raise SignInNeeded
        response = RedirectResponse(_SIGN_IN, 302, {"Cache-Control": "no-store"})
        query = self._scope["query_string"]
        path = (self._raw_path + b"?" + query if query else self._raw_path).decode("latin-1")
        returning.remember(response, self._rt, path)
        return response

    async def _warn(self, found: Found, href: str) -> ASGIApp:
        """Show the preview of a flagged link, and redirect once the visitor confirms it: only that is a click."""
        now, network = self._rt.clock.now(), self._surface.network(self._scope)
        confirmation, query = split_confirmation(self._wish.query)
        if confirmation and is_confirmed(self._rt.secret, found, network, now, confirmation):
            fitted = fit(found, found.template, replace(self._wish, query=query)) if found.template is not None else None
            return await self._redirect(found, fitted.href if isinstance(fitted, Leads) else href)
        asked = f"{PARAMETER}={confirm(self._rt.secret, found, network, now)}"
        path = self._raw_path.decode("latin-1")
        return await self._preview(found, href, continue_url=f"{path}?{asked}&{query}" if query else f"{path}?{asked}")

    async def _preview(self, found: Found, href: str, *, continue_url: str | None = None) -> Response:
        short_url = self._short_url(found)
        if not self._page:
            return json_preview(found, short_url, href, continue_url)
        link = {
            "name": found.name,
            "short_url": short_url,
            "destination": href,
            "title": found.title,
            "created_at": found.created_at,
            "state": "active",
        }
        address = f"/{found.name}.qr{'/' + self._wish.extra if self._wish.extra else ''}" if found.kind == "link" else None
        return self._surface.page(
            self._scope,
            await self._who(),
            "redirect/preview.html",
            status=200,
            page_title=f"/{found.name}",
            link=link,
            qr_url=address,
            qr_png_url=f"{address}?format=png&size=512" if address else None,
            manage_url=await self._surface.manage_url(await self._who(), found),
            continue_url=continue_url,
            warning=explain_flag(found.flag_reason) if found.flag_reason else None,
        )

    async def _qr(self, found: Found) -> Response:
        asked = QueryParams(self._scope["query_string"])
        response = await qr_image(self._rt, self._short_url(found), self._surface.network(self._scope), asked)
        response.headers["Cache-Control"] = "no-store" if found.restricted else "private, max-age=300"
        return response

    def _short_url(self, found: Found) -> str:
        extra = f"/{self._wish.extra}" if self._wish.extra and found.kind != "entry" else ""  # the name of an entry has its number
        return f"{self._rt.settings.public_url}/{found.name}{extra}"

    async def _gone(self, found: Found, state: State) -> Response:
        if not self._page:
            return problem_response(_GONE[state](name=found.name))
        return self._surface.page(
            self._scope,
            await self._who(),
            "redirect/gone.html",
            status=LinkGone.status,
            page_title=f"/{found.name}",
            name=found.name,
            state=state,
            since=found.expires_at if state == "expired" else None,
            manage_url=await self._surface.manage_url(await self._who(), found),
        )

    async def _missing(self) -> Response:
        """A miss costs its network and its user a token; without one there is no page and no search for what was meant."""
        misses = self._follow.misses
        await misses.charge_network(self._surface.network(self._scope))
        visitor = await self._who()
        if visitor is not None:
            await misses.charge_user(visitor.user.id)
        name = self._wish.shown
        suggestions = await self._follow.lookup.suggest(self._wish.name, visitor)
        if not self._page:
            return problem_response(NoSuchLink(name=name, suggestions=suggestions))
        return self._surface.page(
            self._scope,
            visitor,
            "redirect/not_found.html",
            status=404,
            page_title="Not found",
            name=name,
            suggestions=suggestions,
            creatable=self._wish.view is View.FOLLOW and not self._wish.extra and await self._surface.can_create(visitor, self._wish.name),
        )

    async def _refused(self, error: RefractError) -> Response:
        if not self._page:
            return problem_response(error)
        response = self._surface.page(
            self._scope,
            self._visitor,
            "error.html",
            status=error.status,
            page_title=str(error.status),
            title=_heading(error),
            detail=error.message,
            request_id=self._scope.get("state", {}).get("request_id"),
            retry_after=getattr(error, "retry_after", None),
        )
        response.headers.update(problem_headers(error))
        return response


def _not_allowed(method: str) -> MethodNotAllowed:
    refused = MethodNotAllowed(method=method[:20])
    refused.headers = {"Allow": ", ".join(_METHODS)}  # read by problem_headers
    return refused


def _heading(error: RefractError) -> str:
    if isinstance(error, PathDoesNotFit):
        return "This path does not fit the link"
    headings = {
        405: "A link can only be followed",
        414: "Address too long",
        429: "Too many requests",
        503: "Back in a moment",
    }
    return headings.get(error.status, "That did not work")
