"""Expiry and parents of keys, provider sessions, tombstones of accounts, used tokens."""

from refract.migrations.steps import (
    UtcDateTime,
    add_column,
    create_index,
    create_table,
    drop_column,
    drop_index,
    drop_table,
    sa,
    text_key,
)

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    add_column("api_keys", sa.Column("expires_at", UtcDateTime))
    add_column("api_keys", sa.Column("parent_id", sa.BigInteger))
    add_column("api_keys", sa.Column("last_used_network", sa.String(50)))
    add_column("sessions", sa.Column("sid", text_key(255)))
    create_index("ix_sessions_sid", "sessions", ["sid"])
    add_column("users", sa.Column("admin_by_setting", sa.Boolean))
    create_table(
        "account_tombstones",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("digest", text_key(64), nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("digest", name="uq_account_tombstones_digest"),
    )
    create_table(
        "spent_tokens",
        sa.Column("digest", text_key(64), primary_key=True),
        sa.Column("expires_at", UtcDateTime, nullable=False),
    )
    create_index("ix_spent_tokens_expires_at", "spent_tokens", ["expires_at"])


def downgrade() -> None:
    drop_table("spent_tokens")
    drop_table("account_tombstones")
    drop_column("users", "admin_by_setting")
    drop_index("ix_sessions_sid", "sessions")
    drop_column("sessions", "sid")
    drop_column("api_keys", "last_used_network")
    drop_column("api_keys", "parent_id")
    drop_column("api_keys", "expires_at")
