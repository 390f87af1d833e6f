"""Palettes of public lists."""

from refract.migrations.steps import add_column, drop_column, sa

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    add_column("lists", sa.Column("palette", sa.String(20)))


def downgrade() -> None:
    drop_column("lists", "palette")
