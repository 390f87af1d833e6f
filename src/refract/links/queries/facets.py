"""Counts of links for the filters of a table. They are bounded, so that they stay fast."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ScalarSelect, func, select

from refract.core.db.session import ReadSession
from refract.links.access import is_owned_by
from refract.links.models import Link, LinkOwner, LinkState, LinkTag
from refract.links.queries.candidates import is_copy_in_state
from refract.links.queries.links import is_in_state
from refract.tags.models import SHARED_SPACE, Tag

MAX_COUNTED = 1_000
MAX_TAG_FACETS = 12


@dataclass(frozen=True, slots=True)
class LinkTagCount:
    name: str
    slug: str
    color: str
    links: int


async def count_states(session: ReadSession, user_id: int, now: datetime) -> dict[str, int]:
    """Return a user's links by state, each up to one more than `MAX_COUNTED`. One query."""
    counts = [_count_own(state, user_id, now) for state in LinkState]
    late = (
        select(Link.id)
        .where(Link.status == LinkState.ACTIVE, is_in_state(LinkState.EXPIRED, now))
        .where(is_owned_by(user_id))
        .limit(MAX_COUNTED + 1)
        .subquery("late")
    )
    counts.append(select(func.count()).select_from(late).scalar_subquery())
    *found, late_count = (await session.execute(select(*counts))).one()
    by_state = {state.value: int(count) for state, count in zip(LinkState, found, strict=True)}
    expired = by_state[LinkState.EXPIRED] + int(late_count)
    return by_state | {LinkState.EXPIRED.value: min(expired, MAX_COUNTED + 1)}


def _count_own(state: LinkState, user_id: int, now: datetime) -> ScalarSelect[int]:
    """Count along the index of owners' rows. Links that the expiry job has not seen are missing."""
    own = (
        select(LinkOwner.link_id)
        .join(Link, Link.id == LinkOwner.link_id)
        .where(LinkOwner.user_id == user_id, is_copy_in_state(state), is_in_state(state, now))
        .limit(MAX_COUNTED + 1)
        .subquery(f"in_{state.value}")
    )
    return select(func.count()).select_from(own).scalar_subquery()


async def count_tags(session: ReadSession, user_id: int) -> list[LinkTagCount]:
    """Return the tags used most among a user's latest `MAX_COUNTED` links. One query."""
    latest = (
        select(LinkOwner.link_id)
        .where(LinkOwner.user_id == user_id)
        .order_by(LinkOwner.link_id.desc())
        .limit(MAX_COUNTED)
        .subquery()
    )
    # In a query of its own: SQLite would start from all shared tags.
    number = func.count()
    counted = (
        select(LinkTag.tag_id, number.label("links"))
        .join(latest, latest.c.link_id == LinkTag.link_id)
        .join(Link, Link.id == LinkTag.link_id)
        .where(Link.status != LinkState.DELETED)
        .group_by(LinkTag.tag_id)
        .order_by(number.desc(), LinkTag.tag_id)
        .limit(2 * MAX_TAG_FACETS)
        .subquery()
    )
    query = (
        select(Tag.name, Tag.key, Tag.color, counted.c.links)
        .join(counted, counted.c.tag_id == Tag.id)
        .where(Tag.space == SHARED_SPACE, Tag.deleted_at.is_(None))
        .order_by(counted.c.links.desc(), Tag.key)
        .limit(MAX_TAG_FACETS)
    )
    return [
        LinkTagCount(name, key, color, count)
        for name, key, color, count in await session.execute(query)
    ]


async def load_tag_colors(session: ReadSession, names: Collection[str]) -> dict[str, str]:
    """Return the colours of shared tags by name. One query for any page of links."""
    if not names:
        return {}
    found = await session.execute(
        select(Tag.name, Tag.color).where(
            Tag.space == SHARED_SPACE, Tag.name.in_(sorted(set(names)))
        )
    )
    return {str(name): str(color) for name, color in found}
