"""Schema changes that can be run again.

MariaDB commits after every DDL statement, so a revision that was killed half-way finds some of its
work done already. Every step therefore checks first. Types come from `refract.core.db.types` and
mean the same on three databases.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

from refract.core.db.types import TABLE_OPTIONS, UtcDateTime, long_bytes, long_text, text_key

__all__ = [
    "UtcDateTime",
    "accept_older_code",
    "add_column",
    "change_rows",
    "create_index",
    "create_table",
    "create_trigram_index",
    "drop_column",
    "drop_index",
    "drop_table",
    "long_bytes",
    "long_text",
    "op",
    "refuse_older_code",
    "sa",
    "set_column_types",
    "text_key",
]


def _inspect() -> sa.Inspector:
    return sa.inspect(op.get_bind())


def create_table(name: str, *columns: sa.Column[Any] | sa.Constraint) -> None:
    if not _inspect().has_table(name):
        op.create_table(name, *columns, **_build_options())


def drop_table(name: str) -> None:
    if _inspect().has_table(name):
        op.drop_table(name)


def create_index(
    name: str, table: str, columns: list[Any], *, unique: bool = False, **options: Any
) -> None:
    """Create an index on names, or on expressions such as `sa.text("created_at DESC")`."""
    if name not in {index["name"] for index in _inspect().get_indexes(table)}:
        op.create_index(name, table, columns, unique=unique, **options)


def create_trigram_index(name: str, table: str, column: str) -> None:
    """Create an index for parts of words and typing errors, on PostgreSQL.

    Without the extension, everything else works.
    """
    if _has_trigrams():
        create_index(
            name, table, [column], postgresql_using="gin", postgresql_ops={column: "gin_trgm_ops"}
        )


def _has_trigrams() -> bool:
    bind = op.get_bind()
    if bind.scalar(sa.text("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")):
        return True
    if not bind.scalar(sa.text("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'")):
        return False
    try:
        with bind.begin_nested():
            bind.execute(sa.text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
    except sa.exc.DBAPIError:  # only a privileged user may, and this one is not
        return False
    return True


def drop_index(name: str, table: str) -> None:
    if name in {index["name"] for index in _inspect().get_indexes(table)}:
        op.drop_index(name, table_name=table)


def add_column(table: str, column: sa.Column[Any]) -> None:
    if column.name not in {existing["name"] for existing in _inspect().get_columns(table)}:
        op.add_column(table, column)


def drop_column(table: str, column: str) -> None:
    if column in {existing["name"] for existing in _inspect().get_columns(table)}:
        # In place on SQLite too: recreating the table would lose the rows that refer to it.
        op.drop_column(table, column)


def set_column_types(table: str, types: dict[str, sa.String]) -> None:
    """Give required text columns other lengths.

    PostgreSQL and MariaDB lengthen columns in place. SQLite copies the table.
    """
    current = {found["name"]: found["type"] for found in _inspect().get_columns(table)}
    if all(getattr(current[name], "length", None) == new.length for name, new in types.items()):
        return
    with op.batch_alter_table(table) as batch:
        for name, new in types.items():
            batch.alter_column(name, type_=new, existing_nullable=False)


def change_rows(change: Callable[[sa.Connection], None]) -> None:
    """Change rows by a function, which must be able to run again."""
    change(op.get_bind())


def refuse_older_code(revision: str, version: str) -> None:
    """Let no code older than this revision start on the schema.

    For a change that is not additive; `version` is the one that introduces it.
    """
    accept_older_code(revision)
    op.execute(sa.insert(_REQUIREMENTS).values(revision=revision, version=version))


def accept_older_code(revision: str) -> None:
    """Undo `refuse_older_code`, in the downgrade of the same revision."""
    op.execute(sa.delete(_REQUIREMENTS).where(_REQUIREMENTS.c.revision == revision))


_REQUIREMENTS = sa.table("schema_requirements", sa.column("revision"), sa.column("version"))


def _build_options() -> dict[str, Any]:
    dialect = op.get_bind().dialect
    if dialect.name == "mysql" and not getattr(dialect, "is_mariadb", False):
        return {**TABLE_OPTIONS, "mysql_collate": "utf8mb4_0900_bin"}
    return dict(TABLE_OPTIONS)
