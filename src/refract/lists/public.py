"""A published list for everybody: its page, its feeds, and where its entries lead. Three questions at most, the name's included."""

import hashlib
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from refract.core.runtime import Runtime
from refract.lists import queries
from refract.lists.blocks import BlockedDomains
from refract.lists.feeds import FEEDS, NO_TITLE, addresses, title_of
from refract.lists.queries import Published
from refract.lists.shown import Line, State, address_of, lines, public

KEPT = "public, max-age=60"


@dataclass(frozen=True, slots=True)
class PublicPage:
    """What the page is made of."""

    list_id: int
    slug: str
    title: str
    context: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an entry leads, if it does."""

    id: int
    position: int
    href: str
    state: State


class Public:
    """Published lists, by the id that holds the name."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._base = rt.settings.public_url

    async def page(self, holder: int, edition: int | None) -> PublicPage | None:
        found = await self._read(holder, edition)
        if found is None:
            return None
        about, shown = found
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
            "all_addresses": addresses(seen.entries),
            "older": about.before,
            "newer": about.after,
        }
        return PublicPage(one.id, one.slug or "", title_of(seen), context)

    async def feed(self, holder: int, kind: str, edition: int | None, known: str) -> Response | None:
        """`known` is the ETag that a reader has from before."""
        found = await self._read(holder, edition)
        if found is None:
            return None
        about, shown = found
        write, media_type = FEEDS[kind]
        body = write(public(about.seen.found, about.latest, shown, self._base), self._base).encode()
        etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        headers = {"ETag": etag, "Cache-Control": KEPT}
        if etag in known:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=f"{media_type}; charset=utf-8")

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
        return Entry(shown[0].entry.id, int(place), shown[0].href, shown[0].state) if shown else None

    async def _read(self, holder: int, edition: int | None) -> tuple[Published, list[Line]] | None:
        async with self._rt.db.read() as session:
            about = await queries.published(session, holder, edition)
            if about is None:
                return None
            rows = await queries.entries_of(session, about.seen.found.id)
            blocked = await self._rt.part(BlockedDomains).as_of(session, about.seen.epoch)
        return about, lines(rows, blocked, self._rt.clock.now())


def _entry(line: Line, href: str) -> dict[str, Any]:
    return {
        "position": line.entry.position,
        "title": line.entry.title or NO_TITLE,
        "description": line.entry.description,
        "url": line.url,
        "href": href,
        "state": line.state,
    }
