"""Databases that are emptied between tests, over connections that stay open.

A new connection to PostgreSQL is a new process that reads the catalogue of every table again: 20 ms
of the server's CPU time for each test.
"""

import asyncio
import contextlib
from collections.abc import Collection, Coroutine
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import delete, inspect, table, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from refract.core.db.session import Database
from refract.core.settings.model import Settings

Result = TypeVar("Result")
_IGNORE_KEYS = {
    "postgresql": (
        "SET session_replication_role = replica",
        "SET session_replication_role = DEFAULT",
    ),
    "mysql": ("SET FOREIGN_KEY_CHECKS = 0", "SET FOREIGN_KEY_CHECKS = 1"),
}
_open: dict[str, tuple[Database, AsyncConnection, list[str]]] = {}
"""By URL, the database with the connection that empties it, and its tables."""


@cache
def _get_runner() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=asyncio.new_event_loop)  # leaves the loop of tests alone


def run_beside_tests(work: Coroutine[Any, Any, Result]) -> Result:
    """Run on an event loop that lasts as long as this process, between the loops of tests."""
    return _get_runner().run(work)


async def find_filled(connection: AsyncConnection, names: Collection[str]) -> list[str]:
    """Return the tables that have rows. Most are empty, and one query tells which."""
    each = (f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in names)  # noqa: S608
    return list((await connection.execute(text(" UNION ALL ".join(each)))).scalars())


async def empty_database(settings: Settings) -> None:
    """Remove every row, so that the next test starts from nothing."""
    try:
        await _empty(settings)
    except DBAPIError:  # a test has restarted the server
        await _close(settings.effective_database_url)
        await _empty(settings)


async def _empty(settings: Settings) -> None:
    url = settings.effective_database_url
    if url not in _open:
        db = Database(settings)
        connection = await db.engine.connect()
        found = await connection.run_sync(lambda plain: inspect(plain).get_table_names())
        _open[url] = (db, connection, [name for name in found if name != "alembic_version"])
    _, connection, names = _open[url]
    filled = await find_filled(connection, names)
    before, after = _IGNORE_KEYS[connection.dialect.name]
    await connection.execute(text(before))
    for name in filled:
        await connection.execute(delete(table(name)))
    await connection.execute(text(after))
    await connection.commit()


async def _close(url: str) -> None:
    db, connection, _ = _open.pop(url)
    with contextlib.suppress(DBAPIError):
        await connection.close()
    await db.close()


def close_databases() -> None:
    """Close every connection and the loop, at the end of this process."""
    for url in list(_open):
        run_beside_tests(_close(url))
    _get_runner().close()
