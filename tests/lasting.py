"""An event loop and connections to database servers that outlive a test.

A new connection costs a server more than most tests do: PostgreSQL starts a process, which reads
the catalogue of every table again and plans every statement anew. A connection belongs to the loop
that opened it, so tests share one, emptied after each of them: tasks are cancelled and timers
dropped, as when a loop is closed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from refract.core.db.session import Database
from refract.core.settings.model import Settings
from tests.compiled import share_compiled_statements

_engines: dict[tuple[str, int], AsyncEngine] = {}
"""By URL and size of the pool."""


class LastingLoop(asyncio.SelectorEventLoop):
    """A loop that is as good as new when it is closed, until `end`."""

    def close(self) -> None:
        for timer in self._scheduled:  # type: ignore[attr-defined]
            timer.cancel()
        self.set_exception_handler(None)
        self.set_task_factory(None)
        self.set_debug(False)

    async def shutdown_asyncgens(self) -> None:
        await super().shutdown_asyncgens()
        self._asyncgens_shutdown_called = False

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - as in the base class
    ) -> None:
        """Keep the threads."""

    def end(self) -> None:
        super().close()


@cache
def get_loop() -> LastingLoop:
    return LastingLoop()


def choose_loop_factory(item: pytest.Item) -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes the loop of a test. Those that share one with others have their own."""
    mark = item.get_closest_marker("asyncio")
    shared = mark is not None and mark.kwargs.get("loop_scope", "function") != "function"
    return asyncio.new_event_loop if shared else get_loop


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """Open a database; connections to a server are those of the tests before."""
    db = Database(settings)
    share_compiled_statements(db)
    if db.dialect == "sqlite" or asyncio.get_running_loop() is not get_loop():
        yield db
        await db.close()
        return
    key = (settings.effective_database_url, settings.database_pool_size)
    lasting = _engines.setdefault(key, db.engine)
    pool = lasting.sync_engine.pool
    # A view of it, so that listeners of a test end with the test.
    db._writer = db._reader = AsyncEngine(lasting.sync_engine.execution_options())
    yield db
    await _run_closers(db)
    if lasting.sync_engine.pool is not pool or _count_in_use(pool):  # closed, or left in use
        del _engines[key]
        await db.close()


async def _run_closers(db: Database) -> None:
    while db._closers:
        await db._closers.pop()()


def _count_in_use(pool: Any) -> int:
    return int(pool.checkedout())


def end_loop() -> None:
    """Close the connections and the loop, at the end of this process."""
    loop = get_loop()
    for engine in _engines.values():
        loop.run_until_complete(engine.dispose())
    loop.run_until_complete(asyncio.SelectorEventLoop.shutdown_default_executor(loop))
    loop.end()
