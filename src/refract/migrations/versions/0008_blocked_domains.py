"""Blocked domains, their epoch, and results of URL checks."""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    sa,
    text_key,
)

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    create_table(
        "blocked_domains",
        sa.Column("domain", text_key(253), primary_key=True),
        sa.Column("reason", sa.String(500), nullable=False),
        sa.Column(
            "blocked_by",
            sa.BigInteger,
            sa.ForeignKey("users.id", ondelete="SET NULL", name="fk_blocked_domains_blocked_by"),
        ),
        sa.Column("blocked_at", UtcDateTime, nullable=False),
    )
    create_index("ix_blocked_domains_blocked_at", "blocked_domains", ["blocked_at", "domain"])
    create_table(
        "block_epoch",
        sa.Column("id", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
    )
    create_table(
        "url_checks",
        sa.Column("url_hash", text_key(64), primary_key=True),
        sa.Column("verdict", sa.String(10), nullable=False),
        sa.Column("threat", sa.String(60)),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.CheckConstraint("verdict IN ('safe', 'bad')", name="ck_url_checks_verdict"),
    )
    create_index("ix_url_checks_expires_at", "url_checks", ["expires_at"])


def downgrade() -> None:
    drop_table("url_checks")
    drop_table("block_epoch")
    drop_table("blocked_domains")
