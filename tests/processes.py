"""Runtimes that share a database, as separate processes do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from refract.core.db.session import Database
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime


@asynccontextmanager
async def processes(rt: Runtime, count: int) -> AsyncIterator[list[Runtime]]:
    """Return runtimes with their own connection pool and worker id, as separate processes have."""
    own = [
        Runtime(
            settings=rt.settings,
            db=Database(rt.settings),
            clock=rt.clock,
            ids=SnowflakeGenerator(100 + number, rt.clock),
            secret=rt.secret,
        )
        for number in range(count)
    ]
    try:
        yield own
    finally:
        for process in own:
            await process.db.close()
