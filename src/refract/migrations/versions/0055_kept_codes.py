"""Codes that imports keep from other systems."""

from refract.migrations.steps import (
    add_column,
    change_rows,
    create_index,
    drop_column,
    drop_index,
    sa,
    text_key,
)

revision = "0055"
down_revision = "0054"


def upgrade() -> None:
    add_column("names", sa.Column("stem", text_key(320)))
    create_index("ix_names_stem", "names", ["stem"])


def _delete_codes(connection: sa.Connection) -> None:
    key: sa.ColumnClause[str] = sa.column("key")
    connection.execute(sa.delete(sa.table("names", key)).where(key.like("=%")))


def downgrade() -> None:
    change_rows(_delete_codes)
    drop_index("ix_names_stem", "names")
    drop_column("names", "stem")
