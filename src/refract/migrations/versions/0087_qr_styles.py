"""Styles of the QR codes of links."""

from refract.migrations.steps import add_column, drop_column, sa

revision = "0087"
down_revision = "0086"


def upgrade() -> None:
    add_column("links", sa.Column("qr_style", sa.Text))


def downgrade() -> None:
    drop_column("links", "qr_style")
