"""Abuse control: lists removed by administrators, names kept for undo, and reports."""

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

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    add_column(
        "lists",
        sa.Column("deleted_by_admin", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    add_column("names", sa.Column("held_until", UtcDateTime))
    create_index("ix_names_held_until", "names", ["held_until"])
    create_table(
        "reports",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("target_id", sa.BigInteger, nullable=False),
        sa.Column("name", text_key(64), nullable=False),
        sa.Column("reason", sa.String(10), nullable=False),
        sa.Column("details", sa.Text),
        sa.Column("network", text_key(32), nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("outcome", sa.String(20)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("closed_at", UtcDateTime),
        sa.Column(
            "closed_by", sa.BigInteger, sa.ForeignKey("users.id", name="fk_reports_closed_by")
        ),
        sa.CheckConstraint("kind IN ('link', 'list')", name="ck_reports_kind"),
        sa.CheckConstraint("status IN ('open', 'closed')", name="ck_reports_status"),
    )
    create_index("ix_reports_target", "reports", ["kind", "target_id", "status"])
    create_index("ix_reports_status", "reports", ["status", "id"])
    create_index("ix_reports_closed_at", "reports", ["closed_at"])


def downgrade() -> None:
    drop_table("reports")
    drop_index("ix_names_held_until", "names")
    drop_column("names", "held_until")
    drop_column("lists", "deleted_by_admin")
