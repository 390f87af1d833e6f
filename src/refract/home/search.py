"""Search across the caller's links, public links, lists and library items."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.threads import WorkThreadPool
from refract.core.words import find_spans, make_snippet
from refract.domains.hosts import build_domain_url
from refract.identity.authentication import Caller
from refract.library.item_tags import get_item_tags
from refract.library.queries.browse import LibraryFilter, count_facets, search_items
from refract.library.queries.items import load_page_texts
from refract.links import pages as link_pages
from refract.links import queries as links
from refract.links.dependencies import to_link_caller
from refract.links.models import Link
from refract.links.queries import LinkCard, LinkFilter, OwnerFilter
from refract.lists import queries as lists
from refract.lists.access import ListCaller as ListOwner
from refract.names.grammar import format_name
from refract.web.i18n import gettext, lazy_gettext, ngettext

MAX_COUNTED = 1_000
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
    fields: Sequence[tuple[str, str]] = ()
    """Other texts that are searched, with their labels."""


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
            row["address"],
            row["title"] or row["destination"],
            row["href"],
            row["short_url"],
            _list_link_fields(card, row["destination"]),
        )
        for row, card in zip(rows, cards, strict=True)
    ]


def _list_link_fields(card: LinkCard, destination: str) -> list[tuple[str, str]]:
    return [
        (gettext("Names"), " ".join(map(format_name, card.names[1:]))),
        (gettext("Destination"), destination),
        (gettext("Notes"), card.link.notes or ""),
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
            build_domain_url(base, link_list.domain) + f"/{link_list.slug}"
            if link_list.published_at and link_list.slug
            else None,
            [
                (gettext("Name"), f"/{link_list.slug}" if link_list.slug else ""),
                (gettext("Description"), link_list.description or ""),
            ],
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
            [
                (gettext("Summary"), item.summary or ""),
                (gettext("Your notes"), item.notes or ""),
                (gettext("URL") if item.url else gettext("Text"), item.text),
            ],
        )
        for item in found
    ]


async def count_hits(
    rt: Runtime, actor: Caller, q: str, kinds: Collection[SearchKind]
) -> dict[SearchKind, int]:
    """Count what a search finds among the caller's own, up to one more than `MAX_COUNTED`."""
    counts: dict[SearchKind, int] = {}
    words = q.strip()[:200]
    async with rt.db.read() as session:
        if SearchKind.LINK in kinds:
            filters, now = LinkFilter(OwnerFilter.ME, q=words), rt.clock.now()
            found = await links.count_links(session, to_link_caller(actor), filters, now)
            counts[SearchKind.LINK] = found.get_total(None)
        if SearchKind.LIST in kinds:
            mine = ListOwner(actor.user.id, None)
            counts[SearchKind.LIST] = await lists.count_lists(session, mine, words, MAX_COUNTED + 1)
        if SearchKind.ITEM in kinds:
            facets = await count_facets(session, LibraryFilter(actor.user.id, q=words))
            counts[SearchKind.ITEM] = facets.total
    return counts


async def explain_hits(
    rt: Runtime, hits: Sequence[SearchHit], words: Sequence[str]
) -> dict[tuple[SearchKind, int], tuple[str, str]]:
    """Return why hits match whose title and note don't show it: a label and a part of the text."""
    reasons: dict[tuple[SearchKind, int], tuple[str, str]] = {}
    unexplained: dict[int, list[str]] = {}
    for hit in hits:
        hidden = [word for word in words if not find_spans(f"{hit.title} {hit.note}", [word])]
        snippets = ((label, make_snippet(text, hidden)) for label, text in hit.fields)
        reason = next(((label, part) for label, part in snippets if part), None) if hidden else None
        if reason:
            reasons[hit.kind, hit.id] = reason
        elif hidden and hit.kind == SearchKind.ITEM:
            unexplained[hit.id] = hidden
    async with rt.db.read() as session:
        tags = await get_item_tags(session, list(unexplained))
        texts = await load_page_texts(session, list(unexplained))
    threads = rt.singleton(WorkThreadPool)
    for item_id, hidden in unexplained.items():
        tag = next((tag.name for tag in tags[item_id] if find_spans(tag.name, hidden)), None)
        if tag:
            reasons[SearchKind.ITEM, item_id] = (gettext("Tag"), tag)
        elif item_id in texts:
            part = await threads.run(make_snippet, texts[item_id], hidden)
            reasons[SearchKind.ITEM, item_id] = (gettext("Page text"), part)
    return reasons
