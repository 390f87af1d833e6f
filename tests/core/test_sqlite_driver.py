"""The SQLite driver: thread journeys per statement, and what a failed connection leaves behind."""

import asyncio
import logging
from typing import Any

import pytest
from sqlalchemy import Integer, column, literal, select, table, text
from sqlalchemy.exc import IntegrityError, OperationalError

from refract.core.db.prepared import PreparedSelect
from refract.core.db.sqlite_driver import MAX_DEFERRED_ROWS, DriverCall, SqliteConnection
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


async def test_a_write_is_its_statements_and_commit(rt: Runtime, journeys: Any) -> None:
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
    assert journeys() == 3


async def _make_table(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await session.execute(text("CREATE TABLE t (x INTEGER PRIMARY KEY)"))


def _insert(*values: int) -> DriverCall:
    return DriverCall("INSERT INTO t VALUES (?)", [(value,) for value in values], many=True)


async def _read(rt: Runtime) -> list[int]:
    async with rt.db.read() as session:
        return list(await session.scalars(text("SELECT x FROM t ORDER BY x")))


async def test_statements_without_a_result_travel_with_the_commit(
    rt: Runtime, journeys: Any
) -> None:
    await _make_table(rt)
    journeys()
    async with rt.db.write() as session:
        await session.execute_later(_insert(1))
        await session.execute_later(_insert(2, 3))
    assert journeys() == 1
    assert await _read(rt) == [1, 2, 3]


async def test_a_deferred_statement_is_executed_before_the_next_one(
    rt: Runtime, journeys: Any
) -> None:
    await _make_table(rt)
    journeys()
    async with rt.db.write() as session:
        await session.execute_later(_insert(1))
        assert await session.scalar(text("SELECT count(*) FROM t")) == 1
        await session.execute_later(_insert(2))
        async with session.begin_nested() as savepoint:
            await session.execute_later(_insert(3))
            await savepoint.rollback()
    assert journeys() == 5  # the query, SAVEPOINT, insert, ROLLBACK TO and the commit
    assert await _read(rt) == [1, 2]


async def test_the_error_of_a_deferred_statement_rolls_everything_back(rt: Runtime) -> None:
    await _make_table(rt)
    with pytest.raises(IntegrityError) as caught:
        async with rt.db.write() as session:
            await session.execute_later(_insert(1))
            await session.execute_later(_insert(1))
    assert caught.value.orig is not None
    assert caught.value.orig.__notes__ == ["In the deferred statement: INSERT INTO t VALUES (?)"]
    with pytest.raises(IntegrityError):
        async with rt.db.write() as session:
            await session.execute_later(_insert(1, 1))
            await session.fetch(PreparedSelect(lambda: select(literal(1))))
    assert await _read(rt) == []


async def test_nothing_deferred_survives_a_rollback(rt: Runtime, journeys: Any) -> None:
    await _make_table(rt)
    journeys()
    with pytest.raises(ZeroDivisionError):
        async with rt.db.write() as session:
            await session.execute_later(_insert(1))
            raise ZeroDivisionError
    assert journeys() == 0
    assert await _read(rt) == []


async def test_many_rows_are_not_deferred(rt: Runtime, journeys: Any) -> None:
    await _make_table(rt)
    journeys()
    async with rt.db.write() as session:
        await session.execute_later(_insert(*range(MAX_DEFERRED_ROWS)))
        assert journeys() == 0
        await session.execute_later(_insert(MAX_DEFERRED_ROWS))
        assert journeys() == 1
    assert len(await _read(rt)) == MAX_DEFERRED_ROWS + 1


async def test_a_prepared_select_sees_what_its_write_session_changed(rt: Runtime) -> None:
    await _make_table(rt)
    numbers = PreparedSelect(lambda: select(column("x", Integer)).select_from(table("t")))
    async with rt.db.write() as session:
        await session.execute_later(_insert(1))
        assert [list(row) for row in await session.fetch(numbers)] == [[1]]


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
