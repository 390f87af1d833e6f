"""Everything a database holds, as one text to search through.

On SQLite the full-text index too, which is tables of its own.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select, text

from refract.core.runtime import Runtime
from refract.migrations.tables import metadata


async def dump(rt: Runtime) -> str:
    lines = []
    async with rt.db.read() as session:
        for table in metadata.sorted_tables:
            rows = (await session.execute(select(table))).all()
            lines += [f"{table.name}: {list(row)!r}" for row in rows]
        if session.dialect == "sqlite":
            for name in await session.scalars(
                text("SELECT name FROM sqlite_master WHERE name LIKE '%_search_fts_%'")
            ):
                everything = text(f"SELECT * FROM {name}")  # noqa: S608 - a name of ours
                rows = (await session.execute(everything)).all()
                lines += [f"{name}: {_legible(row)!r}" for row in rows]
    return "\n".join(lines)


def _legible(row: Iterable[Any]) -> list[Any]:
    """What an index keeps is bytes with words among them."""
    return [value.decode("latin-1") if isinstance(value, bytes) else value for value in row]
