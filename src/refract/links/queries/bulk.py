"""Many links at once: all in order, and what an import needs to know about existing ones."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import and_, select

from refract.core.db.bulk import iter_batches
from refract.core.db.session import ReadSession
from refract.links.enums import LinkState
from refract.links.models import Link, LinkOwner, LinkTombstone


async def list_links_after(
    session: ReadSession, after: int, limit: int, *, user_id: int | None = None
) -> list[Link]:
    """Return the next links by id that are not deleted, of everyone or of one owner."""
    query = select(Link).where(Link.id > after, Link.status != LinkState.DELETED)
    if user_id is not None:
        query = query.join(
            LinkOwner, and_(LinkOwner.link_id == Link.id, LinkOwner.user_id == user_id)
        )
    return list(await session.scalars(query.order_by(Link.id).limit(limit)))


@dataclass(frozen=True, slots=True)
class ExistingLink:
    """The facts about a link that tell whether an import already has it."""

    href: str
    mine: bool
    deleted: bool


async def find_existing_links(
    session: ReadSession, ids: Collection[int], user_id: int
) -> dict[int, ExistingLink]:
    found: dict[int, ExistingLink] = {}
    mine = and_(LinkOwner.link_id == Link.id, LinkOwner.user_id == user_id)
    query = select(Link.id, Link.href, Link.status, LinkOwner.user_id).outerjoin(LinkOwner, mine)
    for batch in iter_batches(sorted(ids)):
        for link_id, href, status, owner in await session.execute(query.where(Link.id.in_(batch))):
            found[link_id] = ExistingLink(href, owner is not None, status == LinkState.DELETED)
    return found


async def find_purged_ids(session: ReadSession, ids: Collection[int]) -> set[int]:
    """Return the ids that purged links had. Clicks still refer to them."""
    found: set[int] = set()
    for batch in iter_batches(sorted(ids)):
        found.update(
            await session.scalars(
                select(LinkTombstone.link_id).where(LinkTombstone.link_id.in_(batch))
            )
        )
    return found
