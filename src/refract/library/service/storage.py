"""Storage usage per user: items, and the bytes of their texts, notes and pages.

It is updated in the transaction of every change. Callers do so last, when tags are locked already:
one lock order prevents deadlocks.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    LargeBinary,
    Update,
    bindparam,
    delete,
    func,
    select,
    update,
)
from sqlalchemy import cast as sql_cast

from refract.core.db.bulk import get_table
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import User, UserRole
from refract.library.errors import CaptureLimitReached, ItemLimitReached, StorageLimitReached
from refract.library.models import Item, LibraryUsage, SavedPage
from refract.limits.errors import RateLimited
from refract.limits.service import charge
from refract.web.formats import format_bytes


@dataclass(frozen=True, slots=True)
class StorageUsage:
    """A number of items and of bytes."""

    items: int = 0
    bytes: int = 0


def count_bytes(*texts: str | None) -> int:
    """Return the size of texts in UTF-8."""
    return sum(len(text.encode()) for text in texts if text)


async def charge_capture(session: WriteSession, rt: Runtime, user: User) -> None:
    """Charge a capture to the user's hour.

    Raises `CaptureLimitReached`. Administrators are exempt, as for links.
    """
    limit = None if user.role == UserRole.ADMIN else rt.settings.captures_per_hour
    try:
        await charge(session, f"captures:{user.id}", 1, per_hour=limit, now=rt.clock.now())
    except RateLimited as exc:
        raise CaptureLimitReached(limit=exc.limit, retry_after=exc.retry_after) from exc


async def add_usage(session: WriteSession, rt: Runtime, user_id: int, more: StorageUsage) -> None:
    """Add usage. Raises `ItemLimitReached` or `StorageLimitReached`; then nothing is added."""
    if not await try_to_add_usage(session, rt, user_id, more):
        stored = await _read_usage(session, user_id)
        limit = rt.settings.items_per_person
        if limit is not None and stored.items + more.items > limit:
            raise ItemLimitReached(limit=f"{limit:,}")
        raise StorageLimitReached(limit=format_bytes(rt.settings.storage_per_person or 0))


async def try_to_add_usage(
    session: WriteSession, rt: Runtime, user_id: int, more: StorageUsage
) -> bool:
    """Add usage, or return False if it does not fit. Usage that does not grow always fits."""
    return await _change_usage(session, user_id, more, rt.settings) or (
        await _create_usage_row(session, user_id, more)
        and await _change_usage(session, user_id, more, rt.settings)
    )


async def adjust_usage(session: WriteSession, user_id: int, more: StorageUsage) -> None:
    """Change usage without a check of the limits, which the caller has made."""
    if not await _change_usage(session, user_id, more):
        await _create_usage_row(session, user_id, more)
        await _change_usage(session, user_id, more)


async def has_free_storage(
    session: ReadSession, rt: Runtime, user_id: int, more: StorageUsage
) -> bool:
    """Return whether that much more would fit."""
    stored, settings = await get_usage(session, user_id), rt.settings
    return (
        settings.items_per_person is None or stored.items + more.items <= settings.items_per_person
    ) and (
        settings.storage_per_person is None
        or stored.bytes + more.bytes <= settings.storage_per_person
    )


async def get_usage(session: ReadSession, user_id: int) -> StorageUsage:
    """Return the usage of a user, which is measured now if it never was."""
    rows = await session.fetch(_USAGE, user_id=user_id)
    return StorageUsage(*rows[0]) if rows else await measure_usage(session, user_id)


_USAGE = PreparedSelect(
    lambda: select(LibraryUsage.items, LibraryUsage.bytes).where(
        LibraryUsage.user_id == bindparam("user_id")
    )
)


async def measure_usage(session: ReadSession, user_id: int, item_ids: Any = None) -> StorageUsage:
    """Measure the usage of a user, of all items or only of these."""
    size = _build_byte_length(session, Item.text) + func.coalesce(
        _build_byte_length(session, Item.notes), 0
    )
    of_page = _build_byte_length(session, SavedPage.text) + _build_byte_length(
        session, SavedPage.html
    )
    query = select(func.count(), func.sum(size), func.sum(func.coalesce(of_page, 0)))
    query = (
        query.select_from(Item)
        .outerjoin(SavedPage, SavedPage.item_id == Item.id)
        .where(Item.user_id == user_id)
    )
    if item_ids is not None:
        query = query.where(Item.id.in_(item_ids))
    items, texts, pages = (await session.execute(query)).one()
    return StorageUsage(items, int(texts or 0) + int(pages or 0))


async def delete_page(session: WriteSession, item: Item) -> None:
    """Delete what was fetched for an item, and free its storage."""
    before = await measure_usage(session, item.user_id, [item.id])
    page = delete(SavedPage).where(SavedPage.item_id == item.id)
    await session.execute(page.execution_options(synchronize_session=False))
    after = await measure_usage(session, item.user_id, [item.id])
    if before != after:
        await adjust_usage(session, item.user_id, StorageUsage(bytes=after.bytes - before.bytes))


async def reconcile_usage(session: WriteSession, user_id: int) -> StorageUsage | None:
    """Set a user's usage to what is measured; return the difference, or None if there is none."""
    row = await session.get(LibraryUsage, user_id, with_for_update=True)
    if row is None:
        return None
    real = await measure_usage(session, user_id)
    off = StorageUsage(row.items - real.items, row.bytes - real.bytes)
    row.items, row.bytes = real.items, real.bytes
    await session.flush()
    return off if off != StorageUsage() else None


@cache
def _build_change(*, has_item_limit: bool, has_byte_limit: bool) -> Update:
    items, size = bindparam("more_items", type_=BigInteger), bindparam("more", type_=BigInteger)
    row = update(get_table(LibraryUsage)).where(LibraryUsage.user_id == bindparam("usage_of"))
    if has_item_limit:
        row = row.where(LibraryUsage.items + items <= bindparam("max_items", type_=BigInteger))
    if has_byte_limit:
        row = row.where(LibraryUsage.bytes + size <= bindparam("max_bytes", type_=BigInteger))
    return row.values(items=LibraryUsage.items + items, bytes=LibraryUsage.bytes + size)


async def _read_usage(session: WriteSession, user_id: int) -> StorageUsage:
    row = await session.get(LibraryUsage, user_id, populate_existing=True)
    return StorageUsage() if row is None else StorageUsage(row.items, row.bytes)


async def _change_usage(
    session: WriteSession, user_id: int, more: StorageUsage, limits: Settings | None = None
) -> bool:
    """Change usage where it grows no further than the limits; return whether it was changed."""
    values = {"usage_of": user_id, "more_items": more.items, "more": more.bytes}
    max_items = limits.items_per_person if limits is not None and more.items > 0 else None
    max_bytes = limits.storage_per_person if limits is not None and more.bytes > 0 else None
    if max_items is not None:
        values["max_items"] = max_items
    if max_bytes is not None:
        values["max_bytes"] = max_bytes
    change = _build_change(
        has_item_limit=max_items is not None, has_byte_limit=max_bytes is not None
    )
    connection = await session.connection()
    return (await connection.execute(change, values)).rowcount == 1


async def _create_usage_row(session: WriteSession, user_id: int, more: StorageUsage) -> bool:
    """Create the usage row of a user, without the current change; return False if there is one.

    Of two concurrent calls one creates the row; the other waits for it and adds to it.
    """
    if await session.get(LibraryUsage, user_id, populate_existing=True) is not None:
        return False
    real = await measure_usage(session, user_id)
    row = {"user_id": user_id, "items": real.items - more.items, "bytes": real.bytes - more.bytes}
    await insert_if_absent(session, LibraryUsage, [row])
    return True


def _build_byte_length(session: ReadSession, column: Any) -> ColumnElement[int]:
    """Return the length of a text column in bytes. SQLite counts bytes only in blobs."""
    return (
        func.length(sql_cast(column, LargeBinary))
        if session.dialect == "sqlite"
        else func.octet_length(column)
    )
