"""The schema's history, shipped inside the package and run by the program itself.

Alembic is imported only when there is something to do: a start on an up-to-date database does not
pay for it.
"""

import contextlib
import errno
import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from refract.core.db.errors import explain_connection_error, is_permission_denied
from refract.core.db.schema_state import (
    HEAD,
    MIGRATIONS_DIR,
    REVISIONS,
    RestoreUnfinished,
    SchemaState,
    SchemaTooNew,
    SchemaTooOld,
)
from refract.core.db.session import Database
from refract.core.errors import ConfigurationError
from refract.migrations.schema_check import SchemaCheck, mark_restore, read_schema_state

__all__ = [
    "HEAD",
    "MIGRATIONS_DIR",
    "RestoreUnfinished",
    "SchemaCheck",
    "SchemaState",
    "SchemaTooNew",
    "SchemaTooOld",
    "mark_restore",
    "read_schema_state",
]

_ADVISORY_LOCK_ID = 7_305_808_869  # An arbitrary number, unique among a server's advisory locks.


def list_revisions() -> tuple[str, ...]:
    """Return every revision this program knows, oldest first."""
    return REVISIONS


def get_head() -> str:
    """Return the newest revision this program knows."""
    return HEAD


async def get_current_revision(db: Database) -> str | None:
    """Return the revision of the database; None for an empty one."""
    return (await check_schema(db)).revision


async def check_schema(db: Database) -> SchemaState:
    """Compare the schema with this program; raise an explanation if the database cannot be used."""
    _check_file(db)
    try:
        async with db.engine.connect() as connection:
            return await read_schema_state(connection)
    except Exception as exc:
        if explained := explain_connection_error(db.url, exc):
            raise explained from exc
        raise


def _check_file(db: Database) -> None:
    """Raise if the file is not a usable database, before threads and pools work on it."""
    path = Path(db.url.database or "")
    if db.dialect != "sqlite" or not path.exists():
        return
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=5)
        ) as file:
            file.execute("PRAGMA schema_version")
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except sqlite3.OperationalError as exc:
        if "locked" not in str(exc):  # another process is using it, so it is fine
            raise _make_unusable_error(path, "it cannot be opened") from exc
    except (sqlite3.DatabaseError, OSError) as exc:
        raise _make_unusable_error(path, str(getattr(exc, "strerror", None) or exc)) from exc


def _make_unusable_error(path: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(
        problem=f"The database file {path} cannot be used ({reason}).",
        remedy=(
            "Put that right, restore it from a backup, or name another data directory with"
            " --data-dir or REFRACT_DATA_DIR."
        ),
    )


async def upgrade(db: Database, target: str | None = None) -> list[str]:
    """Upgrade the schema to `target` (default: the newest) under a lock; return the revisions run.

    A schema of a newer version is left unchanged if this program can work on it.
    """
    if _is_reached(await check_schema(db), target or HEAD):
        return []
    async with _lock_migrations(db) as connection:
        state = await read_schema_state(connection)
        await connection.rollback()  # Alembic begins its own transactions
        return (
            []
            if _is_reached(state, target or HEAD)
            else await _migrate(connection, "upgrade", target or HEAD)
        )


def _is_reached(state: SchemaState, target: str) -> bool:
    if (state.needs is not None or state.is_restoring) and state.problem is not None:
        raise state.problem
    return state.revision == target or state.is_ahead


async def downgrade(db: Database, target: str) -> list[str]:
    """Downgrade the schema to `target`; `base` empties it."""
    async with _lock_migrations(db) as connection:
        return await _migrate(connection, "downgrade", target)


async def _migrate(connection: AsyncConnection, direction: str, target: str) -> list[str]:
    try:
        return await connection.run_sync(_run_alembic, direction, target)
    except DBAPIError as exc:
        if not is_permission_denied(exc):
            raise
        raise ConfigurationError(
            problem=(
                f"The schema must be brought to revision {target}, which this user of the database"
                " is not allowed to do."
            ),
            remedy="Run refract migrate as the owner of the database.",
        ) from exc


def _run_alembic(connection: object, direction: str, target: str) -> list[str]:
    from alembic import command  # noqa: PLC0415 - heavy, and needed only here
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_DIR).replace("%", "%%"))
    ran: list[str] = []
    config.attributes.update(connection=connection, ran=ran)
    try:
        (command.upgrade if direction == "upgrade" else command.downgrade)(config, target)
    except CommandError as exc:
        raise ConfigurationError(
            problem=f"The schema cannot be brought to revision {target} ({exc}).",
            remedy=(
                f"This version knows revisions up to {HEAD}; use the version that made the schema."
            ),
        ) from exc
    return ran


@asynccontextmanager
async def _lock_migrations(db: Database) -> AsyncIterator[AsyncConnection]:
    """Lock migrations: one at a time, however many processes start together."""
    if db.dialect == "sqlite":
        path = Path(f"{db.url.database}.migrating")
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            async with db.engine.connect() as connection:
                yield connection
        finally:
            # The file stays: if it were removed, two processes could lock two different files.
            os.close(handle)
        return
    async with db.engine.connect() as keeper, db.engine.connect() as connection:
        take, give = (
            (
                f"SELECT pg_advisory_lock({_ADVISORY_LOCK_ID})",
                f"SELECT pg_advisory_unlock({_ADVISORY_LOCK_ID})",
            )
            if db.dialect == "postgresql"
            else (
                "SELECT GET_LOCK('refract-migrations', 600)",
                "SELECT RELEASE_LOCK('refract-migrations')",
            )
        )
        if db.dialect == "postgresql":
            await keeper.execute(text("SET lock_timeout = '600s'"))
        await keeper.execute(text(take))
        await keeper.commit()
        try:
            yield connection
        finally:
            await keeper.execute(text(give))
            if db.dialect == "postgresql":
                await keeper.execute(text("RESET lock_timeout"))
            await keeper.commit()
