"""Passwords of links, their start, and where they lead before it and after they expired."""

from refract.migrations.steps import UtcDateTime, add_column, drop_column, sa

revision = "0049"
down_revision = "0044"

NAMES = ("starts_at", "before_destination", "expired_destination", "password_hash")


def upgrade() -> None:
    add_column("links", sa.Column("starts_at", UtcDateTime))
    add_column("links", sa.Column("before_destination", sa.Text))
    add_column("links", sa.Column("expired_destination", sa.Text))
    add_column("links", sa.Column("password_hash", sa.String(128)))


def downgrade() -> None:
    for name in reversed(NAMES):
        drop_column("links", name)
