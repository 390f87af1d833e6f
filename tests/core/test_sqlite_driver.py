"""The SQLite driver: thread journeys per statement, and what a failed connection leaves behind."""

import asyncio
import logging
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from refract.core.db.sqlite_driver import SqliteConnection
from refract.core.errors import StoreUnavailable
from refract.core.runtime import Runtime
from tests.client import on_sqlite

pytestmark = on_sqlite
_SLOW = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 2000000)"
    " SELECT count(*) FROM n"
)


@pytest.fixture
def journeys(caplog: pytest.LogCaptureFixture) -> Any:
    """A function that returns the journeys since its last call, as aiosqlite logs them."""
    caplog.set_level(logging.DEBUG, "aiosqlite")

    def count() -> int:
        found = [record for record in caplog.records if record.msg == "executing %s"]
        caplog.clear()
        return len(found)

    return count


async def _get_connection(session: Any) -> SqliteConnection:
    connection = (await (await session.connection()).get_raw_connection()).dbapi_connection
    assert isinstance(connection, SqliteConnection)
    return connection


async def _settle(rt: Runtime) -> None:
    """Wait until the rollback of the last read has run."""
    async with rt.db.read() as session:
        await session.execute(text("SELECT 1"))
    await asyncio.sleep(0.05)


async def test_a_statement_that_reads_is_one_journey(rt: Runtime, journeys: Any) -> None:
    await _settle(rt)
    journeys()
    async with rt.db.read() as session:
        for number in range(5):
            found = await session.execute(text("SELECT :number UNION ALL SELECT 0"), {"number": 1})
            assert len(found.all()) == 2, number
    await asyncio.sleep(0.05)
    assert journeys() == 6  # five statements, the first with BEGIN, and the end of the transaction


async def test_a_session_without_a_statement_makes_no_journey(rt: Runtime, journeys: Any) -> None:
    await _settle(rt)
    journeys()
    async with rt.db.read() as session:
        await session.connection()
    await asyncio.sleep(0.05)
    assert journeys() == 0


async def test_a_write_is_begin_its_statements_and_commit(rt: Runtime, journeys: Any) -> None:
    async with rt.db.write() as session:
        await session.execute(text("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)"))
    journeys()
    async with rt.db.write() as session:
        added = await session.execute(text("INSERT INTO t (x) VALUES ('a') RETURNING id"))
        assert added.all() == [(1,)]
        many = await session.execute(
            text("INSERT INTO t (x) VALUES (:x)"), [{"x": "b"}, {"x": "c"}]
        )
        assert many.rowcount == 2  # type: ignore[attr-defined]
    assert journeys() == 4


async def test_a_cancelled_reader_keeps_its_connection_until_the_statement_ends(
    rt: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "aiosqlite")
    started = asyncio.Event()

    async def read_slowly() -> None:
        async with rt.db.read() as session:
            await session.connection()
            started.set()
            await session.execute(text(_SLOW))

    reading = asyncio.create_task(read_slowly())
    await started.wait()
    await asyncio.sleep(0.02)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    running = [record for record in caplog.records if _SLOW in str(record.args)]
    assert [record.msg for record in running] == ["executing %s", "operation %s completed"]


async def test_a_read_transaction_keeps_its_snapshot_and_ends(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await session.execute(text("CREATE TABLE t (x)"))
    count = text("SELECT count(*) FROM t")
    async with rt.db.read() as session:
        assert await session.scalar(count) == 0
        async with rt.db.write() as writing:
            await writing.execute(text("INSERT INTO t VALUES (1)"))
        assert await session.scalar(count) == 0
    for _ in range(5):  # every connection of the pool
        async with rt.db.read() as session:
            assert await session.scalar(count) == 1


async def test_an_error_of_a_statement_leaves_the_connection_usable(rt: Runtime) -> None:
    for _ in range(5):
        with pytest.raises(OperationalError, match="no such table"):
            async with rt.db.read() as session:
                await session.execute(text("SELECT * FROM missing"))
    async with rt.db.read() as session:
        assert await session.scalar(text("SELECT 1")) == 1


async def test_a_connection_whose_rollback_failed_is_replaced(rt: Runtime) -> None:
    async with rt.db.read() as session:
        await session.execute(text("SELECT 1"))
        broken = await _get_connection(session)
        driver: Any = broken._connection
        await driver._execute(driver._connection.close)
    with pytest.raises(StoreUnavailable):
        async with rt.db.read() as session:
            await session.execute(text("SELECT 1"))
    async with rt.db.read() as session:
        assert await session.scalar(text("SELECT 1")) == 1
        assert await _get_connection(session) is not broken


async def test_rows_can_be_streamed(rt: Runtime) -> None:
    numbers = text(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 5000) SELECT x FROM n"
    )
    async with rt.db.read() as session:
        result = await session.stream(numbers)
        assert sum([row[0] async for row in result]) == 5000 * 5001 // 2
