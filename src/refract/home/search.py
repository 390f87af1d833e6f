"""Search across the caller's links, public links, lists and library items."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.library.queries.browse import search_items
from refract.links import pages as link_pages
from refract.links import queries as links
from refract.links.dependencies import to_link_caller
from refract.links.models import Link
from refract.links.queries import LinkFilter, OwnerFilter
from refract.lists import queries as lists
from refract.lists.access import ListCaller as ListOwner
from refract.web.i18n import gettext, lazy_gettext, ngettext

UNTITLED_LIST = lazy_gettext("Untitled list")


class SearchKind(StrEnum):
    """Kinds of search hits. Queries name them in the plural."""

    LINK = "link"
    LIST = "list"
    ITEM = "item"


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A search hit. `href` is its page in the app, `url` its public URL if it has one."""

    kind: SearchKind
    id: int
    title: str
    note: str
    href: str
    url: str | None


async def search_all(
    rt: Runtime, actor: Caller, q: str, kinds: Collection[SearchKind], limit: int
) -> list[SearchHit]:
    """Return at most `limit` hits of each kind: links, then lists, then items.

    The number of queries does not depend on the data.
    """
    words = q.strip()[:200]
    if not words:
        return []
    found: list[SearchHit] = []
    if SearchKind.LINK in kinds:
        found += await _search_links(rt, actor, words, limit)
    if SearchKind.LIST in kinds:
        found += await _search_lists(rt, actor, words, limit)
    if SearchKind.ITEM in kinds:
        found += await _search_items(rt, actor, words, limit)
    return found


async def _search_links(rt: Runtime, actor: Caller, words: str, limit: int) -> list[SearchHit]:
    """Return own links first, then public links of other users."""
    found: dict[int, Link] = {}
    async with rt.db.read() as session:
        for owner in (OwnerFilter.ME, OwnerFilter.PUBLIC):
            page = await links.load_links_page(
                session,
                CursorCodec(rt.secret),
                to_link_caller(actor),
                LinkFilter(owner, q=words),
                rt.clock.now(),
                limit=limit,
                cursor=None,
            )
            found |= {link.id: link for link in page.items if link.id not in found}
        cards = await links.load_cards(session, list(found.values())[:limit])
    rows = [link_pages.build_row(card, rt) for card in cards]
    return [
        SearchHit(
            SearchKind.LINK,
            int(row["id"]),
            f"/{row['name']}",
            row["title"] or row["destination"],
            row["href"],
            row["short_url"],
        )
        for row in rows
    ]


async def _search_lists(rt: Runtime, actor: Caller, words: str, limit: int) -> list[SearchHit]:
    mine = ListOwner(actor.user.id, None)
    async with rt.db.read() as session:
        page = await lists.load_lists_page(
            session, CursorCodec(rt.secret), mine, limit=limit, cursor=None, q=words
        )
    base = rt.settings.public_url
    return [
        SearchHit(
            SearchKind.LIST,
            link_list.id,
            link_list.title or str(UNTITLED_LIST),
            ngettext("{n} link", "{n} links", count),
            f"/app/lists/{link_list.id}",
            f"{base}/{link_list.slug}" if link_list.published_at and link_list.slug else None,
        )
        for link_list, count, _views in page.items
    ]


async def _search_items(rt: Runtime, actor: Caller, words: str, limit: int) -> list[SearchHit]:
    async with rt.db.read() as session:
        found = await search_items(session, actor.user.id, words, limit)
    return [
        SearchHit(
            SearchKind.ITEM,
            item.id,
            item.title or item.text[:80],
            item.site or gettext("Note"),
            f"/app/library/{item.id}",
            item.url,
        )
        for item in found
    ]
