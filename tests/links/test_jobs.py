"""Background jobs of links."""

from datetime import timedelta

from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.ids import encode_base62
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import queries, service
from refract.links.changes import CHANGES_TOPIC, TargetChange
from refract.links.models import (
    Link,
    LinkChange,
    LinkOwner,
    LinkShare,
    LinkTag,
    LinkTombstone,
    LinkTotals,
)
from refract.names.models import Name
from refract.tags.models import Tag
from tests import make

DAY = timedelta(days=1)


async def test_seed_001_a_job_marks_expired_rows_and_moves_nothing_else(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    async with rt.db.write() as session:
        due = [
            await make.link(session, rt, ada, expires_at=clock.now() + timedelta(seconds=number))
            for number in (1, 2, 3)
        ]
        later = await make.link(session, rt, ada, expires_at=clock.now() + DAY)
        disabled = await make.link(session, rt, ada, expires_at=clock.now() + timedelta(seconds=1))
        await service.disable_link(session, make.who(ada), disabled.id, clock.now())
    clock.advance(3)
    counts = []
    for _ in range(3):
        async with rt.db.write() as session:
            counts.append(await service.mark_expired(session, clock.now(), limit=2))

    assert counts == [2, 1, 0]
    async with rt.db.read() as session:
        rows = {row.id: row for row in await session.scalars(select(Link))}
    assert [rows[link.id].status for link in (*due, later, disabled)] == ["expired"] * 3 + [
        "active",
        "disabled",
    ]
    assert all(
        (rows[link.id].version, rows[link.id].updated_at) == (1, link.updated_at) for link in due
    )


async def _purge(rt: Runtime, most: int = 500) -> tuple[int, set[int]]:
    heard: list[TargetChange] = []
    with rt.signals.subscribe(CHANGES_TOPIC, heard.extend):
        async with rt.db.write() as session:
            count = await service.purge_links(session, rt.clock.now(), 30 * DAY, most)
    return count, {change.target_id for change in heard}


async def test_seed_003_long_expired_and_long_deleted_links_are_purged_and_leave_a_tombstone(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        expired = await make.link(
            session, rt, ada, name="expired", tags=["Alpha", "beta"], expires_at=clock.now() + DAY
        )
        deleted = await make.link(session, rt, ada, name="deleted", tags=["Alpha"])
        disabled = await make.link(session, rt, ada, name="disabled", expires_at=clock.now() + DAY)
        live = await make.link(session, rt, ada, name="live", tags=["Alpha"])
        session.add(
            LinkTotals(
                link_id=expired.id, total_clicks=5, bot_clicks=0, last_clicked_at=clock.now()
            )
        )
        await service.share_link(session, make.who(ada), expired.id, bob.email, clock.now())
        await service.delete_link(session, make.who(ada), deleted.id, clock.now())
        await service.disable_link(session, make.who(ada), disabled.id, clock.now())
    clock.advance(30 * 86_400)
    assert await _purge(rt) == (1, {deleted.id})
    clock.advance(86_400)
    assert await _purge(rt) == (1, {expired.id})
    assert await _purge(rt) == (0, set())

    async with rt.db.read() as session:
        assert set(await session.scalars(select(Link.id))) == {disabled.id, live.id}
        assert set(await session.scalars(select(Name.name))) == {"disabled", "live"}
        assert set(await session.scalars(select(LinkTombstone.link_id))) == {expired.id, deleted.id}
        assert {tag.name: tag.usage_count for tag in await session.scalars(select(Tag))} == {
            "Alpha": 1,
            "beta": 0,
        }
        for model in (LinkOwner, LinkShare, LinkTag, LinkChange):
            assert set(await session.scalars(select(model.link_id))) <= {disabled.id, live.id}
        assert (
            await session.scalar(select(func.sum(LinkTotals.total_clicks))) == 5
        )  # clicks keep their link id
        assert await queries.resolve_name(session, "expired") is None
        assert await queries.resolve_name(session, encode_base62(expired.id)) is None


async def test_a_purge_goes_in_slices_and_frees_the_names(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        for number in range(5):
            await make.link(session, rt, ada, name=f"n{number}", expires_at=clock.now() + DAY)
    clock.advance(31 * 86_400)

    assert [(await _purge(rt, most=2))[0] for _ in range(4)] == [2, 2, 1, 0]
    async with rt.db.write() as session:
        await make.link(session, rt, bob, name="n0")
