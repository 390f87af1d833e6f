"""Read and write sessions, the same on three databases.

The edge (a route, a job, a command) opens the transaction; services take the session and never
commit.
"""

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from sqlalchemy import event, make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from refract.core.db.engine import LOCK_TIMEOUT, create_server_engine, create_sqlite_engine
from refract.core.db.errors import translate_db_error
from refract.core.db.prepared import DriverReader, PreparedRow, PreparedSelect
from refract.core.db.raw import open_raw_reader
from refract.core.db.sqlite_driver import DriverCall, SqliteConnection
from refract.core.errors import StoreDamaged, StoreFull
from refract.core.ids import IdSource
from refract.core.settings.model import Dialect, Settings
from refract.core.signals import Signals

MIN_FREE_BYTES = 256 * 1024
"""Free bytes on the disk of a SQLite file below which the next change may fail."""
ANALYSIS_LIMIT = 1_000
"""Rows of each index that SQLite reads for its statistics."""
CommitHook = Callable[[], Awaitable[None] | None]


class ReadSession(AsyncSession):
    """A session that only reads. Nothing added to it is ever written."""

    async def fetch(self, prepared: PreparedSelect, **values: Any) -> Sequence[PreparedRow]:
        """Return the rows of a prepared select, with these values for its parameters.

        Instances may be detached from the session. They are those of the session if it writes.
        """
        reader = await self._get_reader(prepared)
        if reader is None:
            found = await self.execute(prepared.statement, values)
            return list(found.all())
        return await prepared.fetch(reader, self.get_bind().dialect, values)

    async def _get_reader(self, prepared: PreparedSelect) -> DriverReader | None:
        """Return what runs a prepared select below SQLAlchemy, if anything may."""
        reader: DriverReader | None = self.info.get("loop_reader")
        if reader is None or self.is_observed:
            return None
        return await self._get_driver() if prepared.in_thread else reader

    async def _get_driver(self) -> SqliteConnection:
        """Return the connection below SQLAlchemy, on SQLite."""
        proxied = await (await self.connection()).get_raw_connection()
        return cast("SqliteConnection", proxied.dbapi_connection)

    @property
    def is_observed(self) -> bool:
        """Return whether statements are observed (tracing, tests), which only SQLAlchemy allows."""
        return bool(self.get_bind().dispatch.before_cursor_execute)

    @property
    def dialect(self) -> Dialect:
        return get_dialect(self.get_bind().dialect.name)


class WriteSession(ReadSession):
    """A session inside a transaction that its opener commits."""

    @property
    def signals(self) -> Signals:
        """Return the signals that announce a commit in this process."""
        signals: Signals = self.info["signals"]
        return signals

    @property
    def ids(self) -> IdSource:
        """Return the process's source of ids, for rows that are written below the edge."""
        ids: IdSource | None = self.info["ids"]
        assert ids is not None  # noqa: S101 - set by every runtime
        return ids

    async def execute_later(self, call: DriverCall) -> None:
        """Execute a statement at driver level, without its result.

        On SQLite it may wait for the next statement or the commit, which then raises its errors:
        a statement of its own would cost a thread journey.
        """
        driver = self._get_sqlite_connection()
        if driver is None or not driver.defer(call):
            connection = await self.connection()
            parameters = call.parameters if call.many else tuple(call.parameters)
            await connection.exec_driver_sql(call.operation, cast("Any", parameters))

    async def _get_reader(self, prepared: PreparedSelect) -> DriverReader | None:
        driver = self._get_sqlite_connection()
        if driver is None or prepared.has_entities:  # those must be instances of this session
            return None
        if self.new or self.dirty or self.deleted:
            await self.flush()
        return driver

    def _get_sqlite_connection(self) -> SqliteConnection | None:
        """Return the connection below SQLAlchemy, if statements are not observed.

        Not inside a savepoint, which SQLAlchemy creates with the first statement that it sees.
        """
        driver: SqliteConnection | None = self.info.get("driver")
        if driver is None or self.is_observed or self.in_nested_transaction():
            return None
        return driver

    async def begin_writing(self) -> None:
        """Begin the transaction, with a connection of the pool."""
        await self.connection()
        if self.dialect == "sqlite":
            self.info["driver"] = await self._get_driver()

    async def take_lock(self) -> None:
        """Wait for SQLite's lock of writers now, not with the first statement."""
        driver: SqliteConnection | None = self.info.get("driver")
        if driver is not None:
            await driver.fetch_rows("SELECT 1")

    def after_commit(self, hook: CommitHook) -> None:
        """Run the hook once, after the commit; not if the transaction fails."""
        self.info.setdefault("after_commit", []).append(hook)


class _ReadOnlySession(Session):
    def flush(self, objects: Any = None) -> None:
        if self.new or self.dirty or self.deleted:
            problem = "a read session was asked to write"
            raise TypeError(problem)
        super().flush(objects)


def get_dialect(name: str) -> Dialect:
    return (
        "mysql"
        if name in ("mysql", "mariadb")
        else "postgresql"
        if name == "postgresql"
        else "sqlite"
    )


class JoinedTransaction:
    """One transaction around several blocks.

    The first `write()` opens it, later ones join, the owner ends it.
    """

    def __init__(self, db: "Database", begin: Callable[[WriteSession], Awaitable[None]]) -> None:
        self.db = db
        self.session: WriteSession | None = None
        self.failed = False
        self._begin = begin

    async def join(self) -> WriteSession:
        if self.session is None:
            self.session = self.db.open_write_session()
            await self.session.begin_writing()
            await self.session.take_lock()  # the errors of `begin` are about its own statements
            await self._begin(self.session)
        return self.session


_joined_transaction: ContextVar[JoinedTransaction | None] = ContextVar(
    "refract_enclosing", default=None
)


class Database:
    """Engines and sessions.

    On SQLite one connection writes and others read; servers have one pool.
    """

    def __init__(self, settings: Settings) -> None:
        url = make_url(settings.effective_database_url)
        self.dialect: Dialect = settings.dialect
        self.url = url
        self.signals = Signals()
        self.ids: IdSource | None = None
        self._disk_was_full = False
        self.is_damaged = False
        """Set when the database was found to be damaged, and never reset while a server runs."""
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._reader_info: dict[str, Any] = {}
        if self.dialect == "sqlite":
            self._writer = create_sqlite_engine(url, write=True)
            self._reader = create_sqlite_engine(url, write=False)
            self._reader_info["loop_reader"] = open_raw_reader(self)
        else:
            self._writer = self._reader = create_server_engine(
                url, self.dialect, settings.database_pool_size
            )

    @property
    def sqlite_path(self) -> str:
        """Return the path of a SQLite file; empty for a server."""
        return (self.url.database or "") if self.dialect == "sqlite" else ""

    @property
    def is_full(self) -> bool:
        """Return whether the disk is full, by the last write or by the free space.

        Reads may still work.
        """
        return self._disk_was_full or (
            self.dialect == "sqlite" and _get_free_bytes(self.sqlite_path) < MIN_FREE_BYTES
        )

    async def checkpoint(self) -> None:
        """Write SQLite's log into its file and truncate it, so that no deleted data stays in it.

        While others read, as much as possible is written, and the rest next time. Database servers
        need no checkpoint.
        """
        if self.dialect != "sqlite":
            return
        with _translate_errors(self, writing=True):
            await self._truncate_wal()

    async def _truncate_wal(self) -> None:
        async with self._writer.connect() as connection:
            # At driver level: SQLAlchemy would begin a transaction, in which no checkpoint is
            # possible.
            driver: Any = (await connection.get_raw_connection()).driver_connection
            cursor = await driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            await cursor.close()

    async def update_statistics(self) -> None:
        """Let SQLite's query planner know how large tables and indexes are.

        Servers do so themselves. Only a sample of each index is read, so the time hardly depends
        on the size. Connections notice it when they are opened, see `READER_LIFETIME`.
        """
        if self.dialect != "sqlite":
            return
        with _translate_errors(self, writing=True):
            async with self._writer.connect() as connection:
                driver: Any = (await connection.get_raw_connection()).driver_connection
                for statement in (f"PRAGMA analysis_limit = {ANALYSIS_LIMIT}", "ANALYZE"):
                    await (await driver.execute(statement)).close()

    async def open_connections(self, count: int) -> None:
        """Open connections to a server before they are needed; none if it is unavailable."""
        if self.dialect == "sqlite":
            return
        opening = (self._writer.connect().start() for _ in range(count))
        for opened in await asyncio.gather(*opening, return_exceptions=True):
            if isinstance(opened, AsyncConnection):
                await opened.close()

    def mark_full(self) -> None:
        self._disk_was_full = True

    @property
    def engine(self) -> AsyncEngine:
        """Return the engine that writes, for migrations and bulk statements at driver level."""
        return self._writer

    @property
    def read_engine(self) -> AsyncEngine:
        return self._reader

    def open_write_session(self) -> WriteSession:
        return WriteSession(
            self._writer,
            expire_on_commit=False,
            autoflush=True,
            info={"signals": self.signals, "ids": self.ids},
        )

    @asynccontextmanager
    async def read(self) -> AsyncIterator[ReadSession]:
        """Open a session for reading.

        It sees what was committed when its first statement ran, or later.
        """
        session = ReadSession(
            self._reader,
            sync_session_class=_ReadOnlySession,
            expire_on_commit=False,
            autoflush=False,
            info=self._reader_info,
        )
        try:
            with _translate_errors(self):
                yield session
        finally:
            if session.in_transaction():
                await _shield(_close_reader(session))

    @asynccontextmanager
    async def write(self) -> AsyncIterator[WriteSession]:
        """Open a transaction: committed at the end of the block, rolled back if it raises.

        Hooks run after the commit.
        """
        joined = _joined_transaction.get()
        if joined is not None and joined.db is self:
            with _translate_errors(self, writing=True):
                try:
                    yield await joined.join()
                except BaseException:
                    joined.failed = True
                    raise
            return
        session = self.open_write_session()
        with _translate_errors(self, writing=True):
            try:
                await session.begin_writing()
                yield session
                await _shield(self._commit(session))
            except BaseException:
                await _roll_back(session)
                raise
            finally:
                await _shield(session.close())

    @asynccontextmanager
    async def join_transactions(
        self, begin: Callable[[WriteSession], Awaitable[None]]
    ) -> AsyncIterator[JoinedTransaction]:
        """Let every `write()` of this task share one transaction.

        It commits when this block ends. `begin` runs in it first. Nothing is opened for a task that
        never writes.
        """
        joined = JoinedTransaction(self, begin)
        token = _joined_transaction.set(joined)
        with _translate_errors(self, writing=True):
            try:
                try:
                    yield joined
                finally:
                    # Before the hooks run: their writes are not part of this transaction.
                    _joined_transaction.reset(token)
                if joined.session is not None:
                    await (
                        _roll_back(joined.session)
                        if joined.failed
                        else _shield(self._commit(joined.session))
                    )
            except BaseException:
                joined.failed = True
                if joined.session is not None:
                    await _roll_back(joined.session)
                raise
            finally:
                if joined.session is not None:
                    await _shield(joined.session.close())

    async def _commit(self, session: WriteSession) -> None:
        """Commit and run the hooks.

        They belong together: a change without its hooks would leave stale caches.
        """
        hooks = session.info.pop("after_commit", [])
        await session.commit()
        self._disk_was_full = False
        await session.close()
        for hook in hooks:
            result = hook()
            if inspect.isawaitable(result):
                await result

    def on_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Register a function that closes separate connections."""
        self._closers.append(closer)

    async def close(self) -> None:
        """Close the engines. Running queries may finish; their connections are not kept."""
        while self._closers:
            await self._closers.pop()()
        for engine in {self._writer, self._reader}:
            event.listen(engine.sync_engine, "checkin", _invalidate_connection)
            await engine.dispose()


def _invalidate_connection(_connection: object, entry: ConnectionPoolEntry) -> None:
    entry.invalidate()


async def _close_reader(session: ReadSession) -> None:
    """Close a session that has read everything it needs, even if its connection was lost."""
    try:
        await session.close()
    except Exception:  # noqa: BLE001 - any error of a lost connection; the rows are read
        await session.invalidate()


async def _roll_back(session: WriteSession) -> None:
    session.info.pop("after_commit", None)
    try:
        await _shield(_roll_back_session(session))
    except Exception:  # noqa: BLE001 - any error of a lost connection
        await session.invalidate()  # the connection is gone, and with it the transaction


async def _roll_back_session(session: WriteSession) -> None:
    async with asyncio.timeout(LOCK_TIMEOUT):
        await session.rollback()


async def _shield(work: Coroutine[Any, Any, None]) -> None:
    """Run this to its end, even if we are cancelled meanwhile; then raise the cancellation.

    A bare shield would continue immediately, and the next call would use the session in the middle
    of this one.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as exc:
            if task.cancelled():
                raise
            cancelled = exc
    task.result()
    if cancelled is not None:
        raise cancelled


class _translate_errors:  # noqa: N801 - used like a function
    """Translate driver errors that time or an operator can fix; remember a full disk and damage."""

    def __init__(self, db: Database, *, writing: bool = False) -> None:
        self._db = db
        self._writing = writing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        translated = translate_db_error(error) if error is not None else None
        if isinstance(translated or error, StoreFull) and self._writing:
            self._db.mark_full()
        if isinstance(translated or error, StoreDamaged):
            self._db.is_damaged = True
        if translated is not None:
            raise translated from error


def _get_free_bytes(path: str) -> int:
    try:
        disk = os.statvfs(Path(path).parent)
    except OSError:
        return MIN_FREE_BYTES  # another problem than a full disk
    return disk.f_bavail * disk.f_frsize


def count_statements(engine: AsyncEngine, counter: Callable[[str], None]) -> Callable[[], None]:
    """Call `counter` with every statement; return a function that stops it. For tests."""

    def on_statement(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        counter(statement)

    event.listen(engine.sync_engine, "before_cursor_execute", on_statement)
    return lambda: event.remove(engine.sync_engine, "before_cursor_execute", on_statement)
