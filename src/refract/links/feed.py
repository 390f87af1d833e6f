"""News of links and names for whoever keeps answers ready: every change is told here, in the transaction that makes it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import delete, func, select, text

from refract.core.db.bulk import insert_rows
from refract.core.db.session import WriteSession
from refract.links.models import FeedEntry, Link

TOPIC = "refract_links"
"""What followers in this process listen to, and the channel on PostgreSQL."""

ALL_TARGETS = 0
"""In place of a target: forget all you know, for instance because a domain was blocked."""


@dataclass(frozen=True, slots=True)
class TargetChange:
    """A target that is no longer what it was, and every name (as compared) under which somebody may have asked for it.

    `names` holds what it was called before as well as after the change; the code follows from the id.
    """

    target_id: int
    version: int
    names: tuple[str, ...]


def build_change(link: Link, names: Iterable[str]) -> TargetChange:
    """Return the news of a link as it is now, under these names and its random code."""
    return TargetChange(
        link.id, link.version, (*names, *((link.random_code,) if link.random_code else ()))
    )


async def publish_changes(session: WriteSession, changes: Sequence[TargetChange]) -> None:
    """Tell of changes: in the database with this transaction, in this process the moment it is committed, or not at all."""
    if not changes:
        return
    at = datetime.now(UTC)  # only used to remove old rows
    rows = [
        {"at": at, "target_id": one.target_id, "version": one.version, "names": list(one.names)}
        for one in changes
    ]
    await insert_rows(session, FeedEntry, rows)
    if session.dialect == "postgresql":
        await session.execute(text(f"NOTIFY {TOPIC}"))
    session.after_commit(lambda: session.signals.publish(TOPIC, changes))


async def trim_feed(session: WriteSession, before: datetime, limit: int) -> int:
    """Remove a slice of the entries that everybody has read long ago; the answer is how many went.

    The newest of the old ones stays: by it readers see that they missed nothing, and SQLite gives no number twice.
    """
    newest = await session.scalar(select(func.max(FeedEntry.number)).where(FeedEntry.at < before))
    if newest is None:
        return 0
    old = (
        select(FeedEntry.number)
        .where(FeedEntry.at < before, FeedEntry.number < newest)
        .order_by(FeedEntry.at)
        .limit(limit)
    )
    numbers = list(await session.scalars(old))
    if numbers:
        await session.execute(delete(FeedEntry).where(FeedEntry.number.in_(numbers)))
    return len(numbers)
