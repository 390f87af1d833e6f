"""Closing a database during a query: the query finishes, and no connection stays open."""

import asyncio
from collections.abc import Callable

import psutil
import pytest
from sqlalchemy import text

from refract.core.db.raw import open_raw_reader
from refract.core.runtime import Runtime
from tests.waiting import eventually

SLOWLY = {
    "sqlite": "SELECT 1",
    "postgresql": "SELECT 1 FROM pg_sleep(0.3)",
    "mysql": "SELECT 1 + sleep(0.3)",
}


def _connections() -> int:
    """Count connections to servers; SQLite has files."""
    own = psutil.Process()
    return len(own.net_connections("tcp")) + len(
        [file for file in own.open_files() if file.path.endswith("refract.db")]
    )


async def _by_reading(rt: Runtime, asked: Callable[[], None]) -> int:
    async with rt.db.read() as session:
        await session.connection()
        asked()
        result = await session.execute(text(SLOWLY[rt.db.dialect]))
        return result.scalar_one()  # type: ignore[no-any-return]


async def _by_writing(rt: Runtime, asked: Callable[[], None]) -> int:
    async with rt.db.write() as session:
        asked()
        result = await session.execute(text(SLOWLY[rt.db.dialect]))
        return result.scalar_one()  # type: ignore[no-any-return]


async def _directly(rt: Runtime, asked: Callable[[], None]) -> int:
    reader = open_raw_reader(rt.db)
    await reader.fetch_rows("SELECT 1")
    asked()
    return int((await reader.fetch_rows(SLOWLY[rt.db.dialect]))[0][0])


@pytest.mark.parametrize("ask", [_by_reading, _by_writing, _directly])
async def test_a_question_under_way_is_answered_and_its_connection_goes(
    rt: Runtime, ask: Callable[..., asyncio.Future[int]]
) -> None:
    for engine in {rt.db.engine, rt.db.read_engine}:
        await engine.dispose()  # tests share connections to servers
    await asyncio.sleep(0.05)  # a transport is closed by the loop's next turns
    before, asked = _connections(), asyncio.Event()
    question = asyncio.ensure_future(ask(rt, asked.set))
    await asked.wait()
    assert _connections() > before

    await rt.db.close()

    assert await question == 1
    await eventually(lambda: _connections() == before)
