"""Reading and writing, the same on three databases.

The edge (a route, a job, a command) opens the transaction; services take the session and never commit.
"""

import asyncio
import inspect
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from sqlalchemy import URL, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry

from refract.core.errors import StoreFull
from refract.core.faults import meaning
from refract.core.settings import Dialect, Settings
from refract.core.signals import Signals

LOCK_WAIT_SECONDS = 5
CONNECT_SECONDS = 3
LEAST_ROOM = 256 * 1024
"""With fewer bytes left on the disk of a SQLite file the next change may fail."""
Hook = Callable[[], Awaitable[None] | None]


class ReadSession(AsyncSession):
    """A session that may only look. Nothing added to it is ever written."""

    @property
    def dialect(self) -> Dialect:
        return dialect_of(self.get_bind().dialect.name)


class WriteSession(ReadSession):
    """A session inside a transaction that its opener commits."""

    @property
    def signals(self) -> Signals:
        """Where to tell this process of what was committed."""
        signals: Signals = self.info["signals"]
        return signals

    def after_commit(self, hook: Hook) -> None:
        """Run this once, after the commit; never when the transaction fails."""
        self.info.setdefault("after_commit", []).append(hook)


class _ReadOnly(Session):
    def flush(self, objects: Any = None) -> None:
        if self.new or self.dirty or self.deleted:
            problem = "a read session was asked to write"
            raise TypeError(problem)
        super().flush(objects)


def dialect_of(name: str) -> Dialect:
    return "mysql" if name in ("mysql", "mariadb") else "postgresql" if name == "postgresql" else "sqlite"


class Enclosing:
    """One transaction around several blocks: the first `write()` opens it, later ones join, the owner ends it."""

    def __init__(self, db: "Database", begin: Callable[[WriteSession], Awaitable[None]]) -> None:
        self.db = db
        self.session: WriteSession | None = None
        self.failed = False
        self._begin = begin

    async def join(self) -> WriteSession:
        if self.session is None:
            self.session = self.db.open_writer()
            await self.session.connection()
            await self._begin(self.session)
        return self.session


_enclosing: ContextVar[Enclosing | None] = ContextVar("refract_enclosing", default=None)


class Database:
    """Engines and sessions. On SQLite one connection writes and others read; servers have one pool."""

    def __init__(self, settings: Settings) -> None:
        url = make_url(settings.effective_database_url)
        self.dialect: Dialect = settings.dialect
        self.url = url
        self.signals = Signals()
        self._found_no_room = False
        self._closers: list[Callable[[], Awaitable[None]]] = []
        if self.dialect == "sqlite":
            self._writer = _sqlite_engine(url, write=True)
            self._reader = _sqlite_engine(url, write=False)
        else:
            self._writer = self._reader = _server_engine(url, self.dialect, settings.database_pool_size)

    @property
    def full(self) -> bool:
        """Changes find no room on the disk, by the last one's experience or by a look at the disk; reading may go on all the same."""
        return self._found_no_room or (self.dialect == "sqlite" and _room_beside(self.url.database or "") < LEAST_ROOM)

    def noticed_no_room(self) -> None:
        self._found_no_room = True

    @property
    def engine(self) -> AsyncEngine:
        """The engine that may write: for migrations and bulk statements at driver level."""
        return self._writer

    @property
    def reading_engine(self) -> AsyncEngine:
        return self._reader

    def open_writer(self) -> WriteSession:
        return WriteSession(self._writer, expire_on_commit=False, autoflush=True, info={"signals": self.signals})

    @asynccontextmanager
    async def read(self) -> AsyncIterator[ReadSession]:
        """A session for looking. It sees what was committed when its first statement ran, or later."""
        async with ReadSession(self._reader, sync_session_class=_ReadOnly, expire_on_commit=False, autoflush=False) as session:
            with _translated():
                yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[WriteSession]:
        """A transaction: committed when the block ends, rolled back when it raises, hooks run after the commit."""
        around = _enclosing.get()
        if around is not None and around.db is self:
            with _translated(self):
                try:
                    yield await around.join()
                except BaseException:
                    around.failed = True
                    raise
            return
        session = self.open_writer()
        with _translated(self):
            try:
                await session.connection()
                yield session
                await _through(self._commit(session))
            except BaseException:
                await _undo(session)
                raise
            finally:
                await _through(session.close())

    @asynccontextmanager
    async def enclosing(self, begin: Callable[[WriteSession], Awaitable[None]]) -> AsyncIterator[Enclosing]:
        """Let every `write()` of this task share one transaction, which commits when this block ends.

        `begin` runs in it first. Nothing is opened for a task that never writes.
        """
        around = Enclosing(self, begin)
        token = _enclosing.set(around)
        with _translated(self):
            try:
                try:
                    yield around
                finally:
                    _enclosing.reset(token)  # before the hooks run: what they write is no longer part of this
                if around.session is not None:
                    await (_undo(around.session) if around.failed else _through(self._commit(around.session)))
            except BaseException:
                around.failed = True
                if around.session is not None:
                    await _undo(around.session)
                raise
            finally:
                if around.session is not None:
                    await _through(around.session.close())

    async def _commit(self, session: WriteSession) -> None:
        """Commit and tell. The two belong together: a change that nobody heard of would live on in caches."""
        hooks = session.info.pop("after_commit", [])
        await session.commit()
        self._found_no_room = False
        await session.close()
        for hook in hooks:
            result = hook()
            if inspect.isawaitable(result):
                await result

    def before_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """For whoever holds connections of their own."""
        self._closers.append(closer)

    async def close(self) -> None:
        while self._closers:
            await self._closers.pop()()
        await self._writer.dispose()
        if self._reader is not self._writer:
            await self._reader.dispose()


async def _undo(session: WriteSession) -> None:
    session.info.pop("after_commit", None)
    try:
        await _through(_rolled_back(session))
    except Exception:  # noqa: BLE001 - whatever a driver says of a connection that was taken away from under it
        await session.invalidate()  # the connection is gone, and with it the transaction


async def _rolled_back(session: WriteSession) -> None:
    async with asyncio.timeout(LOCK_WAIT_SECONDS):
        await session.rollback()


async def _through(work: Coroutine[Any, Any, None]) -> None:
    """Bring this to its end, whoever cancels us meanwhile; the cancellation is raised afterwards.

    A bare shield would go on at once, and the next call would meet the session in the middle of this one.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


class _translated:  # noqa: N801 - reads as a verb where it is used
    """Driver errors that time can heal become the product's words; of a writer, the database remembers that it was full."""

    def __init__(self, writing: Database | None = None) -> None:
        self._writing = writing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        word = meaning(error) if error is not None else None
        if isinstance(word or error, StoreFull) and self._writing is not None:
            self._writing.noticed_no_room()
        if word is not None:
            raise word from error


def _room_beside(path: str) -> int:
    try:
        disk = os.statvfs(Path(path).parent)
    except OSError:
        return LEAST_ROOM  # what is wrong here is something else
    return disk.f_bavail * disk.f_frsize


def _sqlite_engine(url: URL, *, write: bool) -> AsyncEngine:
    path = url.database
    if not path or path == ":memory:":
        problem = "SQLite needs a file: an in-memory database cannot be shared by readers and the writer"
        raise ValueError(problem)
    if write:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=path),
        poolclass=AsyncAdaptedQueuePool,
        pool_size=1 if write else 4,
        max_overflow=0,
        pool_timeout=2 * LOCK_WAIT_SECONDS,
        connect_args={"timeout": LOCK_WAIT_SECONDS},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        cast("Any", connection).isolation_level = None  # we say BEGIN ourselves
        cursor = connection.cursor()
        pragmas = ["foreign_keys = ON", "synchronous = NORMAL", "temp_store = MEMORY", "cache_size = -16000"]
        for pragma in [*(["journal_mode = WAL"] if write else ["query_only = ON"]), *pragmas]:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _server_engine(url: URL, dialect: Dialect, pool_size: int) -> AsyncEngine:
    query = {name: value for name, value in url.query.items() if isinstance(value, str)}
    options: dict[str, Any]
    if dialect == "postgresql":
        mode = query.pop("sslmode", query.pop("ssl", None))
        options = {
            "timeout": CONNECT_SECONDS,
            "server_settings": {"lock_timeout": f"{LOCK_WAIT_SECONDS}s", "timezone": "UTC", "application_name": "refract"},
            **({"ssl": mode} if mode else {}),
        }
        driver = "postgresql+asyncpg"
    else:
        options = {"connect_timeout": CONNECT_SECONDS, "charset": "utf8mb4", **_mysql_tls(query)}
        driver = "mysql+asyncmy"
    engine = create_async_engine(
        url.set(drivername=driver, query=query),
        isolation_level="READ COMMITTED",
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=LOCK_WAIT_SECONDS,
        pool_pre_ping=True,
        pool_recycle=1800,
        connect_args=options,
    )
    if dialect == "mysql":

        @event.listens_for(engine.sync_engine, "connect")
        def prepare(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
            cursor = connection.cursor()
            cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS}, time_zone = '+00:00'")
            cursor.close()

    return engine


def _mysql_tls(query: dict[str, str]) -> dict[str, Any]:
    """`?ssl=true` asks for a certificate that the system trusts, `?ssl_ca=FILE` for one signed by that authority."""
    authority = query.pop("ssl_ca", None)
    wanted = query.pop("ssl", "false").lower() in ("true", "1", "require", "required", "verify-full")
    return {"ssl": ssl.create_default_context(cafile=authority)} if wanted or authority else {}


def count_statements(engine: AsyncEngine, counter: Callable[[str], None]) -> Callable[[], None]:
    """Tell `counter` of every statement; the answer stops it. Tests of query counts stand on this."""

    def told(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        counter(statement)

    event.listen(engine.sync_engine, "before_cursor_execute", told)
    return lambda: event.remove(engine.sync_engine, "before_cursor_execute", told)
