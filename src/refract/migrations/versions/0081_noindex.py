"""Links that search engines are asked not to list."""

from refract.migrations.steps import add_column, drop_column, sa

revision = "0081"
down_revision = "0080"


def upgrade() -> None:
    add_column("links", sa.Column("noindex", sa.Boolean))


def downgrade() -> None:
    drop_column("links", "noindex")
