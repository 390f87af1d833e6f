"""Roll-ups of clicks, the salts of visitors, and versions of browsers and systems."""

from refract.migrations.steps import (
    UtcDateTime,
    add_column,
    create_index,
    create_table,
    drop_column,
    drop_table,
    long_bytes,
    sa,
)

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    add_column("click_events", sa.Column("browser_version", sa.String(30)))
    add_column("click_events", sa.Column("system_version", sa.String(30)))
    create_table(
        "click_rollups",
        sa.Column("target_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("grain", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("people", sa.BigInteger, nullable=False),
        sa.Column("bots", sa.BigInteger, nullable=False),
        sa.Column("private", sa.BigInteger, nullable=False),
        sa.Column("uniques", sa.BigInteger, nullable=False),
        sa.Column("visitors", long_bytes()),
        sa.Column("parts", long_bytes()),
    )
    create_index("ix_click_rollups_start", "click_rollups", ["grain", "start", "target_id"])
    create_table(
        "rollup_state",
        sa.Column("id", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("turn", sa.BigInteger, nullable=False),
        sa.Column("closed_until", sa.BigInteger, nullable=False),
        sa.Column("closed_target", sa.BigInteger, nullable=False),
        sa.Column("quarters_from", sa.BigInteger, nullable=False),
        sa.Column("days_from", sa.BigInteger, nullable=False),
        sa.Column("months_from", sa.BigInteger, nullable=False),
        sa.Column("outlived", sa.BigInteger, nullable=False),
    )
    create_table(
        "visitor_salts",
        sa.Column("day", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("salt", sa.LargeBinary, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    drop_table("visitor_salts")
    drop_table("rollup_state")
    drop_table("click_rollups")
    drop_column("click_events", "system_version")
    drop_column("click_events", "browser_version")
