"""The change feed: published with the transaction, trimmed without losing its end."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from refract.core.runtime import Runtime
from refract.links import feed
from refract.links.changes import CHANGES_TOPIC, TargetChange
from refract.links.models import FeedEntry


async def _tell(rt: Runtime, *targets: int) -> None:
    async with rt.db.write() as session:
        await feed.publish_changes(
            session, [TargetChange(target, 1, ("name",)) for target in targets]
        )


async def _trim(rt: Runtime, before: datetime, most: int = 100) -> int:
    async with rt.db.write() as session:
        return await feed.trim_feed(session, before, most)


async def test_a_change_is_told_in_this_process_when_it_is_committed_and_not_before(
    rt: Runtime,
) -> None:
    heard: list[TargetChange] = []
    with rt.signals.subscribe(CHANGES_TOPIC, heard.extend):
        async with rt.db.write() as session:
            await feed.publish_changes(session, [TargetChange(7, 2, ("a", "b"))])
            assert heard == []
        assert heard == [TargetChange(7, 2, ("a", "b"))]
        with pytest.raises(LookupError):
            async with rt.db.write() as session:
                await feed.publish_changes(session, [TargetChange(8, 1, ())])
                raise LookupError
        assert len(heard) == 1


async def test_an_empty_feed_can_be_trimmed(rt: Runtime) -> None:
    assert await _trim(rt, datetime.now(UTC)) == 0


async def test_trimming_goes_in_slices_and_keeps_the_newest(rt: Runtime) -> None:
    await _tell(rt, *range(1, 11))
    later = datetime.now(UTC) + timedelta(seconds=1)

    assert await _trim(rt, later - timedelta(hours=1)) == 0
    assert [await _trim(rt, later, 4) for _ in range(4)] == [4, 4, 1, 0]
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(FeedEntry)) == 1
