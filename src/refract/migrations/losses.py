"""What going back to an older revision would lose, read from the migrations themselves."""

import ast
from typing import NamedTuple

from sqlalchemy import func, literal_column, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

from refract.migrations.state import HERE


class Loss(NamedTuple):
    """A table, or a column of one, that a downgrade drops, and how many rows or values are in it."""

    table: str
    column: str | None
    held: int

    def __str__(self) -> str:
        if self.column is None:
            return f"table {self.table} ({self.held:,} rows)"
        return f"column {self.table}.{self.column} ({self.held:,} values)"


async def read_losses(connection: AsyncConnection, newest: str, target: str) -> list[Loss]:
    """List what the downgrades from `newest` to `target` drop, the newest first."""
    found = []
    for path in sorted((HERE / "versions").glob("[0-9]*.py"), reverse=True):
        if target < path.stem.split("_", 1)[0] <= newest:
            for name, column in dropped(path.read_text()):
                found.append(Loss(name, column, await _count(connection, name, column)))
    return found


async def _count(connection: AsyncConnection, name: str, column: str | None) -> int:
    counted = func.count() if column is None else func.count(literal_column(column))
    return (await connection.execute(select(counted).select_from(table(name)))).scalar_one()


def dropped(source: str) -> list[tuple[str, str | None]]:
    """List the tables and columns that the `downgrade` of a migration drops. Pure.

    Names of tables may stand in a loop; those of columns are written out (`drop_column("lists", "palette")`).
    """
    body = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == "downgrade")
    calls = [node for node in ast.walk(body) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    columns: list[tuple[str, str | None]] = []
    spoken_for: set[int] = set()
    for call in calls:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name != "drop_table":
            spoken_for |= {id(node) for argument in call.args for node in ast.walk(argument)}
        if name == "drop_column":
            words = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
            columns.append((str(words[0]), str(words[1])))
    drops_tables = any(isinstance(call.func, ast.Name) and call.func.id == "drop_table" for call in calls)
    constants = [node for node in ast.walk(body) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    plain = [str(node.value) for node in constants if id(node) not in spoken_for and str(node.value).isidentifier()]
    dialects = {"sqlite", "postgresql", "mysql"}
    tables: list[tuple[str, str | None]] = [(name, None) for name in dict.fromkeys(plain) if name not in dialects] if drops_tables else []
    return [*columns, *tables]
