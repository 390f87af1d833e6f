"""Rules of links."""

from refract.migrations.steps import add_column, drop_column, sa

revision = "0061"
down_revision = "0055"


def upgrade() -> None:
    add_column("links", sa.Column("rules", sa.Text))


def downgrade() -> None:
    drop_column("links", "rules")
