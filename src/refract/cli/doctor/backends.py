"""Checks of the database and Redis."""

import re
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from refract import migrations
from refract.cli.doctor.findings import DoctorFinding, report_error, report_ok, report_warning
from refract.clicks.archive.models import ArchiveFile
from refract.core.db.errors import is_permission_denied
from refract.core.db.session import Database
from refract.core.errors import RefractError
from refract.core.redis import RedisClient, RedisUnavailable
from refract.core.settings.model import Settings
from refract.core.text import count_noun
from refract.server.installation import find_missing_installation
from refract.server.metrics import BACKED_UP_ROLES

MAX_CLOCK_SKEW_SECONDS = 2.0
EXTRA_CONNECTIONS = 6
"""Connections that a process opens besides its pool: look-ups, the feed, LISTEN."""

MIN_VERSIONS = {
    "sqlite": (3, 35),
    "postgresql": (13, 0),
    "mysql": (8, 0),
    "mariadb": (10, 6),
    "redis": (7, 0),
}


async def check_database(settings: Settings) -> list[DoctorFinding]:
    if (missing := find_missing_installation(settings)) is not None:
        facts = missing.facts
        return [report_error("database", str(facts["problem"]), str(facts["remedy"]))]
    db = Database(settings)
    try:
        state = await migrations.check_schema(db)
        found = [_check_revision(state)]
        began = time.perf_counter()
        async with (
            db.engine.connect() if db.dialect != "sqlite" else db.read_engine.connect()
        ) as connection:
            await connection.execute(text("SELECT 1"))
            found.append(
                report_ok("database", f"Responds in {(time.perf_counter() - began) * 1000:.1f} ms.")
            )
            found += [
                finding async for finding in _CHECKS_BY_DIALECT[db.dialect](connection, settings)
            ]
            if state.problem is None:
                found += [finding async for finding in _check_tables(connection, settings)]
    except RefractError as exc:
        return [report_error("database", exc.message, "")]
    except Exception as exc:  # noqa: BLE001 - report whatever the driver raises
        reason = " ".join(str(exc).split())[:200]
        return [
            report_error(
                "database",
                f"The database can't be used: {reason}.",
                "Start it, or correct REFRACT_DATABASE_URL.",
            )
        ]
    finally:
        await db.close()
    return found


def _check_revision(state: migrations.SchemaState) -> DoctorFinding:
    newest, revision = migrations.get_head(), state.revision
    if state.is_restoring and state.problem is not None:
        return report_error("schema", state.problem.message, "")
    if revision is None:
        return report_warning(
            "schema", "The database is empty.", "Run refract serve or refract migrate."
        )
    if revision > newest:
        return report_error(
            "schema",
            f"The database is at revision {revision}, this program at {newest}.",
            "Use the version that migrated it, or a newer one.",
        )
    if revision < newest:
        return report_warning(
            "schema",
            f"The database is at revision {revision}, this program at {newest}.",
            "Run refract migrate, or start refract serve, which migrates.",
        )
    return report_ok("schema", f"Up to date (revision {newest}).")


async def _check_sqlite(
    connection: AsyncConnection, settings: Settings
) -> AsyncIterator[DoctorFinding]:
    yield _check_version(
        "SQLite", await _fetch_value(connection, "SELECT sqlite_version()"), MIN_VERSIONS["sqlite"]
    )
    broken = await _fetch_value(connection, "PRAGMA quick_check(1)")
    if broken != "ok":
        yield report_error(
            "database",
            f"The file is damaged: {broken}.",
            "Restore it from a backup: refract restore.",
        )
    mode = await _fetch_value(connection, "PRAGMA journal_mode")
    if mode != "wal":
        yield report_warning(
            "database",
            f"The journal mode is {mode}: readers and the writer block each other.",
            "Use a local disk, not a network share.",
        )
    if settings.role != "all" or settings.redis_url is not None:
        yield report_warning(
            "database",
            "SQLite works on one machine only.",
            "For several machines, run refract move --to postgresql://…",
        )


async def _check_postgresql(
    connection: AsyncConnection, settings: Settings
) -> AsyncIterator[DoctorFinding]:
    yield _check_version(
        "PostgreSQL",
        await _fetch_value(connection, "SHOW server_version"),
        MIN_VERSIONS["postgresql"],
    )
    encoding = await _fetch_value(connection, "SHOW server_encoding")
    if encoding != "UTF8":
        yield report_error(
            "locale", f"The database encoding is {encoding}.", "Create it with ENCODING 'UTF8'."
        )
    ctype = await _fetch_value(
        connection, "SELECT datctype FROM pg_database WHERE datname = current_database()"
    )
    if ctype in ("C", "POSIX"):
        yield report_warning(
            "locale",
            f"The locale is {ctype}: search can't find parts of non-Latin words.",
            "Create it with LC_CTYPE 'C.UTF-8' (TEMPLATE template0).",
        )
    else:
        yield report_ok("locale", f"{encoding}, {ctype}.")
    yield _check_clock(await _fetch_value(connection, "SELECT now()"))
    yield _check_connections(settings, int(await _fetch_value(connection, "SHOW max_connections")))


async def _check_mysql(
    connection: AsyncConnection, settings: Settings
) -> AsyncIterator[DoctorFinding]:
    reported = str(await _fetch_value(connection, "SELECT VERSION()"))
    is_mariadb = "mariadb" in reported.lower()
    yield _check_version(
        "MariaDB" if is_mariadb else "MySQL",
        reported,
        MIN_VERSIONS["mariadb" if is_mariadb else "mysql"],
    )
    charset = await _fetch_value(connection, "SELECT @@character_set_database")
    if charset != "utf8mb4":
        yield report_warning(
            "locale",
            f"The database's character set is {charset}.",
            "Refract's tables use utf8mb4 anyway; set it for new tables.",
        )
    yield _check_clock(
        (await _fetch_value(connection, "SELECT UTC_TIMESTAMP(6)")).replace(tzinfo=UTC)
    )
    yield _check_connections(
        settings, int(await _fetch_value(connection, "SELECT @@max_connections"))
    )


_CHECKS_BY_DIALECT = {
    "sqlite": _check_sqlite,
    "postgresql": _check_postgresql,
    "mysql": _check_mysql,
}


async def _check_tables(
    connection: AsyncConnection, settings: Settings
) -> AsyncIterator[DoctorFinding]:
    """Check tables with no more privileges than the role has."""
    if settings.dialect != "sqlite":
        yield await _check_rights(connection, settings)
    if settings.role in ("redirect", "ingest"):
        return
    if (
        settings.role in BACKED_UP_ROLES
        and (finding := await _check_archived_files(connection, settings)) is not None
    ):
        yield finding
    failed = int(await _fetch_value(connection, "SELECT COUNT(*) FROM jobs WHERE status = 'DEAD'"))
    if failed:
        yield report_warning(
            "jobs",
            f"{count_noun(failed, 'job')} failed and won't be retried automatically.",
            "See Admin › Background jobs for the reasons and to retry.",
        )


async def _check_rights(connection: AsyncConnection, settings: Settings) -> DoctorFinding:
    """Check write access with an UPDATE that matches no row."""
    table = {"redirect": "", "ingest": "link_totals"}.get(settings.role, "links")
    user = connection.engine.url.username
    if not table:
        return report_ok("database user", f"{user} is enough: a {settings.role} node only reads.")
    column = {"links": "title", "link_totals": "bot_clicks"}[table]
    try:
        update = f"UPDATE {table} SET {column} = {column} WHERE 1 = 0"  # noqa: S608 - constants
        await connection.execute(text(update))
    except DBAPIError as exc:
        if not is_permission_denied(exc):
            raise
        remedy = (
            "Use the user that refract admin grants creates for this role"
            " (docs/how-to/least-privilege.md)."
        )
        return report_error(
            "database user", f"{user} can't write, which a {settings.role} node needs.", remedy
        )
    finally:
        await connection.rollback()
    return report_ok("database user", f"{user} can write.")


async def _check_archived_files(
    connection: AsyncConnection, settings: Settings
) -> DoctorFinding | None:
    """Check that this node sees every archive file that the table lists."""
    listed = select(ArchiveFile.name).where(ArchiveFile.dropped_at.is_(None))
    names = list((await connection.execute(listed)).scalars())
    directory = settings.effective_archive_dir
    absent = [name for name in names if not (directory / name).is_file()]
    if absent:
        return report_error(
            "archive",
            f"{len(absent)} of {count_noun(len(names), 'archive file')} missing from {directory},"
            f" such as {absent[0]}.",
            "Set REFRACT_ARCHIVE_DIR to one directory that all web and worker nodes share.",
        )
    return (
        report_ok(
            "archive", f"{count_noun(len(names), 'archive file')} in {directory}, none missing."
        )
        if names
        else None
    )


async def _fetch_value(connection: AsyncConnection, query: str) -> Any:
    return (await connection.execute(text(query))).scalar_one()


def _check_version(name: str, reported: object, oldest: tuple[int, ...]) -> DoctorFinding:
    numbers = tuple(map(int, re.findall(r"\d+", str(reported))[:2]))
    if numbers < oldest:
        return report_error(
            "version",
            f"{name} {reported} is too old.",
            f"Use {name} {'.'.join(map(str, oldest))} or newer.",
        )
    return report_ok("version", f"{name} {reported}.")


def _check_clock(there: datetime) -> DoctorFinding:
    skew = abs((datetime.now(UTC) - there).total_seconds())
    if skew > MAX_CLOCK_SKEW_SECONDS:
        return report_warning(
            "clock",
            f"The clocks of the database and this machine differ by {skew:.1f} s.",
            "Synchronize both with NTP.",
        )
    return report_ok("clock", "In sync with the database.")


def _check_connections(settings: Settings, allowed: int) -> DoctorFinding:
    needed = settings.process_count * (settings.database_pool_size + EXTRA_CONNECTIONS)
    if needed > allowed:
        remedy = "Lower REFRACT_DATABASE_POOL_SIZE or REFRACT_WORKERS, or raise max_connections."
        return report_error(
            "connections",
            f"This node may open {needed} connections; the server allows {allowed} in total.",
            remedy,
        )
    return report_ok("connections", f"This node may open {needed} of {allowed}.")


async def check_redis(settings: Settings) -> list[DoctorFinding]:
    if settings.redis_url is None:
        return [
            report_ok("redis", "Not configured; processes notify each other through the database.")
        ]
    redis = RedisClient(settings.redis_url)
    try:
        began = time.perf_counter()
        await redis.execute("PING", seconds=2.0)
        found = [report_ok("redis", f"Responds in {(time.perf_counter() - began) * 1000:.1f} ms.")]
        facts = _parse_redis_info(await redis.execute("INFO", seconds=2.0))
    except RedisUnavailable as exc:
        return [
            report_warning(
                "redis",
                exc.message,
                "Start it, or correct REFRACT_REDIS_URL. Redirects, writes and clicks keep working"
                " without it.",
            )
        ]
    finally:
        await redis.close()
    found.append(_check_version("Redis", facts.get("redis_version", "0"), MIN_VERSIONS["redis"]))
    policy = facts.get("maxmemory_policy", "noeviction")
    if facts.get("maxmemory", "0") != "0" and policy != "noeviction":
        message = (
            f"Redis evicts keys when it is full ({policy}), including pending clicks, which are"
            " then sent again."
        )
        found.append(
            report_warning(
                "redis", message, "Set maxmemory-policy to noeviction, or raise maxmemory."
            )
        )
    return found


def _parse_redis_info(info: bytes) -> dict[str, str]:
    lines = (
        line.partition(":") for line in info.decode("utf-8", "replace").splitlines() if ":" in line
    )
    return {name: value for name, _, value in lines}
