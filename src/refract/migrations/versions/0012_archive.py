"""The Parquet files of archived click events."""

from refract.migrations.steps import UtcDateTime, create_table, drop_table, sa

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    create_table(
        "click_archives",
        sa.Column("day", sa.Date, primary_key=True),
        sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("events", sa.BigInteger, nullable=False),
        sa.Column("link_events", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("first_at", UtcDateTime, nullable=False),
        sa.Column("last_at", UtcDateTime, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("dropped_at", UtcDateTime),
    )


def downgrade() -> None:
    drop_table("click_archives")
