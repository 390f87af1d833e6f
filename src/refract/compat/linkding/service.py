"""Numbers of items and tags, given when a client first sees them."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import InstrumentedAttribute

from refract.compat.linkding.models import LinkdingNumber
from refract.core.db.bulk import insert_rows, iter_batches
from refract.core.db.session import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User

NumberedColumn = InstrumentedAttribute[int | None]
ITEM: NumberedColumn = LinkdingNumber.item_id
TAG: NumberedColumn = LinkdingNumber.tag_id
_MAX_NUMBER = 2**31 - 1


async def find_object(
    session: ReadSession, user_id: int, number: int, column: NumberedColumn
) -> int | None:
    """Return the id of the item or tag with a number, or None."""
    if not 0 < number <= _MAX_NUMBER:
        return None
    row = await session.get(LinkdingNumber, (user_id, number))
    return None if row is None else getattr(row, column.key)


async def load_numbers(
    rt: Runtime, user_id: int, ids: Collection[int], column: NumberedColumn
) -> dict[int, int]:
    """Return the numbers of a user's items or tags; those without one get the next ones."""
    async with rt.db.read() as session:
        known = await _find_numbers(session, ids, column)
    if len(known) == len(set(ids)):
        return known
    async with rt.db.write() as session:
        return await assign_numbers(session, user_id, ids, column)


async def assign_numbers(
    session: WriteSession, user_id: int, ids: Collection[int], column: NumberedColumn
) -> dict[int, int]:
    """Do the same within a transaction. The lock on the user orders concurrent calls."""
    await session.execute(select(User.id).where(User.id == user_id).with_for_update())
    known = await _find_numbers(session, ids, column)
    highest = await session.scalar(
        select(func.max(LinkdingNumber.number)).where(LinkdingNumber.user_id == user_id)
    )
    missing = [object_id for object_id in sorted(set(ids)) if object_id not in known]
    given = {object_id: (highest or 0) + place for place, object_id in enumerate(missing, 1)}
    empty: dict[str, Any] = {"user_id": user_id, "item_id": None, "tag_id": None}
    rows = [{**empty, "number": number, column.key: key} for key, number in given.items()]
    await insert_rows(session, LinkdingNumber, rows)
    return known | given


async def _find_numbers(
    session: ReadSession, ids: Collection[int], column: NumberedColumn
) -> dict[int, int]:
    found: dict[int, int] = {}
    for batch in iter_batches(sorted(set(ids))):
        rows = await session.execute(select(column, LinkdingNumber.number).where(column.in_(batch)))
        found |= {object_id: number for object_id, number in rows if object_id is not None}
    return found
