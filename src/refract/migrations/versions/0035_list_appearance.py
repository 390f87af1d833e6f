"""Layouts, covers, authors and sections of lists."""

from refract.migrations.steps import add_column, drop_column, sa

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    add_column("lists", sa.Column("layout", sa.String(10)))
    add_column("lists", sa.Column("cover", sa.String(20)))
    add_column(
        "lists", sa.Column("shows_author", sa.Boolean, nullable=False, server_default=sa.false())
    )
    add_column("lists", sa.Column("sections", sa.JSON))


def downgrade() -> None:
    for name in ("sections", "shows_author", "cover", "layout"):
        drop_column("lists", name)
