"""Handler of list names for the redirect engine."""

from starlette.datastructures import Headers, QueryParams
from starlette.types import ASGIApp, Scope

from refract.core.errors import Limited, Unauthenticated
from refract.core.runtime import Runtime
from refract.lists.public_pages import EntryTarget, PublicListPage, PublicLists
from refract.redirect.engine import RedirectEngine
from refract.redirect.hooks import RedirectFrontend
from refract.redirect.resolver import (
    DeadOutcome,
    LinkView,
    MissingOutcome,
    RedirectOutcome,
    RedirectTarget,
    ShortLinkRequest,
    SignedInUser,
    WarningOutcome,
)
from refract.web.hosts import get_domain
from refract.web.middleware import EMBEDDED_PAGE_HEADERS


class PublicListHandler:
    """Serves a list's name: its page, a feed, its share image, or an entry.

    Views of the page and clicks of entries are counted separately.
    """

    def __init__(self, rt: Runtime, engine: RedirectEngine, frontend: RedirectFrontend) -> None:
        self._engine = engine
        self._frontend = frontend
        self._public = PublicLists(rt)
        self._allows_embeds = rt.settings.list_embeds

    async def __call__(
        self, scope: Scope, found: RedirectTarget, request: ShortLinkRequest
    ) -> ASGIApp | RedirectOutcome | WarningOutcome | DeadOutcome | MissingOutcome:
        edition = _parse_edition(request.query)
        if request.view is LinkView.FEED and not request.extra:
            known = Headers(scope=scope).get("if-none-match", "")
            return (
                await self._public.get_feed(
                    found.id, request.feed, edition, known, self._frontend.get_network(scope)
                )
                or MissingOutcome()
            )
        if request.view is LinkView.CARD and not request.extra:
            return (
                await self._public.get_card(found.id, edition, self._frontend.get_network(scope))
                or MissingOutcome()
            )
        if request.view in (LinkView.FOLLOW, LinkView.PREVIEW) and not request.extra.strip("/"):
            page = await self._public.get_page(found.id, edition)
            if page is None:
                return MissingOutcome()
            is_embedded = self._allows_embeds and "embed" in _parse_query(request.query)
            return await self._render_page(scope, page, is_embedded=is_embedded)
        if request.view is LinkView.FOLLOW:
            return self._resolve_entry(
                found, await self._public.get_entry(found.id, request.extra, edition)
            )
        return MissingOutcome()

    async def _render_page(
        self, scope: Scope, page: PublicListPage, *, is_embedded: bool
    ) -> ASGIApp:
        if scope["method"] == "GET":
            await self._engine.record_click(
                scope,
                RedirectTarget(
                    kind="list", id=page.list_id, name=page.slug, host=get_domain(scope)
                ),
            )
        if is_embedded:  # the same for all visitors: no one is signed in on another site's page
            response = await self._frontend.render_slow_page(
                scope, "lists/embed.html", page_title=page.title, **page.context
            )
            del response.headers["set-cookie"]
            response.headers.update(EMBEDDED_PAGE_HEADERS)
            return response
        visitor = await self._identify(scope)
        may = visitor is not None and await self._public.may_manage(
            page, visitor.user.id, is_admin=visitor.is_admin
        )
        response = await self._frontend.render_slow_page(
            scope,
            "lists/public.html",
            page_title=page.title,
            is_signed_in=visitor is not None,
            manage_url=f"/app/lists/{page.list_id}" if may else None,
            **page.context,
        )
        response.headers.update(page.headers)
        return response

    async def _identify(self, scope: Scope) -> SignedInUser | None:
        """Return who is signed in. Invalid credentials do not prevent showing a public page."""
        try:
            return await self._frontend.authenticate(scope)
        except (Unauthenticated, Limited):
            return None

    @staticmethod
    def _resolve_entry(
        found: RedirectTarget, entry: EntryTarget | None
    ) -> RedirectOutcome | WarningOutcome | DeadOutcome | MissingOutcome:
        if entry is None:
            return MissingOutcome()
        target = RedirectTarget(
            kind="entry",
            id=entry.id,
            name=f"{found.name}/{entry.position}",
            host=found.host,
            flag_reason=entry.flag_reason,
        )
        if entry.state != "live":
            return DeadOutcome(target, "blocked" if entry.state == "blocked" else "deleted")
        return (
            WarningOutcome(target, entry.href)
            if entry.flag_reason
            else RedirectOutcome(target, entry.href)
        )


def _parse_edition(query: str) -> int | None:
    """Return the requested edition: None for the latest, 0 (never used) if it is invalid."""
    value = _parse_query(query).get("edition")
    if value is None:
        return None
    return int(value) if value.isascii() and value.isdigit() and 0 < len(value) < 7 else 0


def _parse_query(query: str) -> QueryParams:
    return QueryParams(query.encode("utf-8", "replace").decode())
