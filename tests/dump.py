"""Everything a database holds, as one text to search through."""

from sqlalchemy import select

from refract.core.runtime import Runtime
from refract.migrations.tables import metadata


async def dump(rt: Runtime) -> str:
    lines = []
    async with rt.db.read() as session:
        for table in metadata.sorted_tables:
            rows = (await session.execute(select(table))).all()
            lines += [f"{table.name}: {list(row)!r}" for row in rows]
    return "\n".join(lines)
