"""The languages of clicks."""

from refract.migrations.steps import add_column, drop_column, sa, text_key

revision = "0052"
down_revision = "0050"

_TABLES = ("click_events", "click_campaigns")


def upgrade() -> None:
    """Add columns. The language of clicks that are stored already stays unknown."""
    for table in _TABLES:
        add_column(table, sa.Column("language", text_key(3)))


def downgrade() -> None:
    for table in _TABLES:
        drop_column(table, "language")
