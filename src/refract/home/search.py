"""One search over everything that is mine: links, lists, and what the library keeps."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.identity.visitors import Actor
from refract.library.shelf import items_matching
from refract.links import pages as link_pages
from refract.links import queries as links
from refract.links.dependencies import who
from refract.links.queries import LinkQuestion
from refract.lists import queries as lists
from refract.lists.access import Who as ListOwner

UNTITLED = "Untitled list"


class Kind(StrEnum):
    """What can be found. The names in the query are their plurals."""

    LINK = "link"
    LIST = "list"
    ITEM = "item"


@dataclass(frozen=True, slots=True)
class Hit:
    """Something found: what it is called, where it is managed, and the address it has for others, if it has one."""

    kind: Kind
    id: int
    title: str
    note: str
    href: str
    url: str | None


async def search(rt: Runtime, actor: Actor, q: str, kinds: Collection[Kind], most: int) -> list[Hit]:
    """At most so many of each kind, links first, then lists, then items. The number of queries does not depend on what there is."""
    words = q.strip()[:200]
    if not words:
        return []
    found: list[Hit] = []
    if Kind.LINK in kinds:
        found += await _links(rt, actor, words, most)
    if Kind.LIST in kinds:
        found += await _lists(rt, actor, words, most)
    if Kind.ITEM in kinds:
        found += await _items(rt, actor, words, most)
    return found


async def _links(rt: Runtime, actor: Actor, words: str, most: int) -> list[Hit]:
    async with rt.db.read() as session:
        page = await links.page_of_links(
            session, Cursors(rt.secret), who(actor), LinkQuestion(q=words), rt.clock.now(), limit=most, cursor=None
        )
        rows = [link_pages.row(card, rt) for card in await links.cards_of(session, page.items)]
    return [
        Hit(Kind.LINK, int(one["id"]), f"/{one['name']}", one["title"] or one["destination"], one["href"], one["short_url"]) for one in rows
    ]


async def _lists(rt: Runtime, actor: Actor, words: str, most: int) -> list[Hit]:
    mine = ListOwner(actor.user.id, None)
    async with rt.db.read() as session:
        page = await lists.page_of_lists(session, Cursors(rt.secret), mine, limit=most, cursor=None, q=words)
    base = rt.settings.public_url
    return [
        Hit(
            Kind.LIST,
            one.id,
            one.title or UNTITLED,
            f"{count} {'entry' if count == 1 else 'entries'}",
            f"/app/lists/{one.id}",
            f"{base}/{one.slug}" if one.published_at and one.slug else None,
        )
        for one, count, _views in page.items
    ]


async def _items(rt: Runtime, actor: Actor, words: str, most: int) -> list[Hit]:
    async with rt.db.read() as session:
        found = await items_matching(session, actor.user.id, words, most)
    return [Hit(Kind.ITEM, one.id, one.title or one.text[:80], one.site or "Note", f"/app/library/{one.id}", one.url) for one in found]
