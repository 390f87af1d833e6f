"""Engines of the three databases: drivers, pools, timeouts, TLS."""

import logging
import ssl
import time
from pathlib import Path
from typing import Any, cast

from sqlalchemy import URL, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import TimeoutError  # noqa: A004 - what a pool says
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry

from refract.core.db.raw import READER_CACHE_KIB
from refract.core.db.sqlite_driver import SqliteConnection, SqliteModule
from refract.core.settings.model import Dialect

# Errors go to logs, and those of jobs into a table: they include the statement, never the values
# (`hide_parameters`).
LOCK_TIMEOUT = 5
CONNECT_TIMEOUT = 3
READER_LIFETIME = 3600
"""Seconds after which SQLite's readers are opened anew. Only then they use new statistics."""
WRITER_CACHE_KIB = 4_000
"""Storing clicks costs the same with 16 MB."""
MAX_QUEUE_SECONDS = 30
"""The longest wait for a connection.

Before that, a wait ends only if the pool makes no progress for `pool_timeout`.
"""


class ProgressAwarePool(AsyncAdaptedQueuePool):
    """Keep waiting for a connection while the pool is making progress.

    A connection that broke, or was never made, is not progress.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._returned = 0

    def _do_get(self) -> ConnectionPoolEntry:
        until = time.monotonic() + MAX_QUEUE_SECONDS
        while True:
            before = self._returned
            try:
                return super()._do_get()
            except TimeoutError:
                if self._returned == before or time.monotonic() >= until:
                    raise

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        self._returned += record.dbapi_connection is not None
        super()._do_return_conn(record)


# A pool logs under its class's name.
logging.getLogger(f"{__name__}.{ProgressAwarePool.__name__}").setLevel(logging.WARNING)


_PRAGMAS = ("foreign_keys = ON", "synchronous = NORMAL", "temp_store = MEMORY")
_READER_PRAGMAS = ("query_only = ON", f"cache_size = -{READER_CACHE_KIB}")
_WRITER_PRAGMAS = (
    "journal_mode = WAL",
    f"cache_size = -{WRITER_CACHE_KIB}",
    "secure_delete = ON",  # deleted data is overwritten, regardless of the build's default
)


def create_sqlite_engine(url: URL, *, write: bool) -> AsyncEngine:
    """Create an engine with one connection that writes, or a few that only read."""
    path = url.database
    if not path or path == ":memory:":
        problem = (
            "SQLite needs a file: an in-memory database cannot be shared by readers and the writer"
        )
        raise ValueError(problem)
    if write:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=path),
        module=SqliteModule(),
        poolclass=ProgressAwarePool,
        pool_size=1 if write else 4,
        max_overflow=0,
        pool_timeout=2 * LOCK_TIMEOUT,
        pool_recycle=-1 if write else READER_LIFETIME,
        connect_args={"timeout": LOCK_TIMEOUT},
        hide_parameters=True,
    )

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        driver = cast("SqliteConnection", connection)
        driver.isolation_level = None  # we send BEGIN ourselves
        driver.is_read_only = not write
        cursor = connection.cursor()
        for pragma in (*(_WRITER_PRAGMAS if write else _READER_PRAGMAS), *_PRAGMAS):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Any) -> None:
        connection.connection.dbapi_connection.begin()

    return engine


def create_server_engine(url: URL, dialect: Dialect, pool_size: int) -> AsyncEngine:
    """Create a pool of connections to PostgreSQL or MariaDB.

    All have the same timeouts and time zone.
    """
    query = {name: value for name, value in url.query.items() if isinstance(value, str)}
    driver = "postgresql+asyncpg" if dialect == "postgresql" else "mysql+asyncmy"
    options = _build_options(dialect, query)
    engine = create_async_engine(
        url.set(drivername=driver, query=query),
        isolation_level="READ COMMITTED",
        poolclass=ProgressAwarePool,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=LOCK_TIMEOUT,
        pool_pre_ping=True,
        pool_recycle=1800,
        connect_args=options,
        hide_parameters=True,
    )
    if dialect == "mysql":

        @event.listens_for(engine.sync_engine, "connect")
        def prepare(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
            cursor = connection.cursor()
            cursor.execute(
                f"SET SESSION innodb_lock_wait_timeout = {LOCK_TIMEOUT}, time_zone = '+00:00'"
            )
            cursor.close()

    return engine


def _build_options(dialect: Dialect, query: dict[str, str]) -> dict[str, Any]:
    """Return the arguments of a connection. Those about TLS are taken out of the URL's query."""
    if dialect == "postgresql":
        mode = query.pop("sslmode", query.pop("ssl", None))
        return {
            "timeout": CONNECT_TIMEOUT,
            "server_settings": {
                "lock_timeout": f"{LOCK_TIMEOUT}s",
                "timezone": "UTC",
                "application_name": "refract",
                # As on solid-state disks. By its default of 4, the planner reads a whole table
                # rather than looking up a thousand rows.
                "random_page_cost": "1.1",
            },
            **({"ssl": mode} if mode else {}),
        }
    return {
        "connect_timeout": CONNECT_TIMEOUT,
        "charset": "utf8mb4",
        **_build_mysql_tls(query),
    }


def _build_mysql_tls(query: dict[str, str]) -> dict[str, Any]:
    """Return the TLS options of a URL.

    `?ssl=true` requires a certificate that the system trusts, `?ssl_ca=FILE` one signed by that
    authority.
    """
    authority = query.pop("ssl_ca", None)
    enabled = query.pop("ssl", "false").lower() in (
        "true",
        "1",
        "require",
        "required",
        "verify-full",
    )
    return {"ssl": ssl.create_default_context(cafile=authority)} if enabled or authority else {}
