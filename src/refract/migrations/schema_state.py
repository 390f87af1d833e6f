"""The schema of a database compared with this program."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from refract import __version__
from refract.core.db.errors import translate_db_error
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime

MIGRATIONS_DIR = Path(__file__).parent
REVISIONS: Final = tuple(
    sorted(path.stem.split("_", 1)[0] for path in (MIGRATIONS_DIR / "versions").glob("[0-9]*.py"))
)
HEAD: Final = REVISIONS[-1]
"""The newest revision this program knows.

Read once: a newer version may be installed over a running process.
"""
_RESTORING: Final = "restoring-"
"""Prefix of the revision of a database into which a backup is being restored."""


class SchemaTooOld(Unavailable):
    """The database is at revision {found}, but Refract {version} needs {needed}.

    Run refract migrate as the owner of the database.
    """

    exit_code = 2


class SchemaTooNew(Unavailable):
    """This database was upgraded by a newer Refract; this is {version}.

    Start Refract {needed} or newer, or downgrade from revision {found} with
    refract migrate --to {known}.
    """

    exit_code = 2


class RestoreUnfinished(Unavailable):
    """A restore into this database was interrupted, so data is missing.

    Run refract restore again with the same backup.
    """

    exit_code = 2


Problem = SchemaTooOld | SchemaTooNew | RestoreUnfinished


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The revision of a database, and the version it needs if this one is too old for it."""

    revision: str | None
    needs: str | None = None
    is_restoring: bool = False

    @property
    def is_ahead(self) -> bool:
        return self.revision is not None and self.revision > HEAD

    @property
    def problem(self) -> Problem | None:
        """Return why this program cannot work on the schema, or None.

        It can work on a newer one that only has additions.
        """
        if self.is_restoring:
            return RestoreUnfinished()
        if self.needs is not None:
            return SchemaTooNew(
                found=self.revision, needed=self.needs, version=__version__, known=HEAD
            )
        if self.revision is None or self.revision < HEAD:
            return SchemaTooOld(found=self.revision or "none", needed=HEAD, version=__version__)
        return None


async def read_schema_state(connection: AsyncConnection) -> SchemaState:
    """Return the state of the schema.

    Requirements are read only from a schema that is newer than this program.
    """
    revision = await _read_scalar(connection, "SELECT version_num FROM alembic_version")
    if revision is not None and revision.startswith(_RESTORING):
        return SchemaState(revision.removeprefix(_RESTORING), is_restoring=True)
    if revision is None or revision <= HEAD:
        return SchemaState(revision)
    newer = "SELECT version FROM schema_requirements WHERE revision > :head ORDER BY revision DESC"
    return SchemaState(revision, await _read_scalar(connection, newer, head=HEAD))


async def _read_scalar(connection: AsyncConnection, question: str, **values: str) -> str | None:
    """Return the first value, or None if there is none or no such table."""
    try:
        found: str | None = (await connection.execute(text(question), values)).scalars().first()
    except DBAPIError as exc:
        if word := translate_db_error(exc):
            raise word from exc
        return None
    return found


async def mark_restore(connection: AsyncConnection, revision: str, *, is_finished: bool) -> None:
    """Record that a restore into this database has begun or is finished.

    In between it is neither served nor migrated.
    """
    mark = revision if is_finished else f"{_RESTORING}{revision}"
    await connection.execute(text("UPDATE alembic_version SET version_num = :mark"), {"mark": mark})
    await connection.commit()


class SchemaCheck:
    """The last comparison of schema and code in a process. Readiness repeats it."""

    def __init__(self) -> None:
        self.problem: Problem | None = None

    async def probe(self, rt: Runtime) -> None:
        """Compare, and raise the problem.

        While the database is unavailable, the last result stands.
        """
        async with rt.db.read() as session:
            self.problem = (await read_schema_state(await session.connection())).problem
        if self.problem is not None:
            raise self.problem


async def require_matching_schema(rt: Runtime) -> None:
    """Raise if schema and code do not match.

    While the database is unavailable that is unknown; readiness checks it again.
    """
    check = SchemaCheck()
    with contextlib.suppress(Unavailable):
        await check.probe(rt)
    if check.problem is not None:
        raise check.problem
