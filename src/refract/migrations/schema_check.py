"""Comparison of the schema with this program, by sessions and connections."""

import contextlib

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from refract.core.db import schema_state
from refract.core.db.errors import translate_db_error
from refract.core.db.schema_state import RESTORING, SchemaProblem, SchemaState
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime


async def read_schema_state(connection: AsyncConnection) -> SchemaState:
    """Return the state of the schema."""

    async def read(query: str) -> str | None:
        try:
            return (await connection.execute(text(query))).scalars().first()
        except DBAPIError as exc:
            if word := translate_db_error(exc):
                raise word from exc
            return None

    return await schema_state.read_schema_state(read)


async def mark_restore(connection: AsyncConnection, revision: str, *, is_finished: bool) -> None:
    """Record that a restore into this database has begun or is finished.

    In between it is neither served nor migrated.
    """
    mark = revision if is_finished else f"{RESTORING}{revision}"
    await connection.execute(text("UPDATE alembic_version SET version_num = :mark"), {"mark": mark})
    await connection.commit()


class SchemaCheck:
    """The last comparison of schema and code in a process. Readiness repeats it."""

    def __init__(self) -> None:
        self.problem: SchemaProblem | None = None

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
