"""The data that a downgrade would lose, found by rehearsing it."""

from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from sqlalchemy import func, literal_column, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

from refract.core.db.schema_state import MIGRATIONS_DIR
from refract.migrations import steps


class DowngradeLoss(NamedTuple):
    """A table or column that a downgrade drops, and its number of rows or values."""

    table: str
    column: str | None
    value_count: int

    def __str__(self) -> str:
        if self.column is None:
            return f"table {self.table} ({self.value_count:,} rows)"
        return f"column {self.table}.{self.column} ({self.value_count:,} values)"


async def read_losses(connection: AsyncConnection, newest: str, target: str) -> list[DowngradeLoss]:
    """List what the downgrades from `newest` to `target` drop, newest first."""
    found = []
    for path in sorted((MIGRATIONS_DIR / "versions").glob("[0-9]*.py"), reverse=True):
        if target < path.stem.split("_", 1)[0] <= newest:
            for name, column in rehearse_downgrade(path, connection.dialect.name):
                found.append(
                    DowngradeLoss(name, column, await _count_values(connection, name, column))
                )
    return found


async def _count_values(connection: AsyncConnection, name: str, column: str | None) -> int:
    counted = func.count() if column is None else func.count(literal_column(column))
    return (await connection.execute(select(counted).select_from(table(name)))).scalar_one()


def rehearse_downgrade(path: Path, dialect: str) -> list[tuple[str, str | None]]:
    """List the tables and columns that the `downgrade` of a migration drops.

    It is run with steps that only record.
    """
    found: list[tuple[str, str | None]] = []
    module = ModuleType(f"refract_rehearsal_{path.stem}")
    SourceFileLoader(module.__name__, str(path)).exec_module(module)
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) == steps.__name__:
            setattr(module, name, _ignore)
    vars(module).update(
        drop_table=lambda name: found.append((name, None)),
        drop_column=lambda name, column: found.append((name, column)),
        op=_Rehearsal(dialect),
    )
    module.downgrade()
    return found


def _ignore(*_arguments: object, **_options: object) -> None:
    """Replace a step that drops no data."""


class _Rehearsal:
    """Alembic's operations during a rehearsal: nothing is executed; only the dialect is known."""

    def __init__(self, dialect: str) -> None:
        self.name = dialect
        self.dialect = self

    def get_bind(self) -> "_Rehearsal":
        return self

    def execute(self, *_arguments: object) -> None:
        """Execute nothing."""
