"""The schema of a database compared with this program. Loads no database code."""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from refract import __version__
from refract.core.db.raw import RawReader
from refract.core.errors import Unavailable

MIGRATIONS_DIR = Path(__file__).parents[2] / "migrations"
REVISIONS: Final = tuple(
    sorted(path.stem.split("_", 1)[0] for path in (MIGRATIONS_DIR / "versions").glob("[0-9]*.py"))
)
HEAD: Final = REVISIONS[-1]
"""The newest revision this program knows.

Read once: a newer version may be installed over a running process.
"""
RESTORING: Final = "restoring-"
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


SchemaProblem = SchemaTooOld | SchemaTooNew | RestoreUnfinished


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
    def problem(self) -> SchemaProblem | None:
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


ReadScalar = Callable[[str], Awaitable[str | None]]
"""Returns the first value of a query, or None if there is none or no such table."""


async def read_schema_state(read: ReadScalar) -> SchemaState:
    """Return the state of the schema.

    Requirements are read only from a schema that is newer than this program.
    """
    revision = await read("SELECT version_num FROM alembic_version")
    if revision is not None and revision.startswith(RESTORING):
        return SchemaState(revision.removeprefix(RESTORING), is_restoring=True)
    if revision is None or revision <= HEAD:
        return SchemaState(revision)
    newer = (
        f"SELECT version FROM schema_requirements WHERE revision > '{HEAD}'"  # noqa: S608 - ours
        " ORDER BY revision DESC"
    )
    return SchemaState(revision, await read(newer))


async def require_readable_schema(reader: RawReader) -> None:
    """Raise if the schema that a reader sees and this program do not match.

    While the database is unavailable that is unknown.
    """

    async def read(query: str) -> str | None:
        rows = await reader.fetch_rows(query)
        return rows[0][0] if rows else None

    problem: SchemaProblem | None = None
    with contextlib.suppress(Unavailable):
        problem = (await read_schema_state(read)).problem
    if problem is not None:
        raise problem
