"""Lists prepared for output: the current destination and state of each entry. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from refract.core.lookalikes import to_ascii_url
from refract.core.urls import BadUrl, normalize_url, parse_web_url
from refract.domains.hosts import build_domain_url, get_default_host
from refract.links.enums import FlagReason, LinkState, Visibility
from refract.links.models import Link
from refract.lists.appearance import (
    COVER_NAMES,
    DEFAULT_COVER,
    DEFAULT_LAYOUT,
    DEFAULT_PALETTE,
    LAYOUT_NAMES,
    PALETTE_NAMES,
    Cover,
    Layout,
    Palette,
)
from refract.lists.models import FetchStatus, LinkList, ListAction, ListEntry, ListEvent, ListStatus
from refract.lists.schemas import (
    EntryOut,
    ListActionOut,
    ListActions,
    ListOut,
    ListSummary,
    ListTeam,
    PublicEntry,
    PublicList,
    SectionOut,
)
from refract.lists.sections import ListSection, load_sections

EntryState = Literal["live", "blocked", "gone"]


class HostMatcher(Protocol):
    """Lookup of blocked domains."""

    def match(self, host: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class ListDetails:
    """A list and its views. `epoch` is that of the blocked domains, to detect a stale cache."""

    link_list: LinkList
    views: int = 0
    epoch: int = 0
    author: str | None = None
    """The public name of the owner, if the list shows it."""
    author_bio: str | None = None
    """What the owner wrote about themselves, if the list shows their name."""


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A stored entry, with the link it follows."""

    entry: ListEntry
    link: Link | None = None
    clicks: int = 0


@dataclass(frozen=True, slots=True)
class ResolvedEntry:
    """An entry with its current destination and state."""

    entry: ListEntry
    url: str
    href: str
    normalized_url: str
    state: EntryState
    duplicate: bool
    clicks: int
    flag_reason: str | None = None

    def to_schema(self) -> EntryOut:
        entry = self.entry
        return EntryOut(
            id=entry.id,
            url=self.url,
            normalized_url=self.normalized_url,
            title=entry.title,
            description=entry.description,
            image=entry.image,
            fetch_status=FetchStatus(entry.fetch_status),
            position=entry.position,
            duplicate=self.duplicate,
            link_id=entry.link_id,
            state=self.state,
            clicks=self.clicks,
        )


def resolve_entries(
    rows: Iterable[EntryRow],
    blocked: HostMatcher,
    now: datetime,
    known: set[str] | None = None,
) -> list[ResolvedEntry]:
    """Return the entries in order, with the URL of the link that an entry follows.

    `known` holds the URLs of earlier entries of the list, for marking duplicates. It is updated, so
    that a long list can be resolved in batches.
    """
    shown: list[ResolvedEntry] = []
    known = set() if known is None else known
    for row in rows:
        line = _resolve_entry(row, blocked, now, known)
        known.add(line.normalized_url)
        shown.append(line)
    return shown


def _resolve_entry(
    row: EntryRow, blocked: HostMatcher, now: datetime, known: set[str]
) -> ResolvedEntry:
    entry, link = row.entry, row.link
    url, href, normalized, host = (
        to_ascii_url(entry.url),
        entry.href,
        entry.normalized_url,
        entry.host,
    )
    flagged, flag_reason = entry.flagged, entry.flag_reason
    state: EntryState = "live"
    if entry.link_id is not None:
        if link is None or not can_follow(link, now):
            state = "gone"
        elif link.href != href:
            url, href, host = to_ascii_url(link.destination), link.href, link.destination_host
            normalized = normalise_href(href)
        if link is not None:
            flagged, flag_reason = (
                flagged or link.flagged,
                link.flag_reason if link.flagged else flag_reason,
            )
    if entry.dangerous or blocked.match(host) is not None:
        state = "blocked"
    reason = (flag_reason or FlagReason.UNCHECKED) if flagged else None
    return ResolvedEntry(
        entry, url, href, normalized, state, normalized in known, row.clicks, reason
    )


def can_follow(link: Link, now: datetime) -> bool:
    """Return whether an entry may follow this link: only if anyone can open the link itself."""
    return (
        link.state_at(now) == LinkState.ACTIVE
        and not link.is_scheduled_at(now)
        and link.visibility != Visibility.SECURE
        and link.click_limit is None  # counted by the link itself, which the entry would bypass
        and not link.has_placeholders
    )


def normalise_href(href: str) -> str:
    try:
        return normalize_url(parse_web_url(href, limit=len(href)))
    except BadUrl:
        return href  # valid by the rules of the day when it was accepted


def build_summary(found: LinkList, entry_count: int, views: int, base_url: str) -> ListSummary:
    return ListSummary(**_build_fields(found, views, base_url), entry_count=entry_count)


def build_list(seen: ListDetails, entries: list[EntryOut], base_url: str) -> ListOut:
    return ListOut(
        **_build_fields(seen.link_list, seen.views, base_url),
        entry_count=len(entries),
        sections=[SectionOut.model_validate(section) for section in load_sections(seen.link_list)],
        entries=entries,
    )


def _build_fields(found: LinkList, views: int, base_url: str) -> dict[str, Any]:
    return {
        "id": found.id,
        "title": found.title,
        "description": found.description,
        "palette": get_palette(found),
        "layout": get_layout(found),
        "cover": get_cover(found),
        "shows_author": found.shows_author,
        "slug": found.slug,
        "domain": found.domain or get_default_host(base_url),
        "team": build_team(found),
        "version": found.version,
        "status": ListStatus(found.status),
        "on_hold": found.on_hold,
        "replaces": (
            f"{build_domain_url(base_url, found.domain)}/{found.slug}"
            if found.status == ListStatus.DRAFT and found.family_id != found.id
            else None
        ),
        "edition": found.edition,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        "published_at": found.published_at,
        "url": (
            f"{build_domain_url(base_url, found.domain)}/{found.slug}"
            if found.status == ListStatus.PUBLISHED
            else None
        ),
        "views": views,
    }


def build_team(found: LinkList) -> ListTeam | None:
    """Return the team that owns a list, if one does."""
    if found.team_id is None:
        return None
    slug, name = found.team_slug or "", found.team_name or ""
    return ListTeam(team_id=found.team_id, slug=slug, name=name)


def build_public_list(
    seen: ListDetails, latest: int, shown: Sequence[ResolvedEntry], base_url: str
) -> PublicList:
    """Return the public view: without unavailable entries, positions unchanged."""
    found = seen.link_list
    entries = [
        PublicEntry(
            position=line.entry.position,
            section=section.title if section else None,
            url=line.url,
            title=line.entry.title,
            description=line.entry.description,
            image=line.entry.image,
        )
        for section, lines in group_by_section(found, shown)
        for line in lines
        if line.state == "live"
    ]
    return PublicList(
        slug=found.slug or "",
        title=found.title,
        description=found.description,
        palette=get_palette(found),
        layout=get_layout(found),
        cover=get_cover(found),
        author=seen.author,
        edition=found.edition or 1,
        latest_edition=latest,
        published_at=found.published_at or found.updated_at,
        url=build_list_url(found, latest, base_url),
        entries=entries,
    )


def get_palette(found: LinkList) -> Palette:
    """Return the list's palette, or the default if it is no longer offered."""
    return next((name for name in PALETTE_NAMES if name == found.palette), DEFAULT_PALETTE)


def get_layout(found: LinkList) -> Layout:
    return next((name for name in LAYOUT_NAMES if name == found.layout), DEFAULT_LAYOUT)


def get_cover(found: LinkList) -> Cover:
    return next((name for name in COVER_NAMES if name == found.cover), DEFAULT_COVER)


def group_by_section(
    found: LinkList, shown: Iterable[ResolvedEntry]
) -> list[tuple[ListSection | None, list[ResolvedEntry]]]:
    """Return the entries below each heading, first those without one. Empty groups are left out."""
    waiting = load_sections(found)
    groups: list[tuple[ListSection | None, list[ResolvedEntry]]] = [(None, [])]
    for line in shown:
        while waiting and waiting[0].position <= line.entry.position:
            groups.append((waiting.pop(0), []))
        groups[-1][1].append(line)
    return [(section, lines) for section, lines in groups if lines]


def build_list_url(found: LinkList, latest: int, base_url: str) -> str:
    """Return the URL of an edition. The latest has the bare name."""
    bare = f"{build_domain_url(base_url, found.domain)}/{found.slug}"
    return bare if found.edition == latest else f"{bare}?edition={found.edition}"


def build_actions(found: Iterable[tuple[ListAction, int | None]]) -> ListActions:
    """Return the log of a list with the numbers of its editions."""
    return ListActions(
        items=[
            ListActionOut(
                list_id=action.list_id,
                edition=edition,
                event=ListEvent(action.event),
                slug=action.slug,
                created_at=action.created_at,
            )
            for action, edition in found
        ]
    )
