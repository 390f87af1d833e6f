"""The change feed of links and names, for caches.

Entries are written by the changing transaction.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from sqlalchemy import delete, func, select, text

from refract.core.db.bulk import insert_rows
from refract.core.db.session import WriteSession
from refract.core.ids import encode_base62
from refract.links.changes import CHANGES_TOPIC, TargetChange, build_domain_change
from refract.links.models import FeedEntry, Link
from refract.names.grammar import join_name


def build_change(link: Link, names: Iterable[str]) -> TargetChange:
    """Return the change of a link, under these names and its code."""
    return build_change_of(link.id, link.version, names, link.random_code, link.domain)


def build_change_of(
    link_id: int, version: int, names: Iterable[str], random_code: str | None, domain: str | None
) -> TargetChange:
    """Return the change of a link, like `build_change`."""
    code = random_code or (encode_base62(link_id) if domain else "")
    return TargetChange(link_id, version, (*names, *([join_name(domain, code)] if code else ())))


def build_reload(link_id: int) -> TargetChange:
    """Return a change that only drops a link from caches: a path of it may lead elsewhere now."""
    return TargetChange(link_id, 0, ())


async def publish_changes(session: WriteSession, changes: Sequence[TargetChange]) -> None:
    """Publish changes: in the database with this transaction, in this process after it commits."""
    if not changes:
        return
    at = datetime.now(UTC)  # only used to delete old rows
    rows = [
        {
            "at": at,
            "target_id": change.target_id,
            "version": change.version,
            "names": list(change.names),
        }
        for change in changes
    ]
    await insert_rows(session, FeedEntry, rows)
    if session.dialect == "postgresql":
        await session.execute(text(f"NOTIFY {CHANGES_TOPIC}"))
    session.after_commit(lambda: session.signals.publish(CHANGES_TOPIC, changes))


async def publish_domain_change(session: WriteSession, host: str) -> None:
    """Publish that a domain was created, changed or deleted."""
    await publish_changes(session, [build_domain_change(host)])


async def trim_feed(session: WriteSession, before: datetime, limit: int) -> int:
    """Delete a batch of entries that all readers have long read; return how many there were.

    The newest of the old entries stays: it shows readers that they missed nothing, and keeps
    SQLite from reusing its number.
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
