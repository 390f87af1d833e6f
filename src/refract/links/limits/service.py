"""Taking redirects from the limit of a link."""

from sqlalchemy import bindparam, select

from refract.core.db.bulk import update_row
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.links.limits.models import LinkLimit
from refract.links.models import Link


async def take_clicks(session: WriteSession, link_id: int, wanted: int) -> int:
    """Take up to `wanted` redirects from the limit of a link; return how many were left to take.

    The row is locked first, so that callers on all nodes take them one after another.
    """
    taken = await _lock_taken(session, link_id)
    limits = await session.fetch(_LIMIT, link_id=link_id)
    if taken is None or not limits or limits[0][0] is None:  # deleted or lifted meanwhile
        return 0
    granted = min(wanted, int(limits[0][0]) - taken)
    if granted <= 0:
        return 0
    await update_row(session, LinkLimit, {"link_id": link_id}, {"taken": taken + granted})
    return granted


async def _lock_taken(session: WriteSession, link_id: int) -> int | None:
    """Lock the count of a link and return it; None if the link is being deleted."""
    found = await session.fetch(_TAKEN, link_id=link_id)
    if not found:  # of two concurrent first callers, one inserts the row, the other waits for it
        await insert_if_absent(session, LinkLimit, [{"link_id": link_id, "taken": 0}])
        found = await session.fetch(_TAKEN, link_id=link_id)
    return int(found[0][0]) if found else None


_TAKEN = PreparedSelect(
    lambda: (
        select(LinkLimit.taken).where(LinkLimit.link_id == bindparam("link_id")).with_for_update()
    )
)
_LIMIT = PreparedSelect(lambda: select(Link.click_limit).where(Link.id == bindparam("link_id")))
