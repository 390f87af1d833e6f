"""What jobs do to links: note that they have expired, and remove those that ended long ago."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import Table, and_, delete, or_, select, update

from refract.core.db import WriteSession
from refract.core.rows import insert_or_skip
from refract.links import feed
from refract.links.models import Link, LinkChange, LinkInvitation, LinkOwner, LinkShare, LinkState, LinkTag, LinkTombstone
from refract.links.queries.cards import tag_names
from refract.names.models import Kind, Name
from refract.names.queries import names_of
from refract.tags.service import count_use

SLICE = 500
"""Rows of one transaction: few enough that nobody waits long for the lock."""


async def mark_expired(session: WriteSession, now: datetime, most: int = SLICE) -> int:
    """Note in the rows of expired links that they are. Nothing depends on it: `status` in every answer is computed from time."""
    due = select(Link.id).where(Link.status == LinkState.ACTIVE, Link.expires_at <= now).order_by(Link.expires_at).limit(most)
    ids = list(await session.scalars(due))
    if ids:
        still = update(Link).where(Link.id.in_(ids), Link.status == LinkState.ACTIVE, Link.expires_at <= now)
        await session.execute(still.values(status=LinkState.EXPIRED.value).execution_options(synchronize_session=False))
    return len(ids)


async def purge_links(session: WriteSession, now: datetime, after: timedelta, most: int = SLICE) -> int:
    """Remove links that expired or were deleted longer ago than `after`. A tombstone keeps each id, and clicks keep their link's id.

    A disabled link stays, whatever its expiry: whoever disabled it may still want it.
    """
    long_ago = now - after
    ended = or_(
        and_(Link.status.in_((LinkState.ACTIVE, LinkState.EXPIRED)), Link.expires_at <= long_ago),
        and_(Link.status == LinkState.DELETED, Link.deleted_at <= long_ago),
    )
    found = select(Link.id, Link.version, Link.status, Link.random_code).where(ended).order_by(Link.id).limit(most).with_for_update()
    rows = list(await session.execute(found))
    if rows:
        await _remove(session, rows, now)
    return len(rows)


async def _remove(session: WriteSession, rows: Sequence[tuple[int, int, str, str | None]], now: datetime) -> None:
    ids = [link_id for link_id, *_ in rows]
    names = await names_of(session, Kind.LINK, ids)
    tags = await tag_names(session, ids)
    uses: dict[int, int] = {}
    for link_id, _, status, _ in rows:
        for tag_id in tags[link_id] if status != LinkState.DELETED else ():  # a deleted link was taken off the count when it was deleted
            uses[tag_id] = uses.get(tag_id, 0) - 1
    await count_use(session, uses, now)
    tombstones = [{"link_id": link_id, "purged_at": now} for link_id in ids]
    await insert_or_skip(session, cast("Table", LinkTombstone.__table__), tombstones)
    await session.execute(delete(Name).where(Name.kind == Kind.LINK, Name.target_id.in_(ids)))
    children: tuple[Any, ...] = (LinkTag, LinkShare, LinkInvitation, LinkOwner, LinkChange)
    for child in children:
        await session.execute(delete(child).where(child.link_id.in_(ids)).execution_options(synchronize_session=False))
    await session.execute(delete(Link).where(Link.id.in_(ids)).execution_options(synchronize_session=False))
    await feed.changed(
        session,
        [feed.Change(link_id, version + 1, (*names[link_id], *((code,) if code else ()))) for link_id, version, _, code in rows],
    )
