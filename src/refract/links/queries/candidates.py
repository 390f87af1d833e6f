"""Small sets of links that a filter leaves, so that no list reads all links of its owner.

A page of links is read along an index in the order in which it is shown. That is slow if a filter
leaves few of very many links. So filters that have an index of their own are evaluated first: if
one leaves few links, these are sorted instead.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import repeat

from sqlalchemy import ColumnElement, Select, column, literal_column, or_, select, table

from refract.core.db.bulk import MAX_PARAMETERS
from refract.core.db.session import ReadSession
from refract.identity.models import User
from refract.links.models import Link, LinkOwner, LinkState, LinkTag, Visibility

MAX_CANDIDATES = MAX_PARAMETERS
"""Links that are sorted for a page, at most."""
MIN_TRIGRAM_LENGTH = 3
_MAX_TRIGRAMS = 12
_TRIGRAM_TABLE = table("link_search_fts", column("rowid"))


async def find_few_links(session: ReadSession, query: Select[int]) -> list[int] | None:
    """Return the ids that a query finds, or None if they are more than `MAX_CANDIDATES`."""
    ids = list(await session.scalars(query.limit(MAX_CANDIDATES + 1)))
    return ids if len(ids) <= MAX_CANDIDATES else None


def pad_ids(ids: Sequence[int]) -> Sequence[int]:
    """Repeat the last id up to a power of two, so that databases prepare few statements."""
    size = min(1 << max(0, len(ids) - 1).bit_length(), max(MAX_CANDIDATES, len(ids)))
    return [*ids, *repeat(ids[-1], size - len(ids))] if ids else ids


def select_own(
    user_id: int, status: LinkState | None = None, visibility: Visibility | None = None
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


def select_tagged(tag_id: int) -> Select[int]:
    return select(LinkTag.link_id).where(LinkTag.tag_id == tag_id)


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


def select_matching(
    session: ReadSession, words: Sequence[str], *, hosts: bool
) -> Select[int] | None:
    """Select links that may contain all words, by an index of trigrams; None without one.

    MariaDB has no such index. Words of fewer than three letters have no trigram.
    """
    longest = max(words, key=len, default="")
    if len(longest) < MIN_TRIGRAM_LENGTH or session.dialect == "mysql":
        return None
    if session.dialect == "postgresql":
        return select(Link.id).where(*(has_word(word, hosts=hosts) for word in words))
    matches = literal_column("link_search_fts").op("MATCH", is_comparison=True)
    return select(_TRIGRAM_TABLE.c.rowid).where(matches(_build_trigram_query(words)))


def has_word(word: str, *, hosts: bool) -> ColumnElement[bool]:
    """Match a word, with `hosts` also in the host in ASCII, as reports and blocklists have it."""
    written = Link.search_text.contains(word, autoescape=True)
    return or_(written, Link.destination_host.contains(word, autoescape=True)) if hosts else written


def _build_trigram_query(words: Sequence[str]) -> str:
    trigrams = dict.fromkeys(
        word[place : place + MIN_TRIGRAM_LENGTH]
        for word in sorted(words, key=len, reverse=True)
        for place in range(len(word) - MIN_TRIGRAM_LENGTH + 1)
    )
    quoted = ('"' + trigram.replace('"', '""') + '"' for trigram in list(trigrams)[:_MAX_TRIGRAMS])
    return " AND ".join(quoted)
