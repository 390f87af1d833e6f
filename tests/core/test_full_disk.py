"""A full database reports its state, though reads still work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import delete, text

from refract.core.db import session as db_session
from refract.core.errors import StoreFull
from refract.core.runtime import Runtime
from refract.core.worker_ids import WorkerId
from refract.server.node import ServerNode

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@asynccontextmanager
async def _no_more_pages(rt: Runtime) -> AsyncIterator[None]:
    """Make SQLite full by its own limit. The connection that writes is always the same."""
    async with rt.db.engine.connect() as connection:
        pages = await connection.scalar(text("PRAGMA page_count"))
        await connection.execute(text(f"PRAGMA max_page_count = {pages}"))
    yield
    async with rt.db.engine.connect() as connection:
        await connection.execute(text("PRAGMA max_page_count = 1000000"))


async def _fill(rt: Runtime) -> None:
    async with rt.db.write() as session:
        session.add_all(
            [
                WorkerId(worker=number, holder="x" * 32, reserved_until_ms=0)
                for number in range(1000)
            ]
        )


async def test_a_full_database_is_remembered_until_something_was_written_again(rt: Runtime) -> None:
    async with _no_more_pages(rt):
        with pytest.raises(StoreFull):
            await _fill(rt)
        assert rt.db.is_full
    assert rt.db.is_full

    await _fill(rt)

    assert not rt.db.is_full


async def test_it_is_remembered_of_enclosed_blocks_too(rt: Runtime) -> None:
    async def nothing(_session: object) -> None:
        return None

    async with _no_more_pages(rt):
        with pytest.raises(StoreFull):
            async with rt.db.join_transactions(nothing):
                await _fill(rt)
    assert rt.db.is_full
    async with rt.db.join_transactions(nothing):
        await _fill(rt)
    assert not rt.db.is_full


async def test_a_disk_without_room_is_seen_before_a_change_fails(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not rt.db.is_full
    monkeypatch.setattr(db_session, "MIN_FREE_BYTES", 1 << 62)

    assert rt.db.is_full


async def test_readiness_tells_of_it(rt: Runtime) -> None:
    node = ServerNode(rt)
    try:
        async with _no_more_pages(rt):
            with pytest.raises(StoreFull):
                await _fill(rt)
            status, state = await node.vitals.check_readiness()
            assert (status, state.status, state.dependencies["database"].status) == (
                503,
                "degraded",
                "down",
            )
            assert "full" in (state.dependencies["database"].detail or "")
            assert state.problems == [StoreFull().message]
        async with rt.db.write() as session:
            await session.execute(delete(WorkerId))
        status, state = await node.vitals.check_readiness()
        assert (status, state.status, state.problems) == (200, "ready", [])
    finally:
        if node.engine is not None:
            node.engine.spool.close()
