"""Invitations to create an account."""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    sa,
    text_key,
)

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    create_table(
        "account_invitations",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("inviter_id", sa.BigInteger, _user_key("inviter_id"), nullable=False),
        sa.Column("user_id", sa.BigInteger, _user_key("user_id")),
        sa.Column("token_hash", text_key(64), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("email", sa.String(255), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("note", sa.String(500), nullable=False),
        sa.Column("delivery", sa.String(10)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("accepted_at", UtcDateTime),
        sa.Column("revoked_at", UtcDateTime),
        sa.UniqueConstraint("token_hash", name="uq_account_invitations_token_hash"),
        sa.CheckConstraint("role IN ('user', 'admin')", name="ck_account_invitations_role"),
        sa.CheckConstraint(
            "delivery IN ('queued', 'sent', 'failed')", name="ck_account_invitations_delivery"
        ),
    )
    create_index("ix_account_invitations_created_at", "account_invitations", ["created_at", "id"])
    create_index("ix_account_invitations_expires_at", "account_invitations", ["expires_at"])
    create_index("ix_account_invitations_inviter", "account_invitations", ["inviter_id"])
    create_index("ix_account_invitations_user", "account_invitations", ["user_id"])


def _user_key(column: str) -> sa.ForeignKey:
    return sa.ForeignKey("users.id", ondelete="CASCADE", name=f"fk_account_invitations_{column}")


def downgrade() -> None:
    drop_table("account_invitations")
