"""Moderation.

Users whose links are on hold, why a URL is flagged and when it was last checked, invitations to own
a link.
"""

from refract.migrations.steps import (
    UtcDateTime,
    add_column,
    create_index,
    create_table,
    drop_column,
    drop_index,
    drop_table,
    sa,
)

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    add_column("users", sa.Column("held_at", UtcDateTime))
    for table in ("links", "list_entries"):
        add_column(table, sa.Column("flag_reason", sa.String(20)))
        add_column(table, sa.Column("checked_at", UtcDateTime))
        create_index(f"ix_{table}_checked_at", table, ["checked_at", "id"])
    create_table(
        "link_invitations",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column(
            "link_id",
            sa.BigInteger,
            sa.ForeignKey("links.id", name="fk_link_invitations_link_id"),
            nullable=False,
        ),
        sa.Column(
            "inviter_id",
            sa.BigInteger,
            sa.ForeignKey("users.id", name="fk_link_invitations_inviter_id"),
            nullable=False,
        ),
        sa.Column(
            "invitee_id",
            sa.BigInteger,
            sa.ForeignKey("users.id", name="fk_link_invitations_invitee_id"),
            nullable=False,
        ),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("link_id", "invitee_id", name="uq_link_invitations_link_id_invitee_id"),
        sa.CheckConstraint("role IN ('owner', 'primary')", name="ck_link_invitations_role"),
    )
    create_index("ix_link_invitations_invitee", "link_invitations", ["invitee_id", "id"])
    create_index("ix_link_invitations_inviter", "link_invitations", ["inviter_id"])
    create_index("ix_link_invitations_expires_at", "link_invitations", ["expires_at"])


def downgrade() -> None:
    drop_table("link_invitations")
    for table in ("list_entries", "links"):
        drop_index(f"ix_{table}_checked_at", table)
        drop_column(table, "checked_at")
        drop_column(table, "flag_reason")
    drop_column("users", "held_at")
