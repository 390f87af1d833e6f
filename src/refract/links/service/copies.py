"""Columns that are repeated in other tables, so that lists are read along an index.

Rows of owners repeat columns of their links; totals and tags of a link repeat its primary owner.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import aliased

from refract.core.db.bulk import iter_batches
from refract.core.db.session import WriteSession
from refract.links.models import COPIED_COLUMNS, NO_OWNER, Link, LinkOwner, LinkTag, LinkTotals

BATCH_SIZE = 500
"""Rows per transaction, few enough to hold the locks briefly."""
COPY_SLICE = 5_000
"""Links per transaction whose copies are compared. Few of them are changed."""
_OWNED_TABLES: tuple[Any, ...] = (LinkTotals, LinkTag)
_Primary = aliased(LinkOwner, name="primary_owner")


async def copy_to_owners(session: WriteSession, link_ids: Sequence[int]) -> None:
    """Repeat columns of links in the rows of their owners, after an update below the ORM."""
    copies = {
        name: select(getattr(Link, name)).where(Link.id == LinkOwner.link_id).scalar_subquery()
        for name in COPIED_COLUMNS
    }
    owners = update(LinkOwner).where(LinkOwner.link_id.in_(link_ids))
    await session.execute(owners.values(copies).execution_options(synchronize_session=False))


async def copy_primary_owners(session: WriteSession, link_ids: Sequence[int]) -> None:
    """Repeat the primary owners of links in totals and tags, after one has changed."""
    for model in _OWNED_TABLES:
        await _set_owner_ids(session, model, link_ids)


async def assign_owners(session: WriteSession, limit: int = BATCH_SIZE) -> int:
    """Look up the owners of totals and tags that have none yet. Return the number of links."""
    assigned = 0
    for model in _OWNED_TABLES:
        unassigned = select(model.link_id).where(model.owner_id.is_(None)).limit(limit)
        link_ids = sorted(set(await session.scalars(unassigned)))
        if link_ids:
            await _set_owner_ids(session, model, link_ids)
        assigned += len(link_ids)
    return assigned


async def repair_copies(session: WriteSession, after: int, limit: int = COPY_SLICE) -> int | None:
    """Correct the copies of the next links after an id; return the last id, None at the end.

    A version before revision 0033 that runs during an upgrade does not write all of them.
    """
    next_ids = select(LinkOwner.link_id).where(LinkOwner.link_id > after)
    last = await session.scalar(next_ids.order_by(LinkOwner.link_id).offset(limit - 1).limit(1))
    if last is not None:
        next_ids = next_ids.where(LinkOwner.link_id <= last)
    differs = or_(
        *(getattr(LinkOwner, name).is_distinct_from(getattr(Link, name)) for name in COPIED_COLUMNS)
    )
    wrong = next_ids.join(Link, Link.id == LinkOwner.link_id).where(differs)
    for batch in iter_batches(list(await session.scalars(wrong))):
        await copy_to_owners(session, batch)
    for model in _OWNED_TABLES:
        other = next_ids.join(model, model.link_id == LinkOwner.primary_link_id).where(
            model.owner_id != LinkOwner.user_id
        )
        for batch in iter_batches(sorted(set(await session.scalars(other)))):
            await _set_owner_ids(session, model, batch)
    return last


async def _set_owner_ids(session: WriteSession, model: Any, link_ids: Sequence[int]) -> None:
    owner = select(_Primary.user_id).where(_Primary.primary_link_id == model.link_id)
    rows = update(model).where(model.link_id.in_(sorted(link_ids)))
    values = {"owner_id": func.coalesce(owner.scalar_subquery(), NO_OWNER)}
    await session.execute(rows.values(values).execution_options(synchronize_session=False))
