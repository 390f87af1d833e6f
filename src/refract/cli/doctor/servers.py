"""The servers it needs: whether they answer, and whether they are as they should be."""

import re
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import make_url, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from refract import migrations
from refract.analytics.archive_models import ArchiveFile
from refract.analytics.node_metrics import BACKED_UP_ROLES
from refract.cli.doctor.findings import Finding, mind, well, wrong
from refract.cli.installation import HOW_TO_POINT
from refract.core.db import Database
from refract.core.errors import RefractError
from refract.core.faults import is_denied
from refract.core.redis import Redis, RedisAway
from refract.core.settings import Settings

CLOCK_SECONDS = 2.0
READERS = 6
"""Connections a process opens besides its pool: look-ups, the feed, LISTEN."""

OLDEST = {"sqlite": (3, 35), "postgresql": (13, 0), "mysql": (8, 0), "mariadb": (10, 6), "redis": (7, 0)}


async def look_at_database(settings: Settings) -> list[Finding]:
    if (absent := _absent_file(settings)) is not None:
        sentence = (
            f"There is no installation here: the data directory is {settings.data_dir.absolute()}, and there is no database {absent}."
        )
        return [wrong("database", sentence, f"{HOW_TO_POINT}; refract serve starts a new one.")]
    db = Database(settings)
    try:
        state = await migrations.examine(db)
        found = [_revision(state)]
        began = time.perf_counter()
        async with db.engine.connect() if db.dialect != "sqlite" else db.reading_engine.connect() as connection:
            await connection.execute(text("SELECT 1"))
            found.append(well("database", f"It answers in {(time.perf_counter() - began) * 1000:.1f} ms."))
            found += [finding async for finding in _OF[db.dialect](connection, settings)]
            if state.problem is None:
                found += [finding async for finding in _jobs(connection, settings)]
    except RefractError as error:
        return [wrong("database", error.message, "")]
    except Exception as error:  # noqa: BLE001 - whatever a driver says is what the operator must hear
        reason = " ".join(str(error).split())[:200]
        return [wrong("database", f"It cannot be used: {reason}.", "Start it, or correct REFRACT_DATABASE_URL.")]
    finally:
        await db.close()
    return found


def _absent_file(settings: Settings) -> Path | None:
    """Opening it would make it."""
    file = Path(make_url(settings.effective_database_url).database or "")
    return file if settings.dialect == "sqlite" and not file.is_file() else None


def _revision(state: migrations.SchemaState) -> Finding:
    newest, revision = migrations.head(), state.revision
    if state.is_restoring and state.problem is not None:
        return wrong("schema", state.problem.message, "")
    if revision is None:
        return mind("schema", "The database is empty.", "refract serve and refract migrate fill it.")
    if revision > newest:
        return wrong(
            "schema", f"The database is at {revision}, this program at {newest}.", "Start the version that made it, or a newer one."
        )
    if revision < newest:
        return mind(
            "schema", f"The database is at {revision}, this program at {newest}.", "refract serve migrates; or run refract migrate now."
        )
    return well("schema", f"It is at {newest}.")


async def _sqlite(connection: AsyncConnection, settings: Settings) -> AsyncIterator[Finding]:
    yield _version("SQLite", await _one(connection, "SELECT sqlite_version()"), OLDEST["sqlite"])
    broken = await _one(connection, "PRAGMA quick_check(1)")
    if broken != "ok":
        yield wrong("database", f"The file is damaged: {broken}.", "Restore it from a backup: refract restore.")
    mode = await _one(connection, "PRAGMA journal_mode")
    if mode != "wal":
        yield mind(
            "database", f"Its journal is {mode}; readers and the writer wait for each other.", "Put it on a local disk, not on a share."
        )
    if settings.role != "all" or settings.redis_url is not None:
        yield mind("database", "SQLite serves one machine.", "For several machines: refract move --to postgresql://…")


async def _postgresql(connection: AsyncConnection, settings: Settings) -> AsyncIterator[Finding]:
    yield _version("PostgreSQL", await _one(connection, "SHOW server_version"), OLDEST["postgresql"])
    encoding = await _one(connection, "SHOW server_encoding")
    if encoding != "UTF8":
        yield wrong("locale", f"The database is encoded in {encoding}.", "Make it with ENCODING 'UTF8'.")
    ctype = await _one(connection, "SELECT datctype FROM pg_database WHERE datname = current_database()")
    if ctype in ("C", "POSIX"):
        yield mind(
            "locale",
            f"Its locale is {ctype}: parts of words that are not Latin cannot be found.",
            "Make it with LC_CTYPE 'C.UTF-8' (TEMPLATE template0).",
        )
    else:
        yield well("locale", f"{encoding}, {ctype}.")
    yield _clock(await _one(connection, "SELECT now()"))
    yield _connections(settings, int(await _one(connection, "SHOW max_connections")))


async def _mysql(connection: AsyncConnection, settings: Settings) -> AsyncIterator[Finding]:
    told = str(await _one(connection, "SELECT VERSION()"))
    maria = "mariadb" in told.lower()
    yield _version("MariaDB" if maria else "MySQL", told, OLDEST["mariadb" if maria else "mysql"])
    charset = await _one(connection, "SELECT @@character_set_database")
    if charset != "utf8mb4":
        yield mind(
            "locale", f"The database's character set is {charset}.", "Our own tables are utf8mb4 all the same; make it so for new ones."
        )
    yield _clock((await _one(connection, "SELECT UTC_TIMESTAMP(6)")).replace(tzinfo=UTC))
    yield _connections(settings, int(await _one(connection, "SELECT @@max_connections")))


_OF = {"sqlite": _sqlite, "postgresql": _postgresql, "mysql": _mysql}


async def _jobs(connection: AsyncConnection, settings: Settings) -> AsyncIterator[Finding]:
    """Look at what the tables say, with no more rights than the role has."""
    if settings.dialect != "sqlite":
        yield await _rights(connection, settings)
    if settings.role in ("redirect", "ingest"):
        return
    if settings.role in BACKED_UP_ROLES and (finding := await _archive(connection, settings)) is not None:
        yield finding
    dead = int(await _one(connection, "SELECT COUNT(*) FROM jobs WHERE status = 'DEAD'"))
    if dead:
        yield mind("jobs", f"{dead} jobs have failed for good.", "Administrators see why, and can have them tried again.")


async def _rights(connection: AsyncConnection, settings: Settings) -> Finding:
    """Try a change of no row: a right that lacks is noticed before there is anything to change."""
    table = {"redirect": "", "ingest": "link_totals"}.get(settings.role, "links")
    user = connection.engine.url.username
    if not table:
        return well("database user", f"A {settings.role} node only reads, as {user}.")
    column = {"links": "title", "link_totals": "bot_clicks"}[table]
    try:
        await connection.execute(text(f"UPDATE {table} SET {column} = {column} WHERE 1 = 0"))  # noqa: S608 - our own words
    except DBAPIError as exc:
        if not is_denied(exc):
            raise
        remedy = "Use the user that refract admin grants makes for this role (docs/how-to/least-privilege.md)."
        return wrong("database user", f"{user} may not write, and a {settings.role} node must.", remedy)
    finally:
        await connection.rollback()
    return well("database user", f"{user} may write.")


async def _archive(connection: AsyncConnection, settings: Settings) -> Finding | None:
    """Compare the files of archived clicks that the table names with those that this node sees."""
    wanted = select(ArchiveFile.name).where(ArchiveFile.dropped_at.is_(None))
    names = list((await connection.execute(wanted)).scalars())
    directory = settings.effective_archive_dir
    absent = [name for name in names if not (directory / name).is_file()]
    if absent:
        return wrong(
            "archive",
            f"{len(absent)} of {len(names)} files of archived clicks are not in {directory}, such as {absent[0]}.",
            "Set REFRACT_ARCHIVE_DIR to one directory that all web and worker nodes share.",
        )
    return well("archive", f"All {len(names)} files of archived clicks are in {directory}.") if names else None


async def _one(connection: AsyncConnection, question: str) -> Any:
    return (await connection.execute(text(question))).scalar_one()


def _version(name: str, told: object, oldest: tuple[int, ...]) -> Finding:
    numbers = tuple(map(int, re.findall(r"\d+", str(told))[:2]))
    if numbers < oldest:
        return wrong("version", f"{name} {told} is too old.", f"Use {name} {'.'.join(map(str, oldest))} or newer.")
    return well("version", f"{name} {told}.")


def _clock(there: datetime) -> Finding:
    apart = abs((datetime.now(UTC) - there).total_seconds())
    if apart > CLOCK_SECONDS:
        return mind("clock", f"The database's clock and this machine's are {apart:.1f} s apart.", "Let both follow a time server.")
    return well("clock", "This machine and the database agree on the time.")


def _connections(settings: Settings, allowed: int) -> Finding:
    wanted = settings.workers * (settings.database_pool_size + READERS)
    if wanted > allowed:
        remedy = "Lower REFRACT_DATABASE_POOL_SIZE or REFRACT_WORKERS, or raise max_connections."
        return wrong("connections", f"This node may open {wanted} connections, the server allows {allowed} to everybody.", remedy)
    return well("connections", f"This node may open {wanted} of {allowed}.")


async def look_at_redis(settings: Settings) -> list[Finding]:
    if settings.redis_url is None:
        return [well("redis", "None is configured: the database carries the news between processes.")]
    redis = Redis(settings.redis_url)
    try:
        began = time.perf_counter()
        await redis.ask("PING", seconds=2.0)
        found = [well("redis", f"It answers in {(time.perf_counter() - began) * 1000:.1f} ms.")]
        facts = _facts(await redis.ask("INFO", seconds=2.0))
    except RedisAway as error:
        return [mind("redis", error.message, "Start it, or correct REFRACT_REDIS_URL. Redirects, writes and clicks go on without it.")]
    finally:
        await redis.close()
    found.append(_version("Redis", facts.get("redis_version", "0"), OLDEST["redis"]))
    policy = facts.get("maxmemory_policy", "noeviction")
    if facts.get("maxmemory", "0") != "0" and policy != "noeviction":
        sentence = f"When it is full it throws things away ({policy}), clicks under way among them; they are then sent again."
        found.append(mind("redis", sentence, "Set maxmemory-policy to noeviction, or give it more room."))
    return found


def _facts(info: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in info.decode("utf-8", "replace").splitlines() if ":" in line)
    return {name: value for name, _, value in lines}
