"""Drop an index of click events that no query uses."""

from refract.migrations.steps import create_index, drop_index

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    drop_index("ix_click_events_country", "click_events")


def downgrade() -> None:
    create_index("ix_click_events_country", "click_events", ["country_code", "at"])
