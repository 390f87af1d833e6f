"""Users, sessions, one-time sign-in links, API keys, audit log."""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    sa,
    text_key,
)

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    _users()
    _api_keys()
    _sessions()
    _signin_links()
    _audit_log()


def _users() -> None:
    create_table(
        "users",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("issuer", text_key(255), nullable=False),
        sa.Column("subject", text_key(255), nullable=False),
        sa.Column("email", sa.String(255), nullable=False),
        sa.Column("email_folded", text_key(255), nullable=False),
        sa.Column("email_verified", sa.Boolean, nullable=False),
        sa.Column("display_name", sa.String(100), nullable=False),
        sa.Column("nickname", sa.String(40)),
        sa.Column("avatar_url", sa.String(2048)),
        sa.Column("bio", sa.String(200)),
        sa.Column("preferences", sa.JSON, nullable=False),
        sa.Column("plan", sa.String(20), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("last_sync_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("issuer", "subject", name="uq_users_issuer_subject"),
        sa.CheckConstraint("status IN ('active', 'suspended', 'deleted')", name="ck_users_status"),
        sa.CheckConstraint("role IN ('user', 'admin')", name="ck_users_role"),
        sa.CheckConstraint("plan IN ('free', 'pro')", name="ck_users_plan"),
    )
    create_index("ix_users_email_folded", "users", ["email_folded"])
    create_index("ix_users_created_at", "users", ["created_at", "id"])


def _api_keys() -> None:
    create_table(
        "api_keys",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column(
            "user_id",
            sa.BigInteger,
            sa.ForeignKey("users.id", ondelete="CASCADE", name="fk_api_keys_user_id"),
            nullable=False,
        ),
        sa.Column("key_hash", text_key(64), nullable=False),
        sa.Column("key_prefix", sa.String(16), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("last_used_at", UtcDateTime),
        sa.Column("usage_count", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("key_hash", name="uq_api_keys_key_hash"),
        sa.CheckConstraint("status IN ('active', 'revoked')", name="ck_api_keys_status"),
    )
    create_index("ix_api_keys_user", "api_keys", ["user_id", "status", "created_at"])


def _sessions() -> None:
    create_table(
        "sessions",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column(
            "user_id",
            sa.BigInteger,
            sa.ForeignKey("users.id", ondelete="CASCADE", name="fk_sessions_user_id"),
            nullable=False,
        ),
        sa.Column("token_hash", text_key(64), nullable=False),
        sa.Column("agent", sa.String(200), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("last_seen_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("token_hash", name="uq_sessions_token_hash"),
    )
    create_index("ix_sessions_user", "sessions", ["user_id", "created_at"])
    create_index("ix_sessions_expires_at", "sessions", ["expires_at"])


def _signin_links() -> None:
    create_table(
        "signin_links",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column(
            "user_id",
            sa.BigInteger,
            sa.ForeignKey("users.id", ondelete="CASCADE", name="fk_signin_links_user_id"),
            nullable=False,
        ),
        sa.Column("token_hash", text_key(64), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("used_at", UtcDateTime),
        sa.UniqueConstraint("token_hash", name="uq_signin_links_token_hash"),
    )
    create_index("ix_signin_links_expires_at", "signin_links", ["expires_at"])


def _audit_log() -> None:
    create_table(
        "audit_log",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("actor_id", sa.BigInteger),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("target", sa.String(200)),
        sa.Column("detail", sa.Text),
        sa.Column("request_id", sa.String(64)),
    )
    create_index("ix_audit_log_at", "audit_log", ["at", "id"])
    create_index("ix_audit_log_actor", "audit_log", ["actor_id", "at"])


def downgrade() -> None:
    for table in ("audit_log", "signin_links", "sessions", "api_keys", "users"):
        drop_table(table)
