"""Background jobs, and the slots of periodic jobs."""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    sa,
    text_key,
)

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    create_table(
        "jobs",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", text_key(60), nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("attempt_count", sa.SmallInteger, nullable=False),
        sa.Column("max_tries", sa.SmallInteger, nullable=False),
        sa.Column("run_at", UtcDateTime, nullable=False),
        sa.Column("claimed_at", UtcDateTime),
        sa.Column("locked_by", text_key(100)),
        sa.Column("lease_expires_at", UtcDateTime),
        sa.Column("last_error_code", sa.String(50)),
        sa.Column("last_error_message", sa.Text),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("finished_at", UtcDateTime),
        sa.Column("dedup", text_key(200)),
        sa.UniqueConstraint("dedup", name="uq_jobs_dedup"),
        sa.CheckConstraint(
            "status IN ('PENDING', 'IN_PROGRESS', 'DONE', 'FAILED', 'DEAD')", name="ck_jobs_status"
        ),
    )
    create_index("ix_jobs_status_run_at_id", "jobs", ["status", "run_at", "id"])
    create_index("ix_jobs_status_lease_expires_at", "jobs", ["status", "lease_expires_at"])
    create_index("ix_jobs_status_finished_at_id", "jobs", ["status", "finished_at", "id"])
    create_table(
        "job_slots",
        sa.Column("name", text_key(60), primary_key=True),
        sa.Column("slot", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    drop_table("job_slots")
    drop_table("jobs")
