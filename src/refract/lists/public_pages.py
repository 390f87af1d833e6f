"""Published lists: page, feeds, share image and entries, with three queries at most."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from refract.core.runtime import Runtime
from refract.core.threads import WorkThreadPool
from refract.domains.hosts import build_domain_url
from refract.limits.shared_limits import RenderLimit
from refract.links.safety.blocked_domains import BlockedDomainCache
from refract.lists import card, queries
from refract.lists.appearance import build_monogram, choose_ray
from refract.lists.feeds import FEEDS, get_title, join_addresses
from refract.lists.models import LinkList
from refract.lists.presentation import (
    EntryState,
    ListDetails,
    ResolvedEntry,
    build_list_url,
    build_public_list,
    get_palette,
    group_by_section,
    resolve_entries,
)
from refract.lists.queries import PublishedEdition
from refract.teams.queries import find_role
from refract.web.i18n import gettext
from refract.web.render_cache import RenderCache

CACHE_CONTROL = "public, max-age=60"
_NO_INDEX = {"X-Robots-Tag": "noindex"}


def robots_headers(found: LinkList) -> dict[str, str]:
    """Return headers that keep a list without an owner out of search engines."""
    return _NO_INDEX if found.is_anonymous else {}


@dataclass(frozen=True, slots=True)
class PublicListPage:
    """Content and headers of a public list page."""

    list_id: int
    slug: str
    title: str
    context: dict[str, Any]
    headers: dict[str, str]
    owner_id: int | None
    team_id: int | None


@dataclass(frozen=True, slots=True)
class EntryTarget:
    """The destination and state of an entry."""

    id: int
    position: int
    href: str
    state: EntryState
    flag_reason: str | None = None


class PublicLists:
    """Published lists, by the id that holds the name."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._base = rt.settings.public_url

    async def get_page(self, holder: int, edition: int | None) -> PublicListPage | None:
        found = await self._load_edition(holder, edition)
        if found is None:
            return None
        return await self._rt.singleton(WorkThreadPool).run(self._build_page, *found)

    def _build_page(
        self, published: PublishedEdition, shown: Sequence[ResolvedEntry]
    ) -> PublicListPage:
        link_list = published.details.link_list
        query = (
            "" if link_list.edition == published.latest_edition else f"?edition={link_list.edition}"
        )
        public = build_public_list(published.details, published.latest_edition, shown, self._base)
        base = build_domain_url(self._base, link_list.domain)
        context = {
            "list": public,
            "heading": get_title(public),
            "author_bio": published.details.author_bio,
            "size": len(shown),
            "groups": _build_groups(link_list, shown, query),
            "address": build_list_url(link_list, published.latest_edition, self._base),
            "feeds": {kind: f"/{link_list.slug}.{kind}{query}" for kind in FEEDS},
            "qr_url": f"/{link_list.slug}.qr",
            "card_url": f"{base}/{link_list.slug}.png{query}",
            "all_addresses": join_addresses(public.entries),
            "older": published.previous_edition,
            "newer": published.next_edition,
            "indexed": not link_list.is_anonymous,
        }
        return PublicListPage(
            link_list.id,
            link_list.slug or "",
            get_title(public),
            context,
            robots_headers(link_list),
            link_list.owner_id,
            link_list.team_id,
        )

    async def may_manage(self, page: PublicListPage, user_id: int, *, is_admin: bool) -> bool:
        """Return whether a user can open the page of the list in the app."""
        if is_admin or user_id == page.owner_id:
            return True
        if page.team_id is None:
            return False
        async with self._rt.db.read() as session:
            return await find_role(session, page.team_id, user_id) is not None

    async def get_feed(
        self, holder: int, kind: str, edition: int | None, known: str, network: str
    ) -> Response | None:
        """Return a feed, or 304 if `known` contains its ETag."""
        await self._rt.singleton(RenderLimit).charge(network)
        found = await self._load_edition(holder, edition)
        return (
            await self._rt.singleton(WorkThreadPool).run(self._build_feed, kind, known, *found)
            if found is not None
            else None
        )

    def _build_feed(
        self, kind: str, known: str, published: PublishedEdition, shown: Sequence[ResolvedEntry]
    ) -> Response:
        write, media_type = FEEDS[kind]
        body = write(
            build_public_list(published.details, published.latest_edition, shown, self._base),
            build_domain_url(self._base, published.details.link_list.domain),
        ).encode()
        etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        headers = {
            "ETag": etag,
            "Cache-Control": CACHE_CONTROL,
            **robots_headers(published.details.link_list),
        }
        if etag in known:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=f"{media_type}; charset=utf-8")

    async def get_card(self, holder: int, edition: int | None, network: str) -> Response | None:
        """Return the share image. Other sites may embed it."""
        async with self._rt.db.read() as session:
            published = await queries.find_published_edition(session, holder, edition)
            count = (
                await queries.count_entries(session, published.details.link_list.id)
                if published
                else 0
            )
        if published is None:
            return None
        found = published.details.link_list
        base = build_domain_url(self._base, found.domain)
        address = f"{base.split('://', 1)[-1]}/{found.slug}"
        facts = f"{count} {'link' if count == 1 else 'links'}"
        given = {"address": address, "facts": facts, "palette": get_palette(found)}
        picture = await self._rt.singleton(RenderCache).render(
            card.DRAW_CARD, found.title or "", network, **given
        )
        headers = {
            "Cache-Control": CACHE_CONTROL,
            "Cross-Origin-Resource-Policy": "cross-origin",
            **robots_headers(found),
        }
        return Response(picture, headers=headers, media_type="image/png")

    async def get_entry(self, holder: int, place: str, edition: int | None) -> EntryTarget | None:
        """Return the entry at a position, written in decimal without leading zeros."""
        if not (place.isascii() and place.isdigit() and len(place) < 6 and place[0] != "0"):
            return None
        async with self._rt.db.read() as session:
            published = await queries.find_published_edition(session, holder, edition)
            if published is None:
                return None
            rows = await queries.list_entries(
                session, published.details.link_list.id, position=int(place)
            )
            blocked = await self._rt.singleton(BlockedDomainCache).load_at(
                session, published.details.epoch
            )
        shown = resolve_entries(rows, blocked, self._rt.clock.now())
        return (
            EntryTarget(
                shown[0].entry.id, int(place), shown[0].href, shown[0].state, shown[0].flag_reason
            )
            if shown
            else None
        )

    async def _load_edition(
        self, holder: int, edition: int | None
    ) -> tuple[PublishedEdition, list[ResolvedEntry]] | None:
        async with self._rt.db.read() as session:
            published = await queries.find_published_edition(session, holder, edition)
            if published is None:
                return None
            rows = await queries.list_entries(session, published.details.link_list.id)
            blocked = await self._rt.singleton(BlockedDomainCache).load_at(
                session, published.details.epoch
            )
        return published, await self._rt.singleton(WorkThreadPool).run(
            resolve_entries, rows, blocked, self._rt.clock.now()
        )


def build_preview(
    seen: ListDetails, shown: Sequence[ResolvedEntry], base_url: str
) -> dict[str, Any]:
    """Return the context of a draft's preview. Its links go to the destinations, uncounted."""
    found = seen.link_list
    public = build_public_list(seen, found.edition or 1, shown, base_url)
    return {
        "list": public,
        "heading": get_title(public) or gettext("Untitled list"),
        "author_bio": seen.author_bio,
        "size": len(shown),
        "groups": _build_groups(found, shown),
        "address": f"{build_domain_url(base_url, found.domain)}/{public.slug}",
        "all_addresses": join_addresses(public.entries),
        "older": None,
        "newer": None,
        "draft": str(found.id),
    }


def _build_groups(
    found: LinkList, shown: Sequence[ResolvedEntry], query: str | None = None
) -> list[dict[str, Any]]:
    """Return the sections with their entries.

    With `query`, that of the edition, links are counted; without, they go to the destinations.
    """
    return [
        {
            "title": section.title if section else None,
            "entries": [
                _build_entry_context(
                    line,
                    line.href if query is None else f"/{found.slug}/{line.entry.position}{query}",
                )
                for line in lines
            ],
        }
        for section, lines in group_by_section(found, shown)
    ]


def _build_entry_context(line: ResolvedEntry, href: str) -> dict[str, Any]:
    host = (urlsplit(line.href).hostname or "").removeprefix("www.")
    return {
        "monogram": build_monogram(line.entry.title, host),
        "ray": choose_ray(host),
        "position": line.entry.position,
        "title": line.entry.title,
        "description": line.entry.description,
        "url": line.url,
        "href": href,
        "state": line.state,
    }
