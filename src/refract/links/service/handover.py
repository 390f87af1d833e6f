"""When somebody leaves: their links pass on, or come to rest."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, update

from refract.core.db import WriteSession
from refract.core.rows import slices
from refract.identity.access import Relation
from refract.identity.models import User
from refract.links import feed, history
from refract.links.access import Standing, Who
from refract.links.history import Action
from refract.links.models import Link, LinkChange, LinkOwner, LinkShare, LinkState
from refract.links.queries.cards import tag_names
from refract.links.service.hold import Held
from refract.links.service.lifecycle import mark_deleted
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
        alone = [link_id for link_id in some if len(owners[link_id]) == 1]
        await _make_way(session, user, some if heir else sorted(set(some) - set(alone)), alone, heir)
        live = [one for one in held if one.state != LinkState.DELETED]
        news = [_part(one, user, owners[one.link.id], heir) for one in held]
        await session.flush()
        fallen = Counter(tag_id for one in live if one.state == LinkState.DELETED for tag_id in one.tags)
        await count_use(session, {tag_id: -count for tag_id, count in fallen.items()}, now)
        await feed.changed(session, [change for change in news if change is not None])
    await session.execute(delete(LinkShare).where(LinkShare.user_id == user.id))


async def _make_way(session: WriteSession, user: User, passing: Sequence[int], inherited: Sequence[int], heir: User | None) -> None:
    """The mark of the primary owner comes off before it is set anew, since the schema allows only one; an owner needs no share."""
    off = update(LinkOwner).where(LinkOwner.user_id == user.id, LinkOwner.link_id.in_(passing)).values(primary_link_id=None)
    await session.execute(off.execution_options(synchronize_session=False))
    if heir is not None:
        await session.execute(delete(LinkShare).where(LinkShare.link_id.in_(inherited), LinkShare.user_id == heir.id))


async def _hold_all(session: WriteSession, user: User, link_ids: Sequence[int], now: datetime) -> list[Held]:
    locked = select(Link).where(Link.id.in_(link_ids)).order_by(Link.id).with_for_update().execution_options(populate_existing=True)
    links = list(await session.scalars(locked))
    names = await names_of(session, Kind.LINK, link_ids)
    tags = await tag_names(session, link_ids)
    standing = Standing(Relation.PRIMARY, owns=True)
    written = set(await session.scalars(select(LinkChange.link_id).where(LinkChange.link_id.in_(link_ids), LinkChange.version == 1)))
    held = []
    for link in links:
        own = names[link.id], tags[link.id]
        one = Held(session, Who(user.id), standing, link, *own, now, history.snapshot(link, *own), tuple(names[link.id]))
        if link.id not in written:
            one.first = history.first_version(link, *own, user.id)
        held.append(one)
    return held


def _part(held: Held, user: User, owners: Sequence[LinkOwner], heir: User | None) -> feed.Change | None:
    """What becomes of one link. The rows still say who was primary, though the table no longer does."""
    session, link = held.session, held.link
    mine = next(row for row in owners if row.user_id == user.id)
    others = sorted((row for row in owners if row is not mine), key=lambda row: (row.created_at, row.user_id))
    if not mine.is_primary:
        session.sync_session.delete(mine)
        return held.note(Action.OWNER_REMOVED, {"owners": {"removed": str(user.id)}})
    if others:
        others[0].primary_link_id = link.id
    elif heir is not None:
        others = [LinkOwner(link_id=link.id, user_id=heir.id, primary_link_id=link.id, added_by=user.id, created_at=held.now)]
        session.add(others[0])
    elif held.state != LinkState.DELETED:
        mark_deleted(held)
        return held.note(Action.DELETED)
    else:
        return None
    session.sync_session.delete(mine)
    return held.note(Action.TRANSFERRED, {"owners": {"primary": str(others[0].user_id), "removed": str(user.id)}})
