"""The schema that migrations make is the one that the models describe."""

from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from refract import migrations
from refract.core.runtime import Runtime
from refract.migrations.tables import metadata


async def _differences(rt: Runtime) -> list[Any]:
    def compare(connection: Any) -> list[Any]:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "include_object": _ours}
        )
        return list(compare_metadata(context, metadata))

    async with rt.db.engine.connect() as connection:
        return await connection.run_sync(compare)


def _ours(_object: Any, name: str | None, kind: str, _reflected: bool, _other: Any) -> bool:
    """Leave out full-text and trigram indexes, with their tables and columns: no model has them."""
    return not (
        kind in ("table", "index", "column")
        and name is not None
        and ("_fts" in name or name.endswith("_trigram"))
    )


async def test_migrated_schema_equals_the_models(rt: Runtime) -> None:
    assert await _differences(rt) == []


async def test_every_revision_goes_down_and_up_again(rt: Runtime) -> None:
    numbers = sorted(
        path.stem[:4] for path in (migrations.MIGRATIONS_DIR / "versions").glob("[0-9]*.py")
    )
    for number in [*reversed(numbers[:-1]), "base"]:
        await migrations.downgrade(rt.db, number)
    async with rt.db.engine.connect() as connection:
        left = await connection.run_sync(lambda sync: inspect(sync).get_table_names())
    assert [name for name in left if name != "alembic_version"] == []

    ran = await migrations.upgrade(rt.db)

    assert ran == numbers
    assert await _differences(rt) == []
