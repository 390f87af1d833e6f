"""The feed of changes for redirect caches."""

from refract.migrations.steps import UtcDateTime, create_index, create_table, drop_table, sa

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    create_table(
        "link_feed",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("target_id", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("names", sa.JSON, nullable=False),
    )
    create_index("ix_link_feed_at", "link_feed", ["at"])


def downgrade() -> None:
    drop_table("link_feed")
