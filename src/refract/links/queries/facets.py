"""Counts of links for the filters of a table. They are bounded, so that they stay fast."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    desc,
    func,
    not_,
    select,
)
from sqlalchemy.orm import aliased

from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.identity.models import User
from refract.links.access import LinkCaller
from refract.links.enums import LinkState
from refract.links.models import Link, LinkOwner, LinkTag
from refract.links.queries.browse import LinkFilter, select_matching
from refract.links.queries.candidates import is_copy_in_state, select_own
from refract.tags.grammar import slugify
from refract.tags.models import SHARED_SPACE, Tag

MAX_COUNTED = 1_000
MAX_TAG_FACETS = 50
_STORED_STATES = tuple(state for state in LinkState if state != LinkState.ON_HOLD)
_USER_ID: BindParameter[int] = bindparam("user_id")


@dataclass(frozen=True, slots=True)
class LinkTagCount:
    name: str
    slug: str
    color: str
    links: int


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """The links of a filter by state, and by tag among those in the chosen state.

    Exact, unless there are more than `MAX_COUNTED`: then those of a search are minimums, and so are
    those of tags. Without a search each state is counted up to that limit.
    """

    states: dict[str, int]
    tags: list[LinkTagCount]
    has_more: bool = False
    """Whether the counts of states are minimums."""
    has_more_tagged: bool = False
    """Whether the counts of tags are minimums."""

    def get_total(self, status: LinkState | None) -> int:
        """Return how many links a tab has. Without a state, all but deleted links."""
        if status is not None:
            return self.states[status]
        return sum(count for state, count in self.states.items() if state != LinkState.DELETED)


async def count_links(
    session: ReadSession, caller: LinkCaller, filters: LinkFilter, now: datetime
) -> LinkCounts:
    """Count what the tabs and tags of a filter would show. A fixed number of queries."""
    is_plain = filters == LinkFilter(status=filters.status, sort=filters.sort)
    states = await count_states(session, caller.user_id, now) if is_plain else None
    if states is not None and filters.status is None:
        tags = await count_tags(session, caller.user_id)
        return LinkCounts(states, tags, has_more_tagged=sum(states.values()) > MAX_COUNTED)
    found = await select_matching(session, caller, filters, now, MAX_COUNTED + 1)
    if found is None:
        return LinkCounts({state.value: 0 for state in LinkState}, [])
    matching = found.subquery("matching")
    counted = select(matching.c.state, func.count()).group_by(matching.c.state)
    by_state = {str(state): int(count) for state, count in await session.execute(counted)}
    has_more = sum(by_state.values()) > MAX_COUNTED
    tagged = (
        select(LinkTag.tag_id, func.count().label("links"))
        .join(matching, matching.c.link_id == LinkTag.link_id)
        .where(
            matching.c.state == filters.status
            if filters.status
            else matching.c.state != LinkState.DELETED
        )
    )
    return LinkCounts(
        states or {state.value: by_state.get(state, 0) for state in LinkState},
        [LinkTagCount(*row) for row in await session.execute(_select_tag_counts(tagged))],
        has_more=has_more and states is None,
        has_more_tagged=has_more,
    )


async def count_states(session: ReadSession, user_id: int, now: datetime) -> dict[str, int]:
    """Return a user's links by state, each up to one more than `MAX_COUNTED`. Two queries.

    The copies in owners' rows are counted along their index. They do not know of links that have
    expired since the job ran last, nor of holds.
    """
    ((*counts, late),) = await session.fetch(_STATE_COUNTS, user_id=user_id, now=now)
    by_state: dict[LinkState, int] = {
        state: int(count) for state, count in zip(_STORED_STATES, counts, strict=True)
    }
    held = await _count_held(session, user_id)
    for state in _STORED_STATES:
        if by_state[state] <= MAX_COUNTED and state != LinkState.DELETED:
            by_state[state] -= held.get(state, 0)
    if by_state[LinkState.ACTIVE] <= MAX_COUNTED:
        by_state[LinkState.ACTIVE] -= late
    by_state[LinkState.EXPIRED] += late
    by_state[LinkState.ON_HOLD] = sum(held.values()) - held.get(LinkState.DELETED, 0)
    return {state.value: min(max(0, by_state[state]), MAX_COUNTED + 1) for state in LinkState}


def _count_bounded(query: Select[int], name: str) -> ScalarSelect[int]:
    found = query.limit(MAX_COUNTED + 1).subquery(f"in_{name}")
    return select(func.count()).select_from(found).scalar_subquery()


def _build_state_counts() -> Select[*tuple[int, ...]]:
    """Return the query of stored states and late links."""
    counts = [_count_bounded(select_own(_USER_ID, state), state.value) for state in _STORED_STATES]
    return select(*counts, _count_late())


def _count_late() -> ScalarSelect[int]:
    """Count own links that have expired and are not marked so yet, and are not on hold."""
    overdue = Link.expires_at <= bindparam("now")
    late = (
        select(Link.id)
        .where(Link.status == LinkState.ACTIVE, overdue, not_(Link.on_hold))
        .limit(MAX_COUNTED + 1)
        .subquery("late")
    )
    own = and_(LinkOwner.link_id == late.c.id, LinkOwner.user_id == _USER_ID)
    return select(func.count()).select_from(late).join(LinkOwner, own).scalar_subquery()


_STATE_COUNTS = PreparedSelect(_build_state_counts, in_thread=True)


async def _count_held(session: ReadSession, user_id: int) -> dict[str, int]:
    """Return own links on hold by stored state. They are co-owned with a suspended user."""
    found = await session.fetch(_HELD_COUNTS, user_id=user_id)
    return {str(status): int(count) for status, count in found}


def _build_held_counts() -> Select[*tuple[Any, ...]]:
    co_owned = (
        select(LinkOwner.link_id, LinkOwner.status)
        .where(LinkOwner.user_id == _USER_ID, is_copy_in_state(LinkState.ON_HOLD))
        .limit(MAX_COUNTED + 1)
        .subquery("co_owned")
    )
    primary = aliased(LinkOwner)
    return (
        select(co_owned.c.status, func.count())
        .join(primary, primary.primary_link_id == co_owned.c.link_id)
        .join(User, User.id == primary.user_id)
        .where(User.held_at.is_not(None))
        .group_by(co_owned.c.status)
    )


_HELD_COUNTS = PreparedSelect(_build_held_counts, in_thread=True)


async def count_tags(session: ReadSession, user_id: int) -> list[LinkTagCount]:
    """Return the tags used most among a user's latest `MAX_COUNTED` links. One query."""
    found = await session.fetch(_LATEST_TAGS, user_id=user_id)
    return [LinkTagCount(*row) for row in found]


def _build_latest_tags() -> Select[*tuple[Any, ...]]:
    latest = (
        select(LinkOwner.link_id, LinkOwner.status)
        .where(LinkOwner.user_id == _USER_ID)
        .order_by(LinkOwner.link_id.desc())
        .limit(MAX_COUNTED)
        .subquery()
    )
    counted = (
        select(LinkTag.tag_id, func.count().label("links"))
        .join(latest, latest.c.link_id == LinkTag.link_id)
        .where(latest.c.status.is_distinct_from(LinkState.DELETED.value))
    )
    return _select_tag_counts(counted)


_LATEST_TAGS = PreparedSelect(_build_latest_tags, in_thread=True)


def _select_tag_counts(counts: Select[int, int]) -> Select[*tuple[Any, ...]]:
    """Select the tags with the highest counts. `counts` has a tag's id and `links`, ungrouped."""
    # In a query of its own: SQLite would start from all shared tags.
    counted = (
        counts.group_by(LinkTag.tag_id)
        .order_by(desc("links"), LinkTag.tag_id)
        .limit(2 * MAX_TAG_FACETS)
        .subquery("counted")
    )
    return (
        select(Tag.name, Tag.key, Tag.color, counted.c.links)
        .join(counted, counted.c.tag_id == Tag.id)
        .where(Tag.space == SHARED_SPACE, Tag.deleted_at.is_(None))
        .order_by(counted.c.links.desc(), Tag.key)
        .limit(MAX_TAG_FACETS)
    )


async def load_tag_colors(session: ReadSession, names: Collection[str]) -> dict[str, str]:
    """Return the colours of shared tags by name. One query for any page of links."""
    if not names:
        return {}
    keys = sorted({slugify(name) for name in names})
    found = await session.fetch(_COLORS, keys=keys)
    return {str(name): str(color) for name, color in found if name in names}


_COLORS = PreparedSelect(
    lambda: select(Tag.name, Tag.color).where(
        Tag.space == SHARED_SPACE, Tag.name_key.in_(bindparam("keys", expanding=True))
    )
)
