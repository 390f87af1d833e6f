"""Lists under their names: where the redirect engine, which knows the names, meets the lists, which know the pages."""

from starlette.datastructures import Headers, QueryParams
from starlette.types import ASGIApp, Scope

from refract.core.errors import Limited, Unauthenticated
from refract.core.runtime import Runtime
from refract.lists.public import Entry, Public, PublicPage
from refract.redirect.engine import Engine
from refract.redirect.hooks import Surface
from refract.redirect.resolve import Dead, Found, Leads, Missing, Warns
from refract.redirect.wish import View, Wish


class ListPages:
    """Answers for a list's name: its page, a feed, its picture, or one of its entries. Views and clicks are counted, each apart."""

    def __init__(self, rt: Runtime, engine: Engine, surface: Surface) -> None:
        self._engine = engine
        self._surface = surface
        self._public = Public(rt)

    async def __call__(self, scope: Scope, found: Found, wish: Wish) -> ASGIApp | Leads | Warns | Dead | Missing:
        edition = _edition(wish.query)
        if wish.view is View.FEED and not wish.extra:
            known = Headers(scope=scope).get("if-none-match", "")
            return await self._public.feed(found.id, wish.feed, edition, known, self._surface.network(scope)) or Missing()
        if wish.view is View.CARD and not wish.extra:
            return await self._public.card(found.id, edition, self._surface.network(scope)) or Missing()
        if wish.view in (View.FOLLOW, View.PREVIEW) and not wish.extra.strip("/"):
            return await self._page(scope, await self._public.page(found.id, edition))
        if wish.view is View.FOLLOW:
            return self._entry(found, await self._public.entry(found.id, wish.extra, edition))
        return Missing()

    async def _page(self, scope: Scope, page: PublicPage | None) -> ASGIApp | Missing:
        if page is None:
            return Missing()
        if scope["method"] == "GET":
            await self._engine.record(scope, Found(kind="list", id=page.list_id, name=page.slug))
        manage_url = await self._manage_url(scope, page)
        response = await self._surface.long_page(scope, "lists/public.html", page_title=page.title, manage_url=manage_url, **page.context)
        response.headers.update(page.headers)
        return response

    async def _manage_url(self, scope: Scope, page: PublicPage) -> str | None:
        """Return where its owner or an administrator can change the list. A wrong credential closes no public page."""
        try:
            visitor = await self._surface.visitor(scope)
        except (Unauthenticated, Limited):
            return None
        may = visitor is not None and (visitor.is_admin or visitor.user.id == page.owner_id)
        return f"/app/lists/{page.list_id}" if may else None

    @staticmethod
    def _entry(found: Found, entry: Entry | None) -> Leads | Warns | Dead | Missing:
        if entry is None:
            return Missing()
        target = Found(kind="entry", id=entry.id, name=f"{found.name}/{entry.position}", flag_reason=entry.flag_reason)
        if entry.state != "live":
            return Dead(target, "blocked" if entry.state == "blocked" else "deleted")
        return Warns(target, entry.href) if entry.flag_reason else Leads(target, entry.href)


def _edition(query: str) -> int | None:
    """The edition asked for: None for the latest, 0 (which there never is) for one that cannot be."""
    asked = QueryParams(query.encode("utf-8", "replace").decode()).get("edition")
    if asked is None:
        return None
    return int(asked) if asked.isascii() and asked.isdigit() and 0 < len(asked) < 7 else 0
