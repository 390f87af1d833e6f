"""The slow path: every path whose first segment is not one of our pages is a name or a code.

Serves redirects, preview pages and QR codes, HTML pages for browsers and problem documents for
programs. It uses no database and no cache itself: the lookup is passed in, and so are the hooks
that record a click and fill the cache.
"""

import asyncio
from dataclasses import replace
from urllib.parse import quote, urlencode

from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from refract.core.errors import RefractError, Unavailable
from refract.core.runtime import Runtime
from refract.domains.hosts import build_domain_url
from refract.identity.errors import SignInRequired
from refract.limits.errors import RateLimited
from refract.limits.shared_limits import MissLimit
from refract.links.preview_cards import PreviewCard
from refract.names.service import check_code_guess
from refract.redirect.cache import STALE_GRACE, STALE_TIMEOUT
from refract.redirect.errors import (
    LinkBlocked,
    LinkConfirmationRequired,
    LinkDeleted,
    LinkDisabled,
    LinkExpired,
    LinkLimitReached,
    LinkNotStarted,
    LinkPasswordRequired,
    LinkUnavailable,
    PathMismatch,
    PathTooLong,
    ShortLinkNotFound,
    WrongLinkPassword,
)
from refract.redirect.hooks import ListHandler, RedirectFrontend, RedirectHooks
from refract.redirect.passwords import check_guess, is_unlocked, read_guess, remember_unlocked
from refract.redirect.resolver import (
    CardOutcome,
    DeadOutcome,
    LimitedOutcome,
    LinkLookup,
    LinkView,
    ListOutcome,
    MismatchOutcome,
    MissingOutcome,
    PasswordOutcome,
    PreviewOutcome,
    RedirectOutcome,
    RedirectTarget,
    ResolveOutcome,
    SignedInUser,
    SignInOutcome,
    TargetRule,
    TargetState,
    WarningOutcome,
    apply_path,
    build_cache_key,
    get_raw_path,
    is_found_by_guess,
    parse_path,
    resolve,
)
from refract.redirect.responses import (
    CONFIRM_PARAMETER,
    ShortLinkRedirect,
    build_card_page,
    build_json_preview,
    explain_flag,
    is_confirmed,
    render_qr_image,
    sign_confirmation,
    split_confirmation,
)
from refract.redirect.rules import choose_rule
from refract.redirect.visitors import Visitor, VisitorFacts, is_bot_or_prefetch
from refract.web import return_path
from refract.web.hosts import get_domain
from refract.web.i18n import LazyText, lazy_gettext, translate_error
from refract.web.middleware import HeadOnlySend
from refract.web.networks import find_scope_network
from refract.web.problems import (
    MethodNotAllowed,
    build_error_context,
    build_problem_headers,
    is_html_accepted,
    make_problem_response,
)

MAX_PATH_BYTES = 8192
"""Maximum bytes of a path, also for `POST /resolve`.

Servers behind links reject longer ones, and filling them in takes long.
"""

_ALLOWED_METHODS = ("GET", "HEAD")
_METHOD_PRESERVING_STATUSES = (307, 308)
_SIGN_IN_PATH = "/auth/sign-in"
FOLLOW_PATH = "/auth/follow"
"""Where the default domain decides about a restricted link on another one."""
FOLLOW_PARAMETER = "link"
"""Its parameter: the host, path and query of the request, `sho.rt/name?query`."""
_GONE_ERRORS: dict[TargetState, type[RefractError]] = {
    "scheduled": LinkNotStarted,
    "expired": LinkExpired,
    "limit_reached": LinkLimitReached,
    "disabled": LinkDisabled,
    "deleted": LinkDeleted,
    "blocked": LinkBlocked,
    "on_hold": LinkUnavailable,
}


_OPENABLE = (RedirectOutcome, WarningOutcome, PreviewOutcome, PasswordOutcome)
"""Outcomes of a link that works."""


class RedirectApp:
    """The ASGI application behind every name and code."""

    def __init__(
        self,
        rt: Runtime,
        lookup: LinkLookup,
        frontend: RedirectFrontend,
        hooks: RedirectHooks | None = None,
    ) -> None:
        self.rt = rt
        self.lookup = lookup
        self.frontend = frontend
        self.hooks = hooks or RedirectHooks()
        self.serve_stale_until = float("-inf")
        self.misses = rt.singleton(MissLimit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await RedirectRequest(self, scope).build_response(receive)
        await response(scope, receive, HeadOnlySend(send) if scope["method"] == "HEAD" else send)

    async def try_redirect(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Send the response if it is a redirect; otherwise nothing is sent, counted or charged."""
        response = await RedirectRequest(self, scope).build_redirect()
        if response is None:
            return False
        await response(scope, receive, HeadOnlySend(send) if scope["method"] == "HEAD" else send)
        return True


class RedirectRequest:
    """A request. Its user is authenticated once, and only if the response depends on it."""

    def __init__(self, app: RedirectApp, scope: Scope) -> None:
        self._app = app
        self._rt = app.rt
        self._frontend = app.frontend
        self._scope = scope
        self._raw_path = get_raw_path(scope["path"], scope.get("raw_path"))
        self._host = get_domain(scope)
        self._cache_key = build_cache_key(self._host, self._raw_path)
        self._request = parse_path(
            self._raw_path[:MAX_PATH_BYTES], scope["query_string"], self._host
        )
        self._wants_page = is_html_accepted(Headers(scope=scope))
        self._user: SignedInUser | None = None
        self._authenticated = False
        self._has_given_password = False

    async def build_response(self, receive: Receive) -> ASGIApp:
        try:
            if self._raw_path == b"/":
                return self._render_root()
            outcome = await self._resolve()
            if (
                self._scope["method"] == "POST"
                and isinstance(outcome, _OPENABLE)
                and outcome.found.asks_password
            ):
                return await self._answer_guess(outcome.found, receive)
            if not self._is_allowed(outcome):
                raise _build_method_error(self._scope["method"])
            return await self._render_outcome(outcome)
        except RefractError as exc:
            return await self._render_error(exc)

    async def build_redirect(self) -> ASGIApp | None:
        try:
            outcome = await self._resolve()
            if not isinstance(outcome, RedirectOutcome) or not self._is_allowed(outcome):
                return None
            return await self._render_redirect(outcome.found, outcome.href)
        except RefractError:
            return None  # a process with pages finds the same error and renders it

    def _is_allowed(self, outcome: ResolveOutcome) -> bool:
        """Return whether the method is allowed: any is for a 307 or 308, and for a miss."""
        if self._scope["method"] in _ALLOWED_METHODS or isinstance(
            outcome, MissingOutcome | SignInOutcome
        ):
            return True
        if not isinstance(
            outcome, RedirectOutcome | LimitedOutcome | DeadOutcome | MismatchOutcome
        ):
            return False
        if isinstance(outcome, LimitedOutcome | DeadOutcome) and outcome.found.asks_for_button:
            return bool(self._scope["method"] == "POST")
        return outcome.found.redirect_status in _METHOD_PRESERVING_STATUSES

    async def _resolve(self) -> ResolveOutcome:
        """Resolve the request, with a short timeout where a stale result is available."""
        if len(self._raw_path) > MAX_PATH_BYTES:
            raise PathTooLong(limit=MAX_PATH_BYTES)
        follow, monotonic = self._app, self._rt.clock.monotonic
        if self._rt.clock.now_ns() < follow.misses.exhausted_until_ns:
            network = self._frontend.get_network(self._scope)
            check_code_guess(self._rt, self._request.name, network)
        stale = follow.hooks.stale(
            self._cache_key, self._scope["query_string"], self._build_visitor
        )
        if stale is not None and monotonic() < follow.serve_stale_until:
            return self._check_code(stale)
        try:
            async with asyncio.timeout(STALE_TIMEOUT if stale is not None else None):
                return self._check_code(
                    await resolve(
                        follow.lookup,
                        self._request,
                        self._get_user,
                        self._rt.clock.now,
                        self._is_unlocked,
                        self._choose_rule,
                        self._is_crawler,
                    )
                )
        except (Unavailable, TimeoutError):
            if stale is None:
                raise
            follow.serve_stale_until = monotonic() + STALE_GRACE
            return self._check_code(stale)

    def _check_code(self, outcome: ResolveOutcome) -> ResolveOutcome:
        """Return the outcome. Raises `RateLimited` if the visitor may not learn of this code."""
        misses = self._app.misses
        if self._rt.clock.now_ns() < misses.exhausted_until_ns and is_found_by_guess(outcome):
            misses.check_code(self._frontend.get_network(self._scope))
        if not isinstance(outcome, MissingOutcome):
            self._request = self._request.fit(outcome.found)
        return outcome

    def _choose_rule(self, found: RedirectTarget) -> TargetRule | None:
        return choose_rule(found, self._rt.singleton(VisitorFacts), self._build_visitor())

    def _is_crawler(self) -> bool:
        return self._rt.singleton(VisitorFacts).crawlers[self._build_visitor().agent]

    def _build_visitor(self) -> Visitor:
        headers = dict(self._scope["headers"])
        return Visitor(
            self._rt.clock.now_ns(),
            find_scope_network(self._scope, self._rt),
            headers.get(b"user-agent", b""),
            headers.get(b"accept-language", b""),
            headers.get(b"referer", b""),
            self._scope["query_string"],
        )

    def _is_unlocked(self, found: RedirectTarget) -> bool:
        return self._has_given_password or is_unlocked(self._rt, Request(self._scope), found)

    async def _get_user(self) -> SignedInUser | None:
        if not self._authenticated:
            self._authenticated = True
            self._user = await self._frontend.authenticate(self._scope)
        return self._user

    async def _render_outcome(  # noqa: C901, PLR0911 - one per outcome
        self, outcome: ResolveOutcome
    ) -> ASGIApp:
        match outcome:
            case RedirectOutcome(found, href):
                return await self._render_redirect(found, href)
            case WarningOutcome(found, href):
                return await self._render_warning(found, href)
            case CardOutcome(found):
                return await self._render_card(found)
            case PreviewOutcome(found, href):
                return (
                    await self._render_preview(found, href)
                    if self._request.view is LinkView.PREVIEW
                    else await self._render_qr(found)
                )
            case ListOutcome(found) if self._app.hooks.lists is not None:
                return await self._render_list(found, self._app.hooks.lists)
            case SignInOutcome():
                return self._redirect_to_sign_in()
            case PasswordOutcome(found):
                return await self._render_password(found)
            case LimitedOutcome(found, href):
                return await self._render_limited(found, href)
            case DeadOutcome(found, state):
                return await self._render_dead(found, state)
            case MismatchOutcome(_, reason, usage):
                raise PathMismatch(reason=reason, usage=usage)
            case MissingOutcome() | ListOutcome():
                return await self._render_missing()

    async def _render_list(self, found: RedirectTarget, lists: ListHandler) -> ASGIApp:
        if self._request.view is LinkView.QR and not self._request.extra:
            return await self._render_qr(found)
        answer = await lists(self._scope, found, self._request)
        return (
            await self._render_outcome(answer)
            if isinstance(answer, RedirectOutcome | WarningOutcome | DeadOutcome | MissingOutcome)
            else answer
        )

    async def _render_redirect(self, found: RedirectTarget, href: str) -> ASGIApp:
        if found.is_cacheable and not (found.forward_query and self._request.query):
            # Before the click is recorded: the next request should find it already.
            self._app.hooks.fill(self._cache_key, found, href)
        if self._scope["method"] != "HEAD":
            await self._app.hooks.record(self._scope, found)
        self._scope.setdefault("state", {})["redirect"] = True
        return ShortLinkRedirect(
            found.redirect_status, href, cacheable=found.may_be_kept, noindex=found.noindex
        )

    async def _render_card(self, found: RedirectTarget) -> ASGIApp:
        """Return the preview card of a link, and count the visit of the crawler."""
        if self._scope["method"] != "HEAD":
            await self._app.hooks.record(self._scope, found)
        url = build_domain_url(self._rt.settings.public_url, self._host)
        return build_card_page(
            found.preview_card or PreviewCard(),
            found.address,
            url + self._raw_path.decode("latin-1"),
        )

    async def _answer_guess(self, found: RedirectTarget, receive: Receive) -> ASGIApp:
        """Return what follows the password of a link, or the page that asks for it again.

        It never redirects: browsers refuse to be redirected to other sites by a form.
        """
        try:
            guess = await read_guess(receive)
            await check_guess(self._rt, found, self._frontend.get_network(self._scope), guess)
        except (WrongLinkPassword, RateLimited) as exc:
            return await self._render_password(found, exc)
        self._has_given_password = True
        outcome = await self._resolve()
        answer = (
            await self._render_onward(outcome.found, outcome.href)
            if isinstance(outcome, RedirectOutcome)  # one with a click limit counts this POST
            else await self._render_outcome(outcome)
        )
        if isinstance(answer, Response):
            remember_unlocked(self._rt, answer, found)
        return answer

    async def _render_password(
        self, found: RedirectTarget, refused: WrongLinkPassword | RateLimited | None = None
    ) -> Response:
        if self._request.view is LinkView.QR:
            return await self._render_qr(found)  # of the short URL alone
        if not self._wants_page:
            return make_problem_response(refused or LinkPasswordRequired(name=found.name))
        response = self._frontend.render_page(
            self._scope,
            await self._get_user(),
            "redirect/password.html",
            status=refused.status if refused else 200,
            page_title=found.address,
            name=found.name,
            error=translate_error(refused) if refused else None,
            action=self._path_and_query,
        )
        if refused:
            response.headers.update(build_problem_headers(refused))
        return response

    async def _render_limited(self, found: RedirectTarget, href: str) -> ASGIApp:
        """Redirect a person while the limit allows it. Others learn nothing of the destination."""
        if self._request.view is LinkView.QR:
            return await self._render_qr(found)  # of the short URL alone
        if not self._opens(found):
            return await self._render_confirmation(found)
        if not await self._app.hooks.take(found):
            return await self._render_dead(found, "limit_reached")
        if self._has_given_password or found.asks_for_button:
            return await self._render_onward(found, href)
        return await self._render_redirect(found, href)

    def _opens(self, found: RedirectTarget) -> bool:
        """Return whether the request opens a link with a click limit, and so counts.

        It is by a person who has pressed the button, where there is one, or typed the password.
        """
        method = self._scope["method"]
        if method == "HEAD" or self._request.view is not LinkView.FOLLOW:
            return False
        if is_bot_or_prefetch(self._rt, self._scope):
            return False
        return not found.asks_for_button or method == "POST"

    async def _render_confirmation(self, found: RedirectTarget) -> Response:
        """Return the page with a button that opens a link with a click limit."""
        if not self._wants_page:
            return make_problem_response(LinkConfirmationRequired(name=found.name))
        path = f"/{quote(found.name)}{'/' + self._request.extra if self._request.extra else ''}"
        if self._request.view is LinkView.FOLLOW:
            path = self._path_and_query
        return self._frontend.render_page(
            self._scope,
            await self._get_user(),
            "redirect/limited.html",
            status=200,
            page_title=found.address,
            name=found.name,
            limit=found.click_limit,
            action=self._build_own_url(path),
            by_button=found.asks_for_button,
            manage_url=await self._frontend.get_manage_url(await self._get_user(), found),
            warning=explain_flag(found.flag_reason) if found.flag_reason else None,
        )

    async def _render_onward(self, found: RedirectTarget, href: str) -> Response:
        """Return a page that leads on to the destination, and count the click."""
        await self._app.hooks.record(self._scope, found)
        if not self._wants_page:
            return build_json_preview(found, self._build_short_url(found), href)
        return self._frontend.render_page(
            self._scope,
            await self._get_user(),
            "onward.html",
            status=200,
            page_title=found.address,
            onward=href,
        )

    @property
    def _path_and_query(self) -> str:
        query = self._scope["query_string"]
        return (self._raw_path + b"?" + query if query else self._raw_path).decode("latin-1")

    def _redirect_to_sign_in(self) -> Response:
        path = self._path_and_query
        if self._host:
            # Only the default domain knows who is signed in: it decides, and redirects.
            url = self._rt.settings.public_url + build_follow_path(self._host, path)
            return RedirectResponse(url, 302, {"Cache-Control": "no-store"})
        return self._remember_and_sign_in(path)

    def _remember_and_sign_in(self, path: str) -> Response:
        if not self._wants_page:
            raise SignInRequired
        response = RedirectResponse(_SIGN_IN_PATH, 302, {"Cache-Control": "no-store"})
        return_path.remember_path(response, self._rt, path)
        return response

    def _build_own_url(self, path: str) -> str:
        """Return the URL of a path of this link, for a page about it."""
        return path

    async def _render_warning(self, found: RedirectTarget, href: str) -> ASGIApp:
        """Show the preview of a flagged link; redirect and count once the visitor confirms."""
        now, network = self._rt.clock.now(), self._frontend.get_network(self._scope)
        confirmation, query = split_confirmation(self._request.query)
        if confirmation and is_confirmed(self._rt.secret, found, network, now, confirmation):
            fitted = (
                apply_path(found, found.active_template, replace(self._request, query=query))
                if found.active_template is not None
                else None
            )
            return await self._render_redirect(
                found, fitted.href if isinstance(fitted, RedirectOutcome) else href
            )
        asked = f"{CONFIRM_PARAMETER}={sign_confirmation(self._rt.secret, found, network, now)}"
        path = self._raw_path.decode("latin-1")
        onward = f"{path}?{asked}&{query}" if query else f"{path}?{asked}"
        return await self._render_preview(found, href, continue_url=self._build_own_url(onward))

    async def _render_preview(
        self, found: RedirectTarget, href: str, *, continue_url: str | None = None
    ) -> Response:
        short_url = self._build_short_url(found)
        if not self._wants_page:
            return build_json_preview(found, short_url, href, continue_url)
        link = {
            "name": found.name,
            "short_url": short_url,
            "destination": href,
            "title": found.title,
            "created_at": found.created_at,
            "state": "active",
        }
        address = (
            f"/{found.name}.qr{'/' + self._request.extra if self._request.extra else ''}"
            if found.kind == "link"
            else None
        )
        return self._frontend.render_page(
            self._scope,
            await self._get_user(),
            "redirect/preview.html",
            status=200,
            page_title=found.address,
            link=link,
            qr_url=self._build_own_url(address) if address else None,
            qr_png_url=self._build_own_url(f"{address}?format=png&size=512") if address else None,
            manage_url=await self._frontend.get_manage_url(await self._get_user(), found),
            continue_url=continue_url,
            warning=explain_flag(found.flag_reason) if found.flag_reason else None,
        )

    async def _render_qr(self, found: RedirectTarget) -> Response:
        asked = QueryParams(self._scope["query_string"])
        style = await self._app.hooks.find_qr_style(found)
        network = self._frontend.get_network(self._scope)
        response = await render_qr_image(
            self._rt, self._build_short_url(found), network, asked, style
        )
        response.headers["Cache-Control"] = (
            "no-store" if found.restricted else "private, max-age=300"
        )
        return response

    def _build_short_url(self, found: RedirectTarget) -> str:
        # The name of an entry contains its number.
        extra = f"/{self._request.extra}" if self._request.extra and found.kind != "entry" else ""
        return f"{build_domain_url(self._rt.settings.public_url, found.host)}/{found.name}{extra}"

    def _render_root(self) -> ASGIApp:
        """Return the response to `/` on a domain that has no home page of ours."""
        domain = self._app.hooks.find_domain(self._host)
        if domain is not None and domain.root_destination:
            return ShortLinkRedirect(302, domain.root_destination, cacheable=False)
        return self._render_not_found([])

    async def _render_dead(self, found: RedirectTarget, state: TargetState) -> ASGIApp:
        """Return the response of a link that does not work: where its owner leads, or a page."""
        substitute = found.get_substitute(state)
        if substitute is not None and self._request.view is LinkView.FOLLOW:
            return ShortLinkRedirect(302, substitute, cacheable=False)
        if self._rt.settings.dead_link_status == 404:
            return await self._render_missing()
        domain = self._app.hooks.find_domain(self._host)
        if domain is not None and domain.gone_destination:
            return ShortLinkRedirect(302, domain.gone_destination, cacheable=False)
        if not self._wants_page:
            return make_problem_response(_GONE_ERRORS[state](name=found.name))
        return self._frontend.render_page(
            self._scope,
            await self._get_user(),
            "redirect/gone.html",
            status=_GONE_ERRORS[state].status,
            page_title=found.address,
            name=found.name,
            state=state,
            since=found.expires_at if state == "expired" else None,
            starts_at=found.starts_at if state == "scheduled" else None,
            manage_url=await self._frontend.get_manage_url(await self._get_user(), found),
        )

    async def _render_missing(self) -> ASGIApp:
        """Charge the miss to the network and the user, then return the page with suggestions.

        On a domain with a destination for unknown names, that is where they lead.
        """
        misses = self._app.misses
        await misses.charge_network(self._frontend.get_network(self._scope))
        visitor = await self._get_user()
        if visitor is not None:
            await misses.charge_user(visitor.user.id)
        if self._host:
            domain = self._app.hooks.find_domain(self._host)
            if domain is not None and domain.unknown_destination:
                return ShortLinkRedirect(302, domain.unknown_destination, cacheable=False)
            return self._render_not_found([])
        suggestions = await self._app.lookup.suggest(self._request.name, visitor)
        creatable = (
            self._request.view is LinkView.FOLLOW
            and not self._request.extra
            and await self._frontend.can_create(visitor, self._request.name)
        )
        return self._render_not_found(suggestions, visitor, creatable=creatable)

    def _render_not_found(
        self,
        suggestions: list[str],
        visitor: SignedInUser | None = None,
        *,
        creatable: bool = False,
    ) -> Response:
        name = self._request.display_name
        if not self._wants_page:
            return make_problem_response(ShortLinkNotFound(name=name, suggestions=suggestions))
        return self._frontend.render_page(
            self._scope,
            visitor,
            "redirect/not_found.html",
            status=404,
            page_title=lazy_gettext("Page not found"),
            name=name,
            suggestions=suggestions,
            creatable=creatable,
        )

    async def _render_error(self, error: RefractError) -> Response:
        if not self._wants_page:
            return make_problem_response(error)
        request_id = self._scope.get("state", {}).get("request_id")
        context = build_error_context(error, request_id, heading=_get_heading(error))
        response = self._frontend.render_page(self._scope, self._user, "error.html", **context)
        response.headers.update(build_problem_headers(error))
        return response


def build_follow_path(host: str, path: str) -> str:
    """Return the path on the default domain that decides about a path of another domain."""
    return f"{FOLLOW_PATH}?{urlencode({FOLLOW_PARAMETER: host + path})}"


def _build_method_error(method: str) -> MethodNotAllowed:
    refused = MethodNotAllowed(method=method[:20])
    refused.headers = {"Allow": ", ".join(_ALLOWED_METHODS)}  # read by build_problem_headers
    return refused


def _get_heading(error: RefractError) -> LazyText | None:
    if isinstance(error, PathMismatch):
        return lazy_gettext("This path doesn’t match the link")
    is_method_error = isinstance(error, MethodNotAllowed)
    return lazy_gettext("Links can only be opened") if is_method_error else None
