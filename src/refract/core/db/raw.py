"""Reads below the ORM: one prepared statement at driver level, for very frequent queries.

On SQLite the statement runs on the event loop itself: a read of a WAL database waits for no writer
and takes microseconds, a thread would cost ten times that. Database servers get a few separate
connections, created like all others but outside the pool.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from refract.core.db.driver_errors import translate_driver_error
from refract.core.errors import StoreBusy, StoreDamaged, StoreUnavailable
from refract.core.ids import IdSource
from refract.core.settings.model import Settings
from refract.core.signals import Signals

if TYPE_CHECKING:
    from refract.core.db.session import Database

RawRow = Sequence[Any]
BUSY_TIMEOUT = 0.25
BUSY_RETRY_SECONDS = 0.005
READER_CACHE_KIB = 2_000
"""SQLite's own cache of a reading connection, of which each process has several.

What it does not hold comes from the system's cache, which all of them share.
"""


class RawReader(Protocol):
    """A reader of one database. Every failure to answer raises `Unavailable`."""

    async def fetch_rows(self, statement: str, *values: object) -> Sequence[RawRow]:
        """Return all rows of a statement with `?` placeholders.

        Read datetimes with `parse_db_time`.
        """

    async def close(self) -> None: ...


class SqliteFile:
    """A SQLite database that a process only reads with raw readers. It has no sessions."""

    def __init__(self, settings: Settings) -> None:
        self.dialect: Literal["sqlite"] = "sqlite"
        self.sqlite_path = parse_sqlite_path(settings.effective_database_url)
        self.signals = Signals()
        self.ids: IdSource | None = None
        self.is_damaged = False
        self._closers: list[Callable[[], Awaitable[None]]] = []

    def on_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Register a function that closes connections."""
        self._closers.append(closer)

    async def close(self) -> None:
        """Close the connections."""
        while self._closers:
            await self._closers.pop()()


def parse_sqlite_path(url: str) -> str:
    """Return the path of the file in a URL of SQLite, as SQLAlchemy does."""
    return url.partition("://")[2].removeprefix("/").partition("?")[0]


def open_raw_reader(db: "Database | SqliteFile", *, connections: int = 1) -> RawReader:
    """Open a reader of this database, with up to `connections` concurrent queries on a server."""
    reader: RawReader
    if db.dialect == "sqlite":
        reader = SqliteRawReader(db)
    else:
        from refract.core.db.raw_servers import open_server_reader  # noqa: PLC0415 - loads much

        reader = open_server_reader(db, connections)
    db.on_close(reader.close)
    return reader


class SqliteRawReader:
    """A read-only connection."""

    def __init__(self, db: "Database | SqliteFile") -> None:
        self._db = db
        self._connection: sqlite3.Connection | None = None

    async def fetch_rows(self, statement: str, *values: object) -> Sequence[RawRow]:
        deadline = asyncio.get_running_loop().time() + BUSY_TIMEOUT
        while True:
            try:
                return self._query(statement, values)
            except sqlite3.OperationalError as exc:
                if exc.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    await self.close()
                    raise (translate_driver_error(exc) or StoreUnavailable()) from exc
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
            # The log is being recovered: rare, and over soon.
            await asyncio.sleep(BUSY_RETRY_SECONDS)

    def _query(self, statement: str, values: tuple[object, ...]) -> Sequence[RawRow]:
        if self._connection is None:
            self._connection = sqlite3.connect(
                f"file:{self._db.sqlite_path}?mode=ro", uri=True, isolation_level=None, timeout=0
            )
            self._connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
        found: list[RawRow] = self._connection.execute(statement, values).fetchall()
        return found

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def parse_db_time(value: object) -> datetime | None:
    """Return a datetime from any driver's value: text on SQLite, naive (UTC) on MariaDB."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value
