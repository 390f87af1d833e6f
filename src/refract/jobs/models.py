"""The outbox."""

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

from refract.core.db.types import TABLE_OPTIONS, Model, text_key

DEFAULT_MAX_TRIES = 3


class JobStatus(StrEnum):
    PENDING = "PENDING"
    IN_PROGRESS = "IN_PROGRESS"
    DONE = "DONE"
    FAILED = "FAILED"
    """Did not work, and will be tried again when `run_at` comes."""
    DEAD = "DEAD"
    """Did not work, and waits for a person."""


MAINTENANCE_SHARE = -1
"""The share of jobs that keep the installation itself in order. They have a lane of their own."""
COMMON_SHARE = 0
"""The share of jobs that work for no one person: what strangers ask for, and what releases before shares enqueued."""

WAITING_STATUSES = (JobStatus.FAILED, JobStatus.PENDING)
"""In the order in which they are claimed: what failed once has waited longest."""


class Job(Model):
    """A piece of work, and who is at it.

    `attempt_count` and `locked_by` together name one claim: no two claims of a job ever share both.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("dedup"),
        CheckConstraint(
            "status IN ('PENDING', 'IN_PROGRESS', 'DONE', 'FAILED', 'DEAD')", name="status"
        ),
        Index("ix_jobs_status_run_at_id", "status", "run_at", "id"),  # when to look again
        Index(
            "ix_jobs_status_share_run_at_id", "status", "share", "run_at", "id"
        ),  # what to claim next
        Index("ix_jobs_status_lease_expires_at", "status", "lease_expires_at"),  # whose worker died
        Index(
            "ix_jobs_status_finished_at_id", "status", "finished_at", "id"
        ),  # what to forget, and the dead, newest first
        TABLE_OPTIONS,
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
    share: Mapped[int] = mapped_column(
        default=COMMON_SHARE, server_default=str(COMMON_SHARE)
    )  # a person's id, NOBODY or MAINTENANCE
    dedup: Mapped[str | None] = mapped_column(
        text_key(200)
    )  # held while the job is open, so at most one open job has it


class JobSlot(Model):
    """The latest slot of a periodic job that was given out. Moving it forward is what makes a run exactly one."""

    __tablename__ = "job_slots"

    name: Mapped[str] = mapped_column(text_key(60), primary_key=True)
    slot: Mapped[datetime]
