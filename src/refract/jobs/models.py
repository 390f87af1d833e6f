"""Tables of background jobs."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Index,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key

DEFAULT_MAX_TRIES = 3


class JobStatus(StrEnum):
    PENDING = "PENDING"
    IN_PROGRESS = "IN_PROGRESS"
    DONE = "DONE"
    FAILED = "FAILED"
    """The last try failed; the next one is at `run_at`."""
    DEAD = "DEAD"
    """Failed permanently; waits for an operator."""


MAINTENANCE_SHARE = -1
"""The share of maintenance jobs of the installation, which have their own lane."""
COMMON_SHARE = 0
"""The share of jobs that work for no single user.

Such as those for strangers, and those enqueued by releases before shares.
"""

WAITING_STATUSES = (JobStatus.FAILED, JobStatus.PENDING)
"""In claiming order: a job that failed before has waited longest."""


class Job(Model):
    """A job and its claim.

    `attempt_count` and `locked_by` together identify one claim: no two claims of a job share both.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("dedup"),
        CheckConstraint(
            "status IN ('PENDING', 'IN_PROGRESS', 'DONE', 'FAILED', 'DEAD')", name="status"
        ),
        Index("ix_jobs_status_run_at_id", "status", "run_at", "id"),  # when to poll again
        # What to claim next.
        Index("ix_jobs_status_share_run_at_id", "status", "share", "run_at", "id"),
        Index("ix_jobs_status_lease_expires_at", "status", "lease_expires_at"),  # whose worker died
        # What to delete, and the dead jobs, newest first.
        Index("ix_jobs_status_finished_at_id", "status", "finished_at", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(text_key(60))
    payload: Mapped[dict[str, Any]]
    status: Mapped[str] = mapped_column(String(20), default=JobStatus.PENDING)
    attempt_count: Mapped[int] = mapped_column(SmallInteger, default=0)
    max_tries: Mapped[int] = mapped_column(SmallInteger, default=DEFAULT_MAX_TRIES)
    run_at: Mapped[datetime]
    claimed_at: Mapped[datetime | None]
    locked_by: Mapped[str | None] = mapped_column(text_key(100))
    lease_expires_at: Mapped[datetime | None]
    last_error_code: Mapped[str | None] = mapped_column(String(50))
    last_error_message: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    # A user's id, COMMON_SHARE or MAINTENANCE_SHARE.
    share: Mapped[int] = mapped_column(default=COMMON_SHARE, server_default=str(COMMON_SHARE))
    # Kept while the job is open, so at most one open job has it.
    dedup: Mapped[str | None] = mapped_column(text_key(200))


class JobSlot(Model):
    """The latest enqueued slot of a periodic job. Advancing it makes a run happen exactly once."""

    __tablename__ = "job_slots"

    name: Mapped[str] = mapped_column(text_key(60), primary_key=True)
    slot: Mapped[datetime]
