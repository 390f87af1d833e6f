"""Small sets of links that a filter leaves, so that no list reads all links of its owner.

A page of links is read along an index in the order in which it is shown. That is slow if a filter
leaves few of very many links. So filters that have an index of their own are evaluated first: if
one leaves few links, these are sorted instead.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import repeat
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    column,
    func,
    literal_column,
    select,
    table,
    union_all,
)

from refract.core.db.bulk import MAX_PARAMETERS
from refract.core.db.full_text import match_boolean
from refract.core.db.session import ReadSession
from refract.identity.models import User
from refract.links.enums import LinkState, Visibility
from refract.links.models import Link, LinkOwner, LinkShare, LinkTag, LinkTeam, LinkTotals

MAX_CANDIDATES = MAX_PARAMETERS
"""Links that are sorted for a page, at most."""
MIN_TRIGRAM_LENGTH = 3
_MAX_TRIGRAMS = 12
_TRIGRAM_TABLE = table("link_search_fts", column("rowid"))
_TRIGRAM_COLUMN: ColumnElement[str] = literal_column("links.search_fts")
"""The same on MariaDB, see revision 0050."""
_INDEXED_ON_MARIADB = re.compile(
    r"[0-9a-z\u00df-\u024f\u03ac-\u03ce\u0430-\u0481\u3041-\u3096\u30a1-\u30fa"
    r"\u4e00-\u9fa5\uac00-\ud7a3]+"
)
"""Characters that MariaDB takes for parts of a word in all versions."""


async def are_few(session: ReadSession, query: Select[int]) -> bool:
    """Return whether a query finds at most `MAX_CANDIDATES` links."""
    found = query.limit(MAX_CANDIDATES + 1).subquery()
    number = await session.scalar(select(func.count()).select_from(found)) or 0
    return number <= MAX_CANDIDATES


async def find_few_links(session: ReadSession, query: Select[int]) -> list[int] | None:
    """Return the ids that a query finds, or None if they are more than `MAX_CANDIDATES`."""
    ids = list(await session.scalars(query.limit(MAX_CANDIDATES + 1)))
    return ids if len(ids) <= MAX_CANDIDATES else None


def select_ids(ids: Sequence[int]) -> Select[int]:
    """Select links by id. Ids are repeated up to a power of two: databases prepare few queries."""
    size = min(1 << max(0, len(ids) - 1).bit_length(), max(MAX_CANDIDATES, len(ids)))
    padded = [*ids, *repeat(ids[-1], size - len(ids))] if ids else ids
    return select_all().where(Link.id.in_(padded))


def select_own(
    user_id: int | BindParameter[int],
    status: LinkState | None = None,
    visibility: Visibility | None = None,
) -> Select[int]:
    """Select the ids of a user's links by their copies of status and visibility."""
    query = select(LinkOwner.link_id).where(LinkOwner.user_id == user_id)
    if status is not None:
        query = query.where(is_copy_in_state(status))
    elif visibility is not None:
        query = query.where(LinkOwner.visibility == visibility.columns[0])
    return query


def is_copy_in_state(state: LinkState) -> ColumnElement[bool]:
    """Return the condition for own links that may be in a state.

    Own links are on hold only as those of a suspended co-owner. Links that have expired since the
    job ran last are not included: see `find_late_ids`.
    """
    if state == LinkState.ON_HOLD:
        return LinkOwner.primary_link_id.is_(None)
    return LinkOwner.status == state


def select_shared(user_id: int) -> Select[int]:
    return select(LinkShare.link_id).where(LinkShare.user_id == user_id)


def select_all() -> Select[int]:
    return select(Link.id.label("link_id"))


def select_in_state(state: LinkState) -> Select[int]:
    """Select all links of a stored state."""
    return select_all().where(Link.status == state)


def select_tagged(tag_id: int, owner_id: int | None = None) -> Select[int]:
    """Select links with a tag, of all users or of one primary owner."""
    query = select(LinkTag.link_id).where(LinkTag.tag_id == tag_id)
    return query if owner_id is None else query.where(LinkTag.owner_id == owner_id)


def select_of_team(team_id: int) -> Select[int]:
    """Select the links that a team owns."""
    return select(LinkTeam.link_id).where(LinkTeam.team_id == team_id)


def select_on_domain(host: str) -> Select[int]:
    """Select the links that live on a domain other than the default one."""
    return select(Link.id).where(Link.domain == host)


def select_held() -> Select[int]:
    """Select the links of all suspended users whose links are on hold."""
    held = select(User.id).where(User.held_at.is_not(None))
    return select(LinkOwner.link_id).where(
        LinkOwner.user_id.in_(held), LinkOwner.primary_link_id.is_not(None)
    )


async def find_late_ids(session: ReadSession, now: datetime) -> list[int] | None:
    """Return links that have expired and are not marked so yet; None if there are very many."""
    late = select(Link.id).where(Link.status == LinkState.ACTIVE, Link.expires_at <= now)
    return await find_few_links(session, late)


async def find_ids_without_copies(session: ReadSession, user_id: int) -> list[int] | None:
    """Return links that the copies of owners in tags and totals do not lead to.

    A user's co-owned links, and all links that were clicked for the first time since the job ran
    last. None if there are very many.
    """
    co_owned = select_own(user_id, LinkState.ON_HOLD).limit(MAX_CANDIDATES + 1).subquery()
    unassigned = select(LinkTotals.link_id).where(LinkTotals.owner_id.is_(None))
    recent = unassigned.limit(MAX_CANDIDATES + 1).subquery()
    both = union_all(select(co_owned.c.link_id), select(recent.c.link_id)).subquery()
    return await find_few_links(session, select(both.c.link_id))


async def find_matching(session: ReadSession, words: Sequence[str]) -> Select[int] | None:
    """Return a query of the links that may contain all words, or None if they are not few.

    By an index of trigrams, which words of fewer than three letters do not have.
    """
    trigrams = _list_trigrams(words)
    found = select_all()
    if session.dialect == "postgresql" and trigrams:
        indexed = (word for word in words if len(word) >= MIN_TRIGRAM_LENGTH)
        found = found.where(*(has_word(word) for word in indexed))
    elif session.dialect == "sqlite" and trigrams:
        matches = literal_column("link_search_fts").op("MATCH", is_comparison=True)
        quoted = ('"' + trigram.replace('"', '""') + '"' for trigram in trigrams)
        found = select(_TRIGRAM_TABLE.c.rowid).where(matches(" AND ".join(quoted)))
    elif _is_mariadb(session) and (known := _keep_indexed_on_mariadb(trigrams)):
        spelled: Any = " ".join(f"+{trigram}_" for trigram in known)
        found = found.where(match_boolean(_TRIGRAM_COLUMN, spelled))
    else:
        return None
    ids = await find_few_links(session, found)
    return None if ids is None else select_ids(ids)


def has_word(word: str) -> ColumnElement[bool]:
    return Link.search_text.contains(word, autoescape=True)


def _is_mariadb(session: ReadSession) -> bool:
    return bool(getattr(session.get_bind().dialect, "is_mariadb", False))


def _list_trigrams(words: Sequence[str]) -> list[str]:
    """Return the first trigrams, those of long words first."""
    trigrams = dict.fromkeys(
        word[place : place + MIN_TRIGRAM_LENGTH]
        for word in sorted(words, key=len, reverse=True)
        for place in range(len(word) - MIN_TRIGRAM_LENGTH + 1)
    )
    return list(trigrams)[:_MAX_TRIGRAMS]


def _keep_indexed_on_mariadb(trigrams: Sequence[str]) -> list[str]:
    return [
        trigram
        for trigram in trigrams
        if trigram.isalnum() and _INDEXED_ON_MARIADB.fullmatch(trigram)
    ]
