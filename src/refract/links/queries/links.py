"""Finding a link, and what belongs to it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Literal

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    and_,
    bindparam,
    column,
    func,
    not_,
    or_,
    select,
    table,
)

from refract.core.db.bulk import iter_batches
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.domains.queries import list_domains
from refract.identity.access import AccessRight
from refract.identity.models import User
from refract.links import history
from refract.links.access import (
    LinkAccess,
    LinkCaller,
    is_direct_owner,
    is_owned_by,
    is_shared_with,
    is_visible_to,
    load_link_with_access,
)
from refract.links.enums import LinkState
from refract.links.errors import LinkNotFound, VersionNotFound
from refract.links.models import Link, LinkChange, LinkOwner, LinkShare, LinkTag, LinkTeam
from refract.links.queries.cards import LinkCard, load_tag_names
from refract.names.enums import NameTarget
from refract.names.grammar import (
    format_name,
    is_possible_name,
    iter_candidates,
    join_name,
    list_kept_candidates,
    name_key,
)
from refract.names.models import Name
from refract.names.queries import (
    SimilarName,
    find_names,
    find_names_with_prefix,
    find_similar_names,
    list_names,
)
from refract.tags.models import SHARED_SPACE, Tag

MAX_SUGGESTIONS = 3
MAX_VERSION = 2**31 - 1
_MAX_CANDIDATES = 200
_LISTS = table("lists", column("id", BigInteger), column("owner_id", BigInteger))
"""The table of lists, which belongs to a feature above. Only their owners matter here."""


def is_in_state(state: LinkState, now: datetime) -> ColumnElement[bool]:
    """Return the condition for a state at a moment, even if the expiry job is late."""
    # Not as a list of the states that it may have: SQLite would sort all links of these.
    alive = Link.status.not_in((LinkState.DISABLED, LinkState.DELETED))
    if state == LinkState.DELETED:
        return Link.status == state
    if state == LinkState.ON_HOLD:
        return and_(Link.status != LinkState.DELETED, Link.on_hold)
    if state == LinkState.ACTIVE:
        return and_(
            alive, or_(Link.expires_at.is_(None), Link.expires_at > now), not_(Link.on_hold)
        )
    if state == LinkState.EXPIRED:
        return and_(alive, Link.expires_at <= now, not_(Link.on_hold))
    return and_(Link.status == state, not_(Link.on_hold))


async def find_link(session: ReadSession, link_id: int) -> Link | None:
    return await session.get(Link, link_id)


async def has_visible_link(session: ReadSession, caller: LinkCaller) -> bool:
    """Return whether there is a link that the caller may see."""
    return await session.scalar(select(Link.id).where(is_visible_to(caller)).limit(1)) is not None


async def view_link(
    session: ReadSession, caller: LinkCaller, link_id: int, right: AccessRight = AccessRight.VIEW
) -> tuple[Link, LinkAccess]:
    """Return a link that the caller may see, and their access. Raises `LinkNotFound` otherwise."""
    found = await load_link_with_access(session, caller, link_id)
    if found is None:
        raise LinkNotFound
    link, access = found
    access.require(right)
    return link, access


@dataclass(frozen=True, slots=True)
class NameResolution:
    """The target of a path segment. `link` is None if the target is a list."""

    kind: NameTarget
    target_id: int
    link: Link | None
    how: Literal["name", "code", "forgiven"]
    has_guessable_code: bool = False
    """Whether it was found by the code of its id, which is near the codes of other links."""


async def resolve_name(
    session: ReadSession, segment: str, host: str | None = None
) -> NameResolution | None:
    """Return what a path segment leads to on a domain, in the order of `iter_candidates`.

    Two queries.
    """
    candidates = list(iter_candidates(segment, host or ""))
    kept = list_kept_candidates(host or "", segment)
    names = await find_names(session, {*kept, *(candidate.key for candidate in candidates)})
    wanted = {name.target_id for name in names.values() if name.kind == NameTarget.LINK}
    wanted |= {candidate.link_id for candidate in candidates if candidate.link_id is not None}
    links = await _load_links(session, wanted)
    for text in kept:
        name = names.get(text)
        if name is not None and name.target_id in links:
            return NameResolution(NameTarget.LINK, name.target_id, links[name.target_id], "name")
    for candidate in candidates:
        name = names.get(candidate.key)
        if name is not None and (name.kind == NameTarget.LIST or name.target_id in links):
            how: Literal["name", "code"] = "code" if name.generated else "name"
            return NameResolution(
                NameTarget(name.kind),
                name.target_id,
                links.get(name.target_id),
                "forgiven" if candidate.is_trimmed else how,
            )
        link = links.get(candidate.link_id) if candidate.link_id is not None else None
        if link is not None and link.random_code is None and link.domain == (host or None):
            return NameResolution(
                NameTarget.LINK,
                link.id,
                link,
                "forgiven" if candidate.is_trimmed else "code",
                has_guessable_code=True,
            )
    return None


async def _load_links(session: ReadSession, ids: Collection[int]) -> dict[int, Link]:
    if not ids:
        return {}
    found = await session.scalars(select(Link).where(Link.id.in_(sorted(ids))))
    return {link.id: link for link in found}


async def is_owned_or_shared(session: ReadSession, link_id: int, user_id: int) -> bool:
    """Return whether a user owns a link, or it is shared with them."""
    mine = select(Link.id).where(
        Link.id == link_id, or_(is_owned_by(user_id), is_shared_with(user_id))
    )
    return await session.scalar(mine) is not None


async def suggest_similar_names(
    session: ReadSession, typed: str, caller: LinkCaller | None, now: datetime
) -> list[str]:
    """Return up to three similar names of live links the caller may see, and of published lists."""
    near = (await find_similar_names(session, typed))[:_MAX_CANDIDATES]
    available = await _find_available(session, near, caller, now)
    return [name.name for name in near if name.target_id in available][:MAX_SUGGESTIONS]


async def suggest_other_domains(
    session: ReadSession, name: str, caller: LinkCaller | None, now: datetime
) -> list[str]:
    """Return the same name on up to three domains, as `suggest_similar_names`: `sho.rt/x1`."""
    hosts = [None, *(domain.host for domain in await list_domains(session))]
    found = await find_names(session, [name_key(join_name(host, name)) for host in hosts])
    near = sorted(found.values(), key=attrgetter("key"))[:_MAX_CANDIDATES]
    available = await _find_available(session, near, caller, now)
    texts = [same.name for same in near if same.target_id in available]
    return [format_name(text).removeprefix("/") for text in texts][:MAX_SUGGESTIONS]


async def _find_available(
    session: ReadSession,
    names: Sequence[Name | SimilarName],
    caller: LinkCaller | None,
    now: datetime,
) -> set[int]:
    """Return the ids of live links that the caller may see, and of published lists."""
    ids = [name.target_id for name in names if name.kind == NameTarget.LINK]
    offered = select(Link.id).where(
        Link.id.in_(ids), is_in_state(LinkState.ACTIVE, now), is_visible_to(caller)
    )
    available = set(await session.scalars(offered)) if ids else set()
    return available | await _find_available_lists(
        session, [name.target_id for name in names if name.kind == NameTarget.LIST]
    )


async def suggest_names(
    session: ReadSession, typed: str, caller: LinkCaller | None, now: datetime, limit: int
) -> list[tuple[str, Link | None]]:
    """Return names with a prefix, of live links the caller may see, and of published lists.

    Three queries.
    """
    if not is_possible_name(typed):
        return []
    near = await find_names_with_prefix(session, typed, _MAX_CANDIDATES)
    ids = sorted({name.target_id for name in near if name.kind == NameTarget.LINK})
    offered = select(Link).where(
        Link.id.in_(ids), is_in_state(LinkState.ACTIVE, now), is_visible_to(caller)
    )
    visible = {link.id: link for link in await session.scalars(offered)} if ids else {}
    lists = await _find_available_lists(
        session, [name.target_id for name in near if name.kind == NameTarget.LIST]
    )
    return [
        (name.name, visible.get(name.target_id))
        for name in near
        if name.target_id in visible or name.target_id in lists
    ][:limit]


async def _find_available_lists(session: ReadSession, ids: Collection[int]) -> set[int]:
    """Return the lists that are not on hold."""
    on_hold = select(_LISTS.c.id).join(User, User.id == _LISTS.c.owner_id)
    on_hold = on_hold.where(_LISTS.c.id.in_(sorted(ids)), User.held_at.is_not(None))
    return set(ids) - set(await session.scalars(on_hold)) if ids else set()


async def find_live_links(
    session: ReadSession, user_id: int, digests: Collection[str], now: datetime
) -> list[Link]:
    """Return a user's live links to destinations with these digests, oldest first."""
    found: list[Link] = []
    for batch in iter_batches(sorted(digests)):
        query = select(Link).where(
            Link.href_digest.in_(batch), is_in_state(LinkState.ACTIVE, now), is_owned_by(user_id)
        )
        found += await session.scalars(query)
    return sorted(found, key=lambda link: link.id)


async def list_owners(session: ReadSession, link_id: int) -> list[tuple[LinkOwner, User]]:
    """Return the owners with their accounts, the primary one first, then by time."""
    query = (
        select(LinkOwner, User)
        .join(User, User.id == LinkOwner.user_id)
        .where(LinkOwner.link_id == link_id, is_direct_owner())
    )
    found = [(owner, user) for owner, user in await session.execute(query)]
    return sorted(found, key=lambda row: (not row[0].is_primary, row[0].created_at, row[0].user_id))


async def list_shares(session: ReadSession, link_id: int) -> list[tuple[LinkShare, User]]:
    return [(share, user) for share, user in await session.fetch(_SHARES, link_id=link_id)]


_SHARES = PreparedSelect(
    lambda: (
        select(LinkShare, User)
        .join(User, User.id == LinkShare.user_id)
        .where(LinkShare.link_id == bindparam("link_id"))
        .order_by(LinkShare.created_at, LinkShare.user_id)
    )
)


async def list_versions(
    session: ReadSession,
    link_id: int,
    limit: int,
    before: int | None = None,
    *,
    card: LinkCard | None = None,
) -> list[LinkChange]:
    """Return the versions of a link, newest first.

    With the link's `card`, a version that is not written yet needs no further query.
    """
    values = {"link_id": link_id, "before": before or MAX_VERSION, "limit": limit}
    rows: list[LinkChange] = [row[0] for row in await session.fetch(_VERSIONS, **values)]
    if not rows and (before is None or before > 1):
        first = (
            _build_first_version(card)
            if card is not None
            else await _build_unwritten_version(session, link_id)
        )
        return [first] if first is not None else []
    return rows


_VERSIONS = PreparedSelect(
    lambda: (
        select(LinkChange)
        .where(LinkChange.link_id == bindparam("link_id"), LinkChange.version < bindparam("before"))
        .order_by(LinkChange.version.desc())
        .limit(bindparam("limit", type_=Integer))
    )
)


async def get_version(session: ReadSession, link_id: int, version: int) -> LinkChange:
    found = await session.get(LinkChange, (link_id, version))
    if found is None and version == 1:
        found = await _build_unwritten_version(session, link_id)
    if found is None:
        raise VersionNotFound(version=version)
    return found


async def is_owned_by_team(session: ReadSession, link_id: int) -> bool:
    """Return whether any team owns a link."""
    rows = select(LinkTeam.team_id).where(LinkTeam.link_id == link_id)
    return await session.scalar(rows.limit(1)) is not None


async def get_creator_id(session: ReadSession, link_id: int) -> int | None:
    """Return who created a link that has not changed since: its primary owner, or for a team."""
    user = select(LinkOwner.user_id).where(LinkOwner.primary_link_id == link_id)
    member = select(LinkTeam.added_by).where(LinkTeam.primary_link_id == link_id)
    query = select(func.coalesce(user.scalar_subquery(), member.scalar_subquery()))
    found: int | None = await session.scalar(query)
    return found


async def _build_unwritten_version(session: ReadSession, link_id: int) -> LinkChange | None:
    """Return the first version of a link that has no other."""
    link = await find_link(session, link_id)
    if link is None or link.version != 1:
        return None
    names = (await list_names(session, NameTarget.LINK, [link_id]))[link_id]
    tags = (await load_tag_names(session, [link_id]))[link_id]
    return history.build_first_version(link, names, tags, await get_creator_id(session, link_id))


def _build_first_version(card: LinkCard) -> LinkChange | None:
    if card.link.version != 1:
        return None
    tags = dict(zip(card.tag_ids, card.tags, strict=True))
    creators = [
        *(owner.user_id for owner in card.owners if owner.primary),
        *(team.added_by for team in card.teams if team.primary),
    ]
    creator_id = next(iter(creators), None)
    return history.build_first_version(card.link, card.names, tags, creator_id)


def is_visible_tag(caller: LinkCaller) -> ColumnElement[bool]:
    """Return the condition for shared tags of links that the caller may see.

    Other tags are hidden, because their names might reveal what the links are about.
    Administrators see all, unused ones too.
    """
    if caller.is_admin:
        return and_(Tag.space == SHARED_SPACE, Tag.deleted_at.is_(None))
    links = (
        select(LinkTag.tag_id)
        .join(Link, Link.id == LinkTag.link_id)
        .where(LinkTag.tag_id == Tag.id, Link.status != LinkState.DELETED, is_visible_to(caller))
    )
    # Not with EXISTS: MariaDB would read all links with tags to look at some.
    one = links.correlate(Tag).limit(1).scalar_subquery()
    return and_(Tag.space == SHARED_SPACE, Tag.deleted_at.is_(None), one.is_not(None))
