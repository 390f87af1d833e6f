"""The rules of clicks."""

from refract.migrations.steps import add_column, drop_column, sa, text_key

revision = "0066"
down_revision = "0061"

_TABLES = ("click_events", "click_campaigns")


def upgrade() -> None:
    """Add columns. Clicks that are stored already do not say which rule decided."""
    for table in _TABLES:
        add_column(table, sa.Column("rule", text_key(10)))


def downgrade() -> None:
    for table in _TABLES:
        drop_column(table, "rule")
