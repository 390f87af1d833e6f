"""The SQLite driver of our engines: aiosqlite, with at most one thread journey per statement.

SQLAlchemy's adapter makes four (open a cursor, execute, fetch, close), and each costs more than a
typical statement. A transaction begins in the journey of its first statement, and statements whose
result is not needed wait for the next one. Errors, cancellation and streaming are as in
SQLAlchemy's adapter.
"""

# ruff: noqa: SLF001 - aiosqlite has no public way to run a function in a connection's thread

import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import aiosqlite
from sqlalchemy.dialects.sqlite.aiosqlite import (
    AsyncAdapt_aiosqlite_connection,
    AsyncAdapt_aiosqlite_cursor,
    AsyncAdapt_aiosqlite_dbapi,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.util import EMPTY_DICT, await_only

CACHED_STATEMENTS = 512
"""Prepared statements that a connection keeps. The default of 128 is less than we have shapes."""
MAX_DEFERRED_ROWS = 500
"""Rows of deferred statements that may wait in memory."""


class DriverCall(NamedTuple):
    """A statement as the driver takes it. `parameters` are those of one row or of many rows."""

    operation: str
    parameters: Sequence[Any] = ()
    many: bool = False


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
        self._run(DriverCall(operation, () if parameters is None else parameters))

    def executemany(self, operation: Any, seq_of_parameters: Any) -> None:
        self._run(DriverCall(operation, seq_of_parameters, many=True))

    def _run(self, call: DriverCall) -> None:
        connection = cast("SqliteConnection", self._adapt_connection)
        result = connection.run(_execute, connection.take_pending(), call)
        self._description, self._rowcount, self._lastrowid, self._rows = result

    def close(self) -> None:
        self._rows.clear()

    async def _async_soft_close(self) -> None:
        """Do nothing: the driver's cursor is closed already."""


_Result = tuple[Any, int, int | None, deque[Any]]


def _execute(
    connection: sqlite3.Connection, pending: Sequence[DriverCall], call: DriverCall
) -> _Result:
    """Execute the pending statements and one more, and fetch its rows.

    Runs in the connection's thread.
    """
    _execute_pending(connection, pending)
    cursor = connection.cursor()
    try:
        (cursor.executemany if call.many else cursor.execute)(call.operation, call.parameters)
        rows = deque(cursor.fetchall() if cursor.description is not None else ())
        return cursor.description, cursor.rowcount, cursor.lastrowid, rows
    finally:
        cursor.close()


def _fetch(
    connection: sqlite3.Connection, pending: Sequence[DriverCall], call: DriverCall
) -> list[Any]:
    _execute_pending(connection, pending)
    return connection.execute(call.operation, call.parameters).fetchall()


def _commit(connection: sqlite3.Connection, pending: Sequence[DriverCall]) -> None:
    _execute_pending(connection, pending)
    connection.commit()


def _execute_pending(connection: sqlite3.Connection, pending: Sequence[DriverCall]) -> None:
    for call in pending:
        try:
            (connection.executemany if call.many else connection.execute)(
                call.operation, call.parameters
            )
        except sqlite3.Error as exc:
            exc.add_note(f"In the deferred statement: {call.operation}")
            raise


class SqliteConnection(AsyncAdapt_aiosqlite_connection):
    """A connection whose transactions begin with their first statement.

    SQLite takes its snapshot then in any case, and the lock of a writer is not needed earlier.
    """

    __slots__ = ("_is_abandoned", "_may_have_transaction", "_pending", "is_read_only")

    _cursor_cls: Any = SqliteCursor

    def __init__(self, dbapi: Any, connection: aiosqlite.Connection) -> None:
        super().__init__(dbapi, cast("Any", connection))
        self._pending: list[DriverCall] = []
        """Statements to be executed before the next one: BEGIN, and those that were deferred."""
        self.is_read_only = False
        self._may_have_transaction = False
        self._is_abandoned = False
        """Whether a caller was cancelled during its statement, which may still run."""

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function with the driver's connection in its thread; return its result."""
        try:
            return await_only(self._journey(function, *arguments))
        except Exception as exc:  # noqa: BLE001 - as in the base class, which translates it
            self._handle_exception(exc)

    async def _journey(self, function: Callable[..., Any], *arguments: Any) -> Any:
        driver: Any = self._connection
        self._may_have_transaction = True
        try:
            return await driver._execute(function, driver._connection, *arguments)
        except BaseException as exc:
            self._is_abandoned |= not isinstance(exc, Exception)  # cancelled
            raise

    async def fetch_rows(self, statement: str, *values: object) -> Sequence[Sequence[Any]]:
        """Return the rows of a statement in this transaction. Raises the errors of SQLAlchemy."""
        try:
            rows: list[Any] = await self._journey(
                _fetch, self.take_pending(), DriverCall(statement, values)
            )
        except (sqlite3.Error, ValueError) as exc:
            raise DBAPIError.instance(
                statement, None, exc, sqlite3.Error, hide_parameters=True
            ) from exc
        return rows

    def take_pending(self) -> Sequence[DriverCall]:
        """Return the statements to be executed before the next one, which the caller executes."""
        pending, self._pending = self._pending, []
        return pending

    def defer(self, deferred: DriverCall) -> bool:
        """Execute a statement of this transaction before the next one, or before the commit.

        Its errors are raised there. Return False if too much is deferred already.
        """
        calls = [*self._pending, deferred]
        rows = sum(len(call.parameters) if call.many else bool(call.parameters) for call in calls)
        if rows > MAX_DEFERRED_ROWS:
            return False
        self._pending.append(deferred)
        return True

    def cursor(self, server_side: bool = False) -> Any:
        if server_side and self._pending:
            self.run(_execute_pending, self.take_pending())
        return super().cursor(server_side=server_side)

    def begin(self) -> None:
        """Begin a transaction with its first statement. One that writes takes the lock then."""
        self._pending = [DriverCall("BEGIN" if self.is_read_only else "BEGIN IMMEDIATE")]

    def commit(self) -> None:
        """Commit what was executed or deferred. There may be nothing."""
        pending, driver = self.take_pending(), cast("Any", self._connection)
        if driver._connection and (self._may_have_transaction or len(pending) > 1):
            self.run(_commit, pending)
        self._may_have_transaction = False

    def rollback(self) -> None:
        """Roll back. A transaction that only read ends without being waited for.

        The thread works in order: the next statement runs after it. Only behind a statement that
        was abandoned it would have to wait, so that connection is kept until then.
        """
        self._pending.clear()
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
