"""When somebody leaves: their links pass on, or come to rest."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select

from refract.core.db import WriteSession
from refract.core.rows import slices
from refract.identity.access import Relation
from refract.identity.models import User
from refract.links import history
from refract.links.access import Standing, Who
from refract.links.history import Action
from refract.links.models import Link, LinkOwner, LinkShare, LinkState
from refract.links.queries.cards import tag_names
from refract.links.service.hold import Held
from refract.links.service.lifecycle import mark_deleted
from refract.links.service.people import crown
from refract.names.models import Kind
from refract.names.queries import names_of
from refract.tags.service import count_use

_AT_ONCE = 200


async def hand_over_links(session: WriteSession, user: User, now: datetime, *, heir: User | None = None) -> None:
    """Part a person from all links: co-owned ones pass to the earliest co-owner, those of theirs alone to the heir, or are deleted."""
    owned = list(await session.scalars(select(LinkOwner.link_id).where(LinkOwner.user_id == user.id).order_by(LinkOwner.link_id)))
    for some in slices(owned, _AT_ONCE):
        owners: dict[int, list[LinkOwner]] = {link_id: [] for link_id in some}
        held = await _hold_all(session, user, some, now)
        for row in await session.scalars(select(LinkOwner).where(LinkOwner.link_id.in_(some))):
            owners[row.link_id].append(row)
        for one in held:
            await _part(one, user, owners[one.link.id], heir)
    await session.execute(delete(LinkShare).where(LinkShare.user_id == user.id))


async def _hold_all(session: WriteSession, user: User, link_ids: Sequence[int], now: datetime) -> list[Held]:
    locked = select(Link).where(Link.id.in_(link_ids)).order_by(Link.id).with_for_update().execution_options(populate_existing=True)
    links = list(await session.scalars(locked))
    names = await names_of(session, Kind.LINK, link_ids)
    tags = await tag_names(session, link_ids)
    standing = Standing(Relation.PRIMARY, owns=True, public=False)
    return [
        Held(
            session, Who(user.id), standing, link, names[link.id], tags[link.id], now,
            history.snapshot(link, names[link.id], tags[link.id]), tuple(names[link.id]),
        )
        for link in links
    ]  # fmt: skip


async def _part(held: Held, user: User, owners: Sequence[LinkOwner], heir: User | None) -> None:
    session, link_id = held.session, held.link.id
    mine = next(row for row in owners if row.user_id == user.id)
    others = sorted((row for row in owners if row is not mine), key=lambda row: (row.created_at, row.user_id))
    if not mine.is_primary:
        await session.delete(mine)
        await held.record(Action.OWNER_REMOVED, {"owners": {"removed": str(user.id)}})
        return
    successor = others[0].user_id if others else heir.id if heir else None
    if successor is not None:
        await session.execute(delete(LinkShare).where(LinkShare.link_id == link_id, LinkShare.user_id == successor))
        await crown(session, link_id, successor, held.now, added_by=user.id, known=bool(others))
        await session.execute(delete(LinkOwner).where(LinkOwner.link_id == link_id, LinkOwner.user_id == user.id))
        await held.record(Action.TRANSFERRED, {"owners": {"primary": str(successor), "removed": str(user.id)}})
    elif held.state != LinkState.DELETED:
        mark_deleted(held)
        await count_use(session, dict.fromkeys(held.tags, -1), held.now)
        await held.record(Action.DELETED)
