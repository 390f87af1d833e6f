"""Preview cards of links."""

from refract.migrations.steps import add_column, drop_column, sa

revision = "0080"
down_revision = "0066"


def upgrade() -> None:
    add_column("links", sa.Column("preview_card", sa.Text))


def downgrade() -> None:
    drop_column("links", "preview_card")
