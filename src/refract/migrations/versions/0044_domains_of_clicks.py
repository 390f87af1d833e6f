"""The domains of clicks."""

from refract.migrations.steps import add_column, drop_column, sa, text_key

revision = "0044"
down_revision = "0043"

_TABLES = ("click_events", "click_campaigns")


def upgrade() -> None:
    """Clicks that are stored already are counted as clicks on the default domain."""
    for table in _TABLES:
        add_column(table, sa.Column("domain", text_key(253)))


def downgrade() -> None:
    for table in _TABLES:
        drop_column(table, "domain")
