"""The share of each job, for round-robin claims, and the storage of each user."""

from refract.migrations.steps import (
    add_column,
    create_index,
    create_table,
    drop_column,
    drop_index,
    drop_table,
    sa,
)

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    add_column("jobs", sa.Column("share", sa.BigInteger, nullable=False, server_default="0"))
    create_index("ix_jobs_status_share_run_at_id", "jobs", ["status", "share", "run_at", "id"])
    create_table(
        "library_usage",
        sa.Column("user_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("items", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_library_usage_user_id_users", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    drop_table("library_usage")
    drop_index("ix_jobs_status_share_run_at_id", "jobs")
    drop_column("jobs", "share")
