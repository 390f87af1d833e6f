"""Imports of links, as objects like those of bookmarks."""

from refract.migrations.steps import add_column, change_rows, drop_column, sa

revision = "0090"
down_revision = "0087"


def upgrade() -> None:
    """Add columns. Existing imports are of bookmarks, and none is a dry run."""
    add_column(
        "imports", sa.Column("subject", sa.String(20), nullable=False, server_default="library")
    )
    add_column("imports", sa.Column("options", sa.JSON))
    add_column(
        "imports", sa.Column("dry_run", sa.Boolean, nullable=False, server_default=sa.false())
    )
    for name in ("skipped", "kept"):
        add_column("imports", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
    add_column("import_rows", sa.Column("version", sa.BigInteger))


def _delete_link_imports(connection: sa.Connection) -> None:
    subject: sa.ColumnClause[str] = sa.column("subject")
    connection.execute(sa.delete(sa.table("imports", subject)).where(subject == "links"))


def downgrade() -> None:
    change_rows(_delete_link_imports)
    drop_column("import_rows", "version")
    for name in ("kept", "skipped", "dry_run", "options", "subject"):
        drop_column("imports", name)
