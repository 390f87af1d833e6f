"""The SQLite driver of our engines: aiosqlite, with one thread journey per statement.

SQLAlchemy's adapter makes four (open a cursor, execute, fetch, close), and each costs more than a
typical statement. Errors, cancellation and streaming are as in SQLAlchemy's adapter.
"""

# ruff: noqa: SLF001 - aiosqlite has no public way to run a function in a connection's thread

import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

import aiosqlite
from sqlalchemy.dialects.sqlite.aiosqlite import (
    AsyncAdapt_aiosqlite_connection,
    AsyncAdapt_aiosqlite_cursor,
    AsyncAdapt_aiosqlite_dbapi,
)
from sqlalchemy.util import EMPTY_DICT, await_only

CACHED_STATEMENTS = 512
"""Prepared statements that a connection keeps. The default of 128 is less than we have shapes."""


class SqliteCursor(AsyncAdapt_aiosqlite_cursor):
    """The result of a statement, fetched where it ran."""

    __slots__ = ("_description", "_lastrowid", "_rowcount", "arraysize")

    def __init__(self, connection: "SqliteConnection") -> None:
        # Without the base's constructor, which would open a cursor in the connection's thread.
        self._adapt_connection = connection
        self._connection = connection._connection
        self._soft_closed_memoized = EMPTY_DICT
        self._rows = deque()
        self._description: Any = None
        self._rowcount = -1
        self._lastrowid: int | None = None
        self.arraysize = 1

    @property
    def description(self) -> Any:
        return self._description

    @property
    def rowcount(self) -> int:
        return self._rowcount

    @property
    def lastrowid(self) -> int:
        return cast("int", self._lastrowid)

    def execute(self, operation: Any, parameters: Any = None) -> None:
        self._run("execute", operation, () if parameters is None else parameters)

    def executemany(self, operation: Any, seq_of_parameters: Any) -> None:
        self._run("executemany", operation, seq_of_parameters)

    def _run(self, method: str, operation: str, parameters: Sequence[Any]) -> None:
        connection = cast("SqliteConnection", self._adapt_connection)
        begin, connection.pending_begin = connection.pending_begin, None
        result = connection.run(_execute, begin, method, operation, parameters)
        self._description, self._rowcount, self._lastrowid, self._rows = result

    def close(self) -> None:
        self._rows.clear()

    async def _async_soft_close(self) -> None:
        """Do nothing: the driver's cursor is closed already."""


def _execute(
    connection: sqlite3.Connection,
    begin: str | None,
    method: str,
    operation: str,
    parameters: Sequence[Any],
) -> tuple[Any, int, int | None, deque[Any]]:
    """Execute a statement and fetch its rows. Runs in the connection's thread."""
    if begin is not None:
        connection.execute(begin)
    cursor = connection.cursor()
    try:
        getattr(cursor, method)(operation, parameters)
        rows = deque(cursor.fetchall() if cursor.description is not None else ())
        return cursor.description, cursor.rowcount, cursor.lastrowid, rows
    finally:
        cursor.close()


class SqliteConnection(AsyncAdapt_aiosqlite_connection):
    """A connection whose transactions begin with their first statement, if they only read."""

    __slots__ = ("_is_abandoned", "_may_have_transaction", "is_read_only", "pending_begin")

    _cursor_cls: Any = SqliteCursor

    def __init__(self, dbapi: Any, connection: aiosqlite.Connection) -> None:
        super().__init__(dbapi, cast("Any", connection))
        self.pending_begin: str | None = None
        self.is_read_only = False
        self._may_have_transaction = False
        self._is_abandoned = False
        """Whether a caller was cancelled during its statement, which may still run."""

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function with the driver's connection in its thread; return its result."""
        driver: Any = self._connection
        self._may_have_transaction = True
        try:
            return await_only(driver._execute(function, driver._connection, *arguments))
        except Exception as exc:  # noqa: BLE001 - as in the base class, which translates it
            self._handle_exception(exc)
        except BaseException:
            self._is_abandoned = True
            raise

    def cursor(self, server_side: bool = False) -> Any:
        if server_side and self.pending_begin is not None:
            begin, self.pending_begin = self.pending_begin, None
            SqliteCursor(self).execute(begin)
        return super().cursor(server_side=server_side)

    def begin(self) -> None:
        """Begin a transaction: one that writes locks now, one that reads with its first statement.

        SQLite takes its snapshot at the first statement in any case.
        """
        if self.is_read_only:
            self.pending_begin = "BEGIN"
        else:
            SqliteCursor(self).execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        super().commit()
        self._may_have_transaction = False

    def rollback(self) -> None:
        """Roll back. A transaction that only read ends without being waited for.

        The thread works in order: the next statement runs after it. Only behind a statement that
        was abandoned it would have to wait, so that connection is kept until then.
        """
        self.pending_begin = None
        if not self._may_have_transaction:
            return
        if self.is_read_only and not self._is_abandoned:
            driver: Any = self._connection
            driver._tx.put_nowait((None, self._end_reading))
        else:
            super().rollback()
        self._may_have_transaction = self._is_abandoned = False

    def _end_reading(self) -> None:
        """Roll back in the connection's thread.

        A connection that fails to is closed: its next statement raises, and the pool replaces it.
        """
        driver: Any = self._connection
        try:
            if driver._connection is not None:
                driver._connection.rollback()
        except sqlite3.Error:
            driver._running = False


class SqliteModule(AsyncAdapt_aiosqlite_dbapi):
    """The module that an engine connects with."""

    def __init__(self) -> None:
        super().__init__(aiosqlite, sqlite3)

    def connect(self, *arguments: Any, **options: Any) -> SqliteConnection:
        connection = aiosqlite.connect(*arguments, cached_statements=CACHED_STATEMENTS, **options)
        # A forgotten connection must not keep the process alive.
        connection._thread.daemon = True
        return SqliteConnection(self, await_only(connection))
