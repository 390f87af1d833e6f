"""Links with everything that is shown about them, in a fixed number of queries."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast
from urllib.parse import urlsplit

from sqlalchemy import BindParameter, Select, bindparam, null, select, union_all

from refract.core.db.bulk import iter_batches
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.identity.models import User, get_public_name
from refract.links.access import is_direct_owner
from refract.links.enums import FlagReason
from refract.links.limits.queries import load_taken_clicks
from refract.links.models import Link, LinkOwner, LinkTag, LinkTeam, LinkTotals
from refract.links.preview_cards import parse_card
from refract.links.qr_styles import parse_style
from refract.links.schemas import (
    LinkAddress,
    LinkOut,
    LinkOwnerOut,
    LinkTeamOut,
    PreviewCardOut,
    QrStyleOut,
    RedirectStatus,
)
from refract.names.enums import NameTarget
from refract.names.grammar import build_short_url, is_kept, join_name, split_name
from refract.names.queries import list_names
from refract.tags.models import Tag
from refract.teams.models import Team


@dataclass(frozen=True, slots=True)
class LinkClickTotals:
    """Clicks of a link."""

    people: int = 0
    bots: int = 0
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OwnerDetails:
    """An owner, as shown on a link's page."""

    user_id: int
    name: str
    email: str
    primary: bool
    added_at: datetime

    def to_schema(self, *, managing: bool) -> LinkOwnerOut:
        email = self.email if managing else None
        return LinkOwnerOut(
            user_id=self.user_id,
            name=self.name,
            email=email,
            primary=self.primary,
            added_at=self.added_at,
        )


@dataclass(frozen=True, slots=True)
class OwnerTeam:
    """A team that owns a link, as shown on its page."""

    team_id: int
    slug: str
    name: str
    primary: bool
    added_at: datetime
    added_by: int | None

    def to_schema(self) -> LinkTeamOut:
        return LinkTeamOut(
            team_id=self.team_id,
            slug=self.slug,
            name=self.name,
            primary=self.primary,
            added_at=self.added_at,
        )


def select_own_names(link: Link, names: Iterable[str]) -> list[str]:
    """Return the bare ones of these names that are on the domain of a link, no kept codes."""
    split = (split_name(text) for text in names if not is_kept(text))
    return [name for host, name in split if host == (link.domain or "")]


def choose_text(link: Link, names: Iterable[str]) -> str:
    """Return the first of these names on the domain of a link, or else its code, as a text."""
    own = (text for text in names if split_name(text)[0] == (link.domain or ""))
    return next(own, join_name(link.domain, link.code))


@dataclass(frozen=True, slots=True)
class LinkCard:
    """A link with its names, tags, owners and totals."""

    link: Link
    names: Sequence[str]
    tags: Sequence[str]
    owners: Sequence[OwnerDetails]
    totals: LinkClickTotals = field(default_factory=LinkClickTotals)
    tag_ids: Sequence[int] = ()
    """The ids of the tags, in the same order."""
    teams: Sequence[OwnerTeam] = ()
    taken: int = 0
    """Redirects taken from the link's limit."""

    @property
    def clicks_left(self) -> int | None:
        """Return how many times it redirects until its limit, or None without one."""
        limit = self.link.click_limit
        return None if limit is None else max(0, limit - self.taken)

    @property
    def own_names(self) -> list[str]:
        """Return the bare names on the domain of the link."""
        return select_own_names(self.link, self.names)

    @property
    def kept_codes(self) -> list[str]:
        """Return the codes that an import has kept, on the domain of the link."""
        kept = (split_name(text) for text in self.names if is_kept(text))
        return [code for host, code in kept if host == (self.link.domain or "")]

    @property
    def name(self) -> str:
        """Return its first name or kept code on its domain, or else the code."""
        return split_name(self.text)[1]

    @property
    def text(self) -> str:
        """Return the same as a text, on another domain with its host (`join_name`)."""
        return choose_text(self.link, self.names)

    def list_addresses(self, base_url: str) -> list[LinkAddress]:
        """Return every short URL of the link, first those on its domain."""
        host = self.link.domain or ""
        own = [text for text in self.names if split_name(text)[0] == host] or [self.text]
        default = urlsplit(base_url).hostname or ""
        return [
            LinkAddress(
                domain=split_name(text)[0] or default,
                name=split_name(text)[1],
                url=build_short_url(base_url, text),
                exact=is_kept(text),
            )
            for text in dict.fromkeys((*own, *self.names))
        ]

    def to_schema(
        self, base_url: str, now: datetime, *, stats: bool = True, managing: bool = True
    ) -> LinkOut:
        """Return the link: clicks only with `stats`, owners' emails only with `managing`."""
        link, totals = self.link, self.totals
        addresses = self.list_addresses(base_url)
        return LinkOut(
            id=link.id,
            code=link.code,
            domain=addresses[0].domain,
            short_url=addresses[0].url,
            names=self.own_names,
            addresses=addresses,
            destination=link.destination,
            title=link.title,
            notes=link.notes,
            tags=list(self.tags),
            redirect_status=cast("RedirectStatus", link.redirect_status),
            visibility=link.effective_visibility,
            status=link.state_at(now),
            expires_at=link.expires_at,
            expired_destination=link.expired_destination,
            starts_at=link.starts_at,
            before_destination=link.before_destination,
            preview_card=_build_preview_card(link),
            click_limit=link.click_limit,
            clicks_left=self.clicks_left,
            limit_destination=link.limit_destination,
            qr_style=_build_qr_style(link),
            created_at=link.created_at,
            updated_at=link.updated_at,
            total_clicks=totals.people if stats else None,
            bot_clicks=totals.bots if stats else None,
            last_clicked_at=totals.last_at if stats else None,
            flagged=link.flagged,
            flag_reason=_get_flag_reason(link),
            forward_query=link.forward_query,
            noindex=bool(link.noindex),
            version=link.version,
            owners=[owner.to_schema(managing=managing) for owner in self.owners],
            teams=[team.to_schema() for team in self.teams],
        )


def _get_flag_reason(link: Link) -> FlagReason | None:
    return FlagReason(link.flag_reason or FlagReason.UNCHECKED) if link.flagged else None


def _build_preview_card(link: Link) -> PreviewCardOut | None:
    card = parse_card(link.preview_card)
    return PreviewCardOut.model_validate(card) if card is not None else None


def _build_qr_style(link: Link) -> QrStyleOut | None:
    style = parse_style(link.qr_style)
    return QrStyleOut.model_validate(style) if style is not None else None


async def load_card(session: ReadSession, link: Link) -> LinkCard:
    return (await load_cards(session, [link]))[0]


async def load_cards(session: ReadSession, links: Sequence[Link]) -> list[LinkCard]:
    """Return links in the given order with names, tags, owners and totals, in four queries.

    A fifth finds out what is left of click limits, if there are any.
    """
    ids = [link.id for link in links]
    names = await list_names(session, NameTarget.LINK, ids)
    tags = await load_tag_names(session, ids)
    owners = await _load_owners(session, ids)
    totals = await _load_totals(session, ids)
    limited = [link.id for link in links if link.click_limit is not None]
    taken = await load_taken_clicks(session, limited)
    return [
        LinkCard(
            link,
            names[link.id],
            list(tags[link.id].values()),
            owners[link.id][0],
            totals.get(link.id, LinkClickTotals()),
            list(tags[link.id]),
            owners[link.id][1],
            taken.get(link.id, 0),
        )
        for link in links
    ]


async def load_tag_names(
    session: ReadSession, link_ids: Collection[int]
) -> dict[int, dict[int, str]]:
    """Return the tags of each link by id, sorted by name."""
    found: dict[int, dict[int, str]] = {link_id: {} for link_id in link_ids}
    for batch in iter_batches(sorted(link_ids)):
        for link_id, tag_id, name in await session.fetch(_TAGS, link_ids=batch):
            found[link_id][tag_id] = name
    return found


_LINK_IDS: BindParameter[Any] = bindparam("link_ids", expanding=True)
_TAGS = PreparedSelect(
    lambda: (
        select(LinkTag.link_id, Tag.id, Tag.name)
        .join(Tag, Tag.id == LinkTag.tag_id)
        .where(LinkTag.link_id.in_(_LINK_IDS))
        .order_by(Tag.key)
    )
)


async def _load_owners(
    session: ReadSession, link_ids: Collection[int]
) -> dict[int, tuple[list[OwnerDetails], list[OwnerTeam]]]:
    """Return the owners and teams of each link, the primary one first, then by time."""
    found: dict[int, tuple[list[OwnerDetails], list[OwnerTeam]]] = {
        link_id: ([], []) for link_id in link_ids
    }
    for batch in iter_batches(sorted(link_ids)):
        rows = await session.fetch(_OWNERS, link_ids=batch)
        for link_id, primary, added_at, added_by, number, *names, email, slug in rows:
            owners, teams = found[link_id]
            if slug is None:
                name = get_public_name(*names)
                owners.append(OwnerDetails(number, name, email, primary is not None, added_at))
            else:
                is_primary = primary is not None
                teams.append(OwnerTeam(number, slug, names[1], is_primary, added_at, added_by))
    for owners, teams in found.values():
        owners.sort(key=lambda owner: (not owner.primary, owner.added_at, owner.user_id))
        teams.sort(key=lambda team: (not team.primary, team.added_at, team.team_id))
    return found


def _select_owners() -> Select[*tuple[Any, ...]]:
    """Select owners and teams of links in one query. Only rows of teams have a `slug`."""
    people = (
        select(
            LinkOwner.link_id,
            LinkOwner.primary_link_id,
            LinkOwner.created_at,
            LinkOwner.added_by,
            User.id.label("number"),
            User.nickname,
            User.display_name,
            User.email,
            null().label("slug"),
        )
        .join(User, User.id == LinkOwner.user_id)
        .where(LinkOwner.link_id.in_(_LINK_IDS), is_direct_owner())
    )
    teams = (
        select(
            LinkTeam.link_id,
            LinkTeam.primary_link_id,
            LinkTeam.created_at,
            LinkTeam.added_by,
            Team.id,
            null(),
            Team.name,
            null(),
            Team.slug,
        )
        .join(Team, Team.id == LinkTeam.team_id)
        .where(LinkTeam.link_id.in_(_LINK_IDS))
    )
    return select(*union_all(people, teams).subquery("owners").c)


_OWNERS = PreparedSelect(_select_owners)


async def _load_totals(
    session: ReadSession, link_ids: Collection[int]
) -> dict[int, LinkClickTotals]:
    found: dict[int, LinkClickTotals] = {}
    for batch in iter_batches(sorted(link_ids)):
        for link_id, *totals in await session.fetch(_TOTALS, link_ids=batch):
            found[link_id] = LinkClickTotals(*totals)
    return found


_TOTALS = PreparedSelect(
    lambda: select(
        LinkTotals.link_id,
        LinkTotals.total_clicks,
        LinkTotals.bot_clicks,
        LinkTotals.last_clicked_at,
    ).where(LinkTotals.link_id.in_(_LINK_IDS))
)
