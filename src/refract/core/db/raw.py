"""Reading below the ORM: one prepared statement, straight to the driver, for what is asked too often to pay for more.

On SQLite the statement runs on the event loop itself: a read of a WAL database waits for no writer and takes microseconds, a
thread would cost ten times that. Servers get a few connections of their own, made like all others but outside the pool.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from typing import Any, Protocol

from sqlalchemy.exc import SQLAlchemyError

from refract.core.db.engine import CONNECT_TIMEOUT
from refract.core.db.session import Database
from refract.core.errors import StoreBusy, StoreDamaged, StoreUnavailable

RawRow = Sequence[Any]
BUSY_TIMEOUT = 0.25
BUSY_RETRY_SECONDS = 0.005
_CONNECTION_ERRORS: tuple[type[Exception], ...] = (OSError, EOFError, SQLAlchemyError)


class RawReader(Protocol):
    """Asks one database. Anything that keeps it from answering is `Unavailable`."""

    async def fetch_rows(self, statement: str, *values: object) -> Sequence[RawRow]:
        """All rows of a statement, whose values stand as `?`. Moments are read by `moment`."""

    async def close(self) -> None: ...


def open_raw_reader(db: Database, *, connections: int = 1) -> RawReader:
    """A reader for this database. `connections` is how many questions a server is asked at a time."""
    reader: RawReader
    if db.dialect == "sqlite":
        reader = SqliteRawReader(db)
    else:
        reader = (
            PostgresRawReader(db, connections)
            if db.dialect == "postgresql"
            else MysqlRawReader(db, connections)
        )
    db.on_close(reader.close)
    return reader


class SqliteRawReader:
    """A connection that can only read."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._path = db.url.database or ""
        self._connection: sqlite3.Connection | None = None

    async def fetch_rows(self, statement: str, *values: object) -> Sequence[RawRow]:
        deadline = asyncio.get_running_loop().time() + BUSY_TIMEOUT
        while True:
            try:
                return self._query(statement, values)
            except sqlite3.OperationalError as exc:
                if exc.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    await self.close()
                    raise StoreUnavailable from exc
                if asyncio.get_running_loop().time() >= deadline:
                    raise StoreBusy from exc
            except sqlite3.Error as exc:
                await self.close()
                if getattr(exc, "sqlite_errorcode", 0) & 0xFF in (
                    sqlite3.SQLITE_CORRUPT,
                    sqlite3.SQLITE_NOTADB,
                ):
                    self._db.is_damaged = True
                    raise StoreDamaged from exc
                raise StoreUnavailable from exc
            await asyncio.sleep(
                BUSY_RETRY_SECONDS
            )  # the log is being recovered: rare, and soon over

    def _query(self, statement: str, values: tuple[object, ...]) -> Sequence[RawRow]:
        if self._connection is None:
            self._connection = sqlite3.connect(
                f"file:{self._path}?mode=ro", uri=True, isolation_level=None, timeout=0
            )
            self._connection.execute("PRAGMA cache_size = -8000")
        found: list[RawRow] = self._connection.execute(statement, values).fetchall()
        return found

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class _ServerRawReader:
    """A few connections. One that failed is never used again, and neither are those that were idle beside it."""

    _errors = _CONNECTION_ERRORS

    def __init__(self, db: Database, connections: int) -> None:
        self._db = db
        self._free: list[Any] = []
        self._slots = asyncio.Semaphore(connections)
        self._closed = False

    async def fetch_rows(self, statement: str, *values: object) -> Sequence[RawRow]:
        async with self._slots:
            while self._free:
                connection = self._free.pop()
                try:
                    return await self._query(connection, statement, values)
                except self._errors:
                    self._drop_free()  # the server was restarted, perhaps: the next connection is a new one
            try:
                return await self._query(await self._connect(), statement, values)
            except self._errors as exc:
                raise StoreUnavailable from exc

    async def _query(
        self, connection: Any, statement: str, values: tuple[object, ...]
    ) -> Sequence[RawRow]:
        """Ask, and keep the connection for the next question; after an error, or cut short, it is in no state to be asked again."""
        try:
            found = await self._fetch(connection, statement, values)
        except BaseException:
            self._drop(connection)
            raise
        if self._closed:
            self._drop(connection)
        else:
            self._free.append(connection)
        return found

    async def _connect(self) -> Any:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            return await open_detached_connection(self._db)

    async def _fetch(
        self, connection: Any, statement: str, values: tuple[object, ...]
    ) -> Sequence[RawRow]:
        raise NotImplementedError

    def _drop(self, connection: Any) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        self._closed = True  # a question under way is answered, but its connection is not kept
        self._drop_free()

    def _drop_free(self) -> None:
        free, self._free = self._free, []
        for connection in free:
            self._drop(connection)


class PostgresRawReader(_ServerRawReader):
    """asyncpg prepares a statement the first time a connection sees it."""

    def __init__(self, db: Database, connections: int) -> None:
        super().__init__(db, connections)
        adapter = db.engine.dialect.loaded_dbapi
        driver = adapter.asyncpg
        # The third is what it says of a connection that was taken away from under it, the last what a pool says that could not connect.
        self._errors = (
            driver.PostgresError,
            driver.InterfaceError,
            driver.InternalClientError,
            adapter.Error,
            *_CONNECTION_ERRORS,
        )

    async def _fetch(
        self, connection: Any, statement: str, values: tuple[object, ...]
    ) -> Sequence[RawRow]:
        found: Sequence[RawRow] = await connection.fetch(_number_placeholders(statement), *values)
        return found

    def _drop(self, connection: Any) -> None:
        connection.terminate()


class MysqlRawReader(_ServerRawReader):
    """asyncmy writes the values into the statement itself."""

    def __init__(self, db: Database, connections: int) -> None:
        super().__init__(db, connections)
        self._errors = (db.engine.dialect.loaded_dbapi.Error, *_CONNECTION_ERRORS)

    async def _connect(self) -> Any:
        connection = await super()._connect()
        await connection.autocommit(
            True
        )  # each question sees what is committed by then, and none leaves a transaction open
        return connection

    async def _fetch(
        self, connection: Any, statement: str, values: tuple[object, ...]
    ) -> Sequence[RawRow]:
        async with connection.cursor() as cursor:
            await cursor.execute(statement.replace("?", "%s"), values)
            found: Sequence[RawRow] = await cursor.fetchall()
            return found

    def _drop(self, connection: Any) -> None:
        connection.close()


async def open_detached_connection(db: Database) -> Any:
    """A driver's connection, made like all others but taken out of the pool, which it would otherwise make smaller for good."""
    proxied = await db.engine.raw_connection()
    connection: Any = proxied.driver_connection
    proxied.detach()
    return connection


def parse_db_time(value: object) -> datetime | None:
    """An instant as any of the drivers gives it: text on SQLite, without its zone (UTC) on MariaDB."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value


@lru_cache(maxsize=64)
def _number_placeholders(statement: str) -> str:
    number = count(1)
    return "".join(f"${next(number)}" if character == "?" else character for character in statement)
