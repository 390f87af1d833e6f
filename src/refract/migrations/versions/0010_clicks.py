"""Click events, and how far each spool has been applied."""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    sa,
    text_key,
)

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    _events()
    _checkpoints()


def _events() -> None:
    create_table(
        "click_events",
        sa.Column("spool_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("segment", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("target_id", sa.BigInteger, nullable=False),
        sa.Column("bot", sa.Boolean, nullable=False),
        sa.Column("private", sa.Boolean, nullable=False),
        sa.Column("node", sa.String(64), nullable=False),
        sa.Column("network", sa.String(45)),
        sa.Column("user_agent", sa.String(512)),
        sa.Column("referrer", sa.String(2048)),
        sa.Column("referrer_host", text_key(255)),
        sa.Column("utm_source", sa.String(255)),
        sa.Column("utm_medium", sa.String(255)),
        sa.Column("utm_campaign", sa.String(255)),
        sa.Column("utm_term", sa.String(255)),
        sa.Column("utm_content", sa.String(255)),
        sa.Column("country_code", text_key(2)),
        sa.Column("country", sa.String(100)),
        sa.Column("city", sa.String(100)),
        sa.Column("latitude", sa.Double),
        sa.Column("longitude", sa.Double),
        sa.Column("device", sa.String(10), nullable=False),
        sa.Column("browser", sa.String(100)),
        sa.Column("system", sa.String(100)),
    )
    create_index("ix_click_events_target", "click_events", ["target_id", "at"])
    create_index("ix_click_events_country", "click_events", ["country_code", "at"])
    create_index("ix_click_events_at", "click_events", ["at"])


def _checkpoints() -> None:
    create_table(
        "spool_checkpoints",
        sa.Column("spool_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("segment", sa.Integer, nullable=False),
        sa.Column("place", sa.BigInteger, nullable=False),
        sa.Column("node", sa.String(64), nullable=False),
        sa.Column("stored", sa.BigInteger, nullable=False),
        sa.Column("torn", sa.BigInteger, nullable=False),
        sa.Column("damaged", sa.BigInteger, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    drop_table("spool_checkpoints")
    drop_table("click_events")
