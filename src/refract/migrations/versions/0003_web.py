"""Stored responses for Idempotency-Key, and token buckets."""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    long_text,
    sa,
    text_key,
)

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    create_table(
        "stored_answers",
        sa.Column("actor", text_key(64), primary_key=True),
        sa.Column("key", text_key(255), primary_key=True),
        sa.Column("fingerprint", text_key(64), nullable=False),
        sa.Column("status", sa.SmallInteger),
        sa.Column("headers", long_text()),
        sa.Column("body", long_text()),
        sa.Column("expires_at", UtcDateTime, nullable=False),
    )
    create_index("ix_stored_answers_expires_at", "stored_answers", ["expires_at"])
    create_table(
        "limit_buckets",
        sa.Column("name", text_key(100), primary_key=True),
        sa.Column("tokens", sa.Double, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    drop_table("limit_buckets")
    drop_table("stored_answers")
