"""Sessions and transactions, on three databases."""

import asyncio

import pytest
from sqlalchemy import delete, insert, select, text
from sqlalchemy.exc import IntegrityError

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.core.worker_ids import WorkerId


async def _workers(rt: Runtime) -> list[int]:
    async with rt.db.read() as session:
        return list(await session.scalars(select(WorkerId.worker).order_by(WorkerId.worker)))


def _row(worker: int) -> WorkerId:
    return WorkerId(worker=worker, holder="me", reserved_until_ms=0)


async def test_a_block_that_ends_commits_and_one_that_raises_does_not(rt: Runtime) -> None:
    async with rt.db.write() as session:
        session.add(_row(1))
    with pytest.raises(RuntimeError):
        async with rt.db.write() as session:
            session.add(_row(2))
            await session.flush()
            raise RuntimeError

    assert await _workers(rt) == [1]


async def test_hooks_run_after_the_commit_and_never_without_one(rt: Runtime) -> None:
    seen: list[list[int]] = []

    async def look() -> None:
        seen.append(await _workers(rt))

    async with rt.db.write() as session:
        session.add(_row(1))
        session.after_commit(look)
    with pytest.raises(RuntimeError):
        async with rt.db.write() as session:
            session.after_commit(look)
            raise RuntimeError

    assert seen == [[1]]


async def test_a_read_session_refuses_to_write(rt: Runtime) -> None:
    async with rt.db.read() as session:
        session.add(_row(1))
        with pytest.raises(TypeError):
            await session.flush()


async def test_enclosed_blocks_share_one_transaction(rt: Runtime) -> None:
    async def first(session: WriteSession) -> None:
        session.add(_row(1))
        await session.flush()

    with pytest.raises(RuntimeError):
        async with rt.db.join_transactions(first):
            async with rt.db.write() as session:
                session.add(_row(2))
            raise RuntimeError
    assert await _workers(rt) == []

    async with rt.db.join_transactions(first):
        async with rt.db.write() as session:
            session.add(_row(2))
        async with rt.db.write() as session:
            session.add(_row(3))
    assert await _workers(rt) == [1, 2, 3]


async def test_an_error_inside_an_enclosed_block_undoes_everything_even_when_it_is_caught(
    rt: Runtime,
) -> None:
    async def nothing(_session: WriteSession) -> None:
        return None

    async with rt.db.join_transactions(nothing):
        with pytest.raises(RuntimeError):
            async with rt.db.write() as session:
                session.add(_row(1))
                await session.flush()
                raise RuntimeError

    assert await _workers(rt) == []


async def test_a_caller_that_goes_away_during_the_commit_does_not_silence_the_hooks(
    rt: Runtime,
) -> None:
    told: list[list[int]] = []

    async def tell() -> None:
        told.append(await _workers(rt))

    async def change() -> None:
        async with rt.db.write() as session:
            session.add(_row(1))
            await session.flush()
            session.after_commit(tell)
            begun.set()

    for turns in range(12):
        begun = asyncio.Event()
        told.clear()
        task = asyncio.create_task(change())
        await begun.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        assert told == ([[1]] if await _workers(rt) else [])
        async with rt.db.write() as session:
            await session.execute(delete(WorkerId))


async def test_a_hook_may_write_in_a_transaction_of_its_own(rt: Runtime) -> None:
    async def nothing(_session: WriteSession) -> None:
        return None

    async def follow_up() -> None:
        async with rt.db.write() as session:
            session.add(_row(2))

    async with rt.db.join_transactions(nothing), rt.db.write() as session:
        session.add(_row(1))
        session.after_commit(follow_up)

    assert await _workers(rt) == [1, 2]


async def test_an_error_of_the_database_never_says_what_somebody_wrote(rt: Runtime) -> None:
    """Logged and stored errors contain the statement, never a user's words."""
    with pytest.raises(IntegrityError) as caught:
        async with rt.db.write() as session:
            for _ in range(2):
                await session.execute(
                    insert(WorkerId).values(worker=1, holder="canary-words", reserved_until_ms=0)
                )

    assert "canary-words" not in str(caught.value)
    assert "worker_ids" in str(caught.value)


async def test_a_connection_lost_after_reading_does_not_fail_the_reader(rt: Runtime) -> None:
    if rt.db.dialect == "sqlite":
        return  # a file has no server that could close the connection
    own_id, cut = {
        "postgresql": ("pg_backend_pid()", "SELECT pg_terminate_backend({0})"),
        "mysql": ("connection_id()", "KILL {0}"),
    }[rt.db.dialect]

    async with rt.db.read() as session:
        connection_id = (await session.execute(text(f"SELECT {own_id}"))).scalar_one()
        async with rt.db.write() as other:
            await other.execute(text(cut.format(int(connection_id))))
        rows = await _wait_until_cut(rt, int(connection_id))

    assert rows == 0
    async with rt.db.read() as session:
        assert (await session.execute(text("SELECT 1"))).scalar_one() == 1


async def _wait_until_cut(rt: Runtime, connection_id: int) -> int:
    """Wait until the server has ended a connection; return how many of that id are left."""
    table = {
        "postgresql": "pg_stat_activity WHERE pid",
        "mysql": "information_schema.processlist WHERE id",
    }[rt.db.dialect]
    rows = 1
    while rows:
        async with rt.db.write() as session:
            query = f"SELECT count(*) FROM {table} = {connection_id}"  # noqa: S608 - no user input
            counted = await session.execute(text(query))
            rows = int(counted.scalar_one())
    return rows
