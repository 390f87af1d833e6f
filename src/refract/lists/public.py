"""A published list for everybody: its page, its feeds, its picture, and where its entries lead. Three questions at most with its name."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from refract.core.runtime import Runtime
from refract.core.threads import WorkThreads
from refract.limits.service import RenderLimit
from refract.lists import card, queries
from refract.lists.blocks import BlockedDomains
from refract.lists.feeds import FEEDS, NO_TITLE, addresses, title_of
from refract.lists.models import LinkList
from refract.lists.queries import Published
from refract.lists.shown import Line, State, address_of, lines, palette_of, public
from refract.web.renders import Renders

KEPT = "public, max-age=60"
_NO_INDEX = {"X-Robots-Tag": "noindex"}


def robots_headers(found: LinkList) -> dict[str, str]:
    """Keep a list without an owner out of search engines: nobody answers for it."""
    return _NO_INDEX if found.owner_id is None else {}


@dataclass(frozen=True, slots=True)
class PublicPage:
    """What the page is made of."""

    list_id: int
    slug: str
    title: str
    context: dict[str, Any]
    headers: dict[str, str]
    owner_id: int | None


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an entry leads, if it does."""

    id: int
    position: int
    href: str
    state: State
    flag_reason: str | None = None


class Public:
    """Published lists, by the id that holds the name."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._base = rt.settings.public_url

    async def page(self, holder: int, edition: int | None) -> PublicPage | None:
        found = await self._read(holder, edition)
        if found is None:
            return None
        return await self._rt.part(WorkThreads).run(self._page, *found)

    def _page(self, about: Published, shown: Sequence[Line]) -> PublicPage:
        one = about.seen.found
        asked = "" if one.edition == about.latest else f"?edition={one.edition}"
        seen = public(one, about.latest, shown, self._base)
        context = {
            "list": seen,
            "heading": title_of(seen),
            "entries": [_entry(line, f"/{one.slug}/{line.entry.position}{asked}") for line in shown],
            "address": address_of(one, about.latest, self._base),
            "feeds": {kind: f"/{one.slug}.{kind}{asked}" for kind in FEEDS},
            "qr_url": f"/{one.slug}.qr",
            "card_url": f"{self._base}/{one.slug}.png{asked}",
            "all_addresses": addresses(seen.entries),
            "older": about.before,
            "newer": about.after,
            "indexed": one.owner_id is not None,
        }
        return PublicPage(one.id, one.slug or "", title_of(seen), context, robots_headers(one), one.owner_id)

    async def feed(self, holder: int, kind: str, edition: int | None, known: str, network: str) -> Response | None:
        """`known` is the ETag that a reader has from before."""
        await self._rt.part(RenderLimit).charge(network)
        found = await self._read(holder, edition)
        return await self._rt.part(WorkThreads).run(self._feed, kind, known, *found) if found is not None else None

    def _feed(self, kind: str, known: str, about: Published, shown: Sequence[Line]) -> Response:
        write, media_type = FEEDS[kind]
        body = write(public(about.seen.found, about.latest, shown, self._base), self._base).encode()
        etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        headers = {"ETag": etag, "Cache-Control": KEPT, **robots_headers(about.seen.found)}
        if etag in known:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=f"{media_type}; charset=utf-8")

    async def card(self, holder: int, edition: int | None, network: str) -> Response | None:
        """The picture that stands beside a link to the list elsewhere. Anybody may show it."""
        async with self._rt.db.read() as session:
            about = await queries.published(session, holder, edition)
            count = await queries.count_entries(session, about.seen.found.id) if about else 0
        if about is None:
            return None
        found = about.seen.found
        address = f"{self._base.split('://', 1)[-1]}/{found.slug}"
        facts = f"{count} {'link' if count == 1 else 'links'}"
        given = {"address": address, "facts": facts, "palette": palette_of(found)}
        picture = await self._rt.part(Renders).draw(card.DRAW_CARD, found.title or "", network, **given)
        headers = {"Cache-Control": KEPT, "Cross-Origin-Resource-Policy": "cross-origin", **robots_headers(found)}
        return Response(picture, headers=headers, media_type="image/png")

    async def entry(self, holder: int, place: str, edition: int | None) -> Entry | None:
        """The entry at a position, written as people write numbers."""
        if not (place.isascii() and place.isdigit() and len(place) < 6 and place[0] != "0"):
            return None
        async with self._rt.db.read() as session:
            about = await queries.published(session, holder, edition)
            if about is None:
                return None
            rows = await queries.entries_of(session, about.seen.found.id, position=int(place))
            blocked = await self._rt.part(BlockedDomains).as_of(session, about.seen.epoch)
        shown = lines(rows, blocked, self._rt.clock.now())
        return Entry(shown[0].entry.id, int(place), shown[0].href, shown[0].state, shown[0].flag_reason) if shown else None

    async def _read(self, holder: int, edition: int | None) -> tuple[Published, list[Line]] | None:
        async with self._rt.db.read() as session:
            about = await queries.published(session, holder, edition)
            if about is None:
                return None
            rows = await queries.entries_of(session, about.seen.found.id)
            blocked = await self._rt.part(BlockedDomains).as_of(session, about.seen.epoch)
        return about, await self._rt.part(WorkThreads).run(lines, rows, blocked, self._rt.clock.now())


def preview(found: LinkList, shown: Sequence[Line], base_url: str) -> dict[str, Any]:
    """A draft as others will see it. Its entries lead straight to their pages: nothing is counted yet."""
    seen = public(found, found.edition or 1, shown, base_url)
    return {
        "list": seen,
        "heading": title_of(seen) or "Untitled list",
        "entries": [_entry(line, line.href) for line in shown],
        "address": f"{base_url}/{seen.slug}",
        "all_addresses": addresses(seen.entries),
        "older": None,
        "newer": None,
        "draft": str(found.id),
    }


def _entry(line: Line, href: str) -> dict[str, Any]:
    return {
        "position": line.entry.position,
        "title": line.entry.title or NO_TITLE,
        "description": line.entry.description,
        "url": line.url,
        "href": href,
        "state": line.state,
    }
