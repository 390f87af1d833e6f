"""Personal data of the library: export and erasure."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import delete, select

from refract.core.db.session import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.personal_data import AccountDeletion, PersonalDataHook
from refract.imports.models import ImportRun
from refract.library.models import Item, LedgerEntry, LibraryUsage, QuotaDay, TagChange, TagRule
from refract.library.payloads import enqueue_word_purge
from refract.library.queries import items as queries_items
from refract.library.queries.serializers import serialize_items
from refract.tags.models import Tag, TagAlias

DELETE_BATCH_SIZE = 500
EXPORT_BATCH_SIZE = 100
"""Items that are read between two turns of the event loop."""


async def erase_user_data(session: WriteSession, user_id: int) -> None:
    """Delete a user's library: items with all that belongs to them, imports, tags, rules, quota.

    Jobs that wait find nothing to do.
    """
    while ids := (
        await session.scalars(
            select(Item.id).where(Item.user_id == user_id).limit(DELETE_BATCH_SIZE)
        )
    ).all():
        await session.execute(
            delete(Item).where(Item.id.in_(ids)).execution_options(synchronize_session=False)
        )
    for own in (
        delete(ImportRun).where(ImportRun.user_id == user_id),
        delete(TagChange).where(TagChange.user_id == user_id),
        delete(TagAlias).where(TagAlias.space == user_id),
        delete(Tag).where(Tag.space == user_id),
        delete(TagRule).where(TagRule.user_id == user_id),
        delete(LedgerEntry).where(LedgerEntry.user_id == user_id),
        delete(QuotaDay).where(QuotaDay.user_id == user_id),
        delete(LibraryUsage).where(LibraryUsage.user_id == user_id),
    ):
        await session.execute(own.execution_options(synchronize_session=False))


async def export_user_data(
    session: ReadSession, user_id: int
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield everything the library knows of a user, row by row: (kind, values).

    Items come first, oldest first.
    """
    last = 0
    while items := (
        await session.scalars(_select_items_after(user_id, last, EXPORT_BATCH_SIZE))
    ).all():
        for card in await serialize_items(session, items):
            yield "item", card.model_dump(mode="json")
        last = items[-1].id
    for rule in await queries_items.list_tag_rules(session, user_id):
        yield "rule", {"pattern": rule.pattern, "tags": rule.tags}
    for entry in await session.scalars(
        select(LedgerEntry).where(LedgerEntry.user_id == user_id).order_by(LedgerEntry.id)
    ):
        yield (
            "usage",
            {
                "day": entry.day.isoformat(),
                "kind": entry.kind,
                "item_id": str(entry.item_id),
                "units": entry.units,
                "model": entry.model,
                "reason": entry.reason,
                "at": entry.created_at.isoformat(),
            },
        )


def _select_items_after(user_id: int, last: int, most: int) -> Any:
    return select(Item).where(Item.user_id == user_id, Item.id > last).order_by(Item.id).limit(most)


async def export_library_data(rt: Runtime, user: User) -> AsyncIterator[dict[str, Any]]:
    """Yield items, rules and usage, each with its kind of record."""
    async with rt.db.read() as session:
        async for kind, row in export_user_data(session, user.id):
            yield {"record": kind, **row}


async def erase_library_data(session: WriteSession, rt: Runtime, leaving: AccountDeletion) -> None:
    await erase_user_data(session, leaving.user.id)
    await enqueue_word_purge(session, rt)


PERSONAL_DATA = PersonalDataHook("library", export_library_data, erase_library_data)
