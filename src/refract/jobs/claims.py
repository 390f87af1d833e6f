"""Claiming of jobs by one worker at a time, round-robin by share.

Every job has a share: the user it works for, the common share, or maintenance. A worker goes
through the shares in the order of their ids and claims the oldest job of each, so thousands of jobs
of one user delay another's by one turn. Maintenance has its own lane.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from sqlalchemy import case, select, text, update

from refract.core.db.session import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.jobs.models import MAINTENANCE_SHARE, WAITING_STATUSES, Job, JobStatus
from refract.jobs.payload import JobClaim
from refract.jobs.queue import get_database_time

_BY_SHARE = "FORCE INDEX (ix_jobs_status_share_run_at_id)"
"""Index hint for MariaDB.

Without it, MariaDB would scan the whole queue by time to find a user's oldest job, and lock the
rows it passes.
"""


@dataclass(slots=True)
class ShareCursor:
    """The share that a worker served last."""

    share: int = MAINTENANCE_SHARE


async def get_seconds_until_due(
    session: ReadSession, rt: Runtime, kinds: Sequence[str], *, maintenance_only: bool = False
) -> float | None:
    """Return the seconds until the next job of these kinds may be claimed.

    Zero or less means now, None that no job is waiting. Only reads, so that an idle worker never
    takes SQLite's single write lock.
    """
    earliest = []
    for status in WAITING_STATUSES:
        first = select(Job.run_at).where(Job.status == status, Job.kind.in_(kinds))
        if maintenance_only:
            first = first.where(Job.share == MAINTENANCE_SHARE).with_hint(Job, _BY_SHARE, "mysql")
        earliest.append(first.order_by(Job.run_at, Job.id).limit(1).scalar_subquery())
    found = [
        moment for moment in (await session.execute(select(*earliest))).one() if moment is not None
    ]
    return (
        (min(found) - await get_database_time(session, rt.clock)).total_seconds() if found else None
    )


async def claim_jobs(
    session: WriteSession,
    rt: Runtime,
    worker: str,
    tries: Mapping[str, int],
    limit: int,
    cursor: ShareCursor | None = None,
) -> list[JobClaim]:
    """Claim up to `limit` due jobs of users, starting at the share after `cursor`, and advance it.

    Rows that another worker is claiming are skipped; on SQLite the transaction itself excludes
    others.
    """
    cursor = cursor or ShareCursor()
    renewed_at = rt.clock.monotonic()
    at = await get_database_time(session, rt.clock)
    await _disable_bitmap_scans(session)
    shares = await _find_next_shares(session, cursor.share, at, list(tries), limit)
    rows: list[Any] = []
    for number, share in enumerate(shares):
        allotted = ceil((limit - len(rows)) / (len(shares) - number))
        rows += await _lock_oldest_jobs(session, share, at, tries, allotted)
        cursor.share = share
    return await _mark_claimed(session, rt, worker, tries, rows, at, renewed_at)


async def claim_maintenance_jobs(
    session: WriteSession, rt: Runtime, worker: str, tries: Mapping[str, int], limit: int
) -> list[JobClaim]:
    """Claim up to `limit` due jobs of the maintenance lane in order of age."""
    renewed_at = rt.clock.monotonic()
    at = await get_database_time(session, rt.clock)
    return await _mark_claimed(
        session,
        rt,
        worker,
        tries,
        await _lock_oldest_jobs(session, MAINTENANCE_SHARE, at, tries, limit),
        at,
        renewed_at,
    )


async def _disable_bitmap_scans(session: WriteSession) -> None:
    """Keep PostgreSQL from collecting and sorting the whole queue.

    It would while a burst of jobs is newer than its statistics.
    """
    if session.dialect == "postgresql":
        await session.execute(text("SET LOCAL enable_bitmapscan = off"))


async def _find_next_shares(
    session: WriteSession, after: int, at: datetime, kinds: Sequence[str], limit: int
) -> list[int]:
    """Return up to `limit` shares with due jobs, first those after `after`, then from the start."""
    found: list[int] = []
    above = after
    while len(found) < limit:
        share = await _find_next_share(session, above, at, kinds)
        if share is None and above > MAINTENANCE_SHARE:
            above = MAINTENANCE_SHARE
            continue
        if share is None or share in found:
            break
        found.append(share)
        above = share
    return found


async def _find_next_share(
    session: WriteSession, above: int, at: datetime, kinds: Sequence[str]
) -> int | None:
    """Return the next share with a due job.

    Takes one step in the index for each status, however many jobs a share has.
    """
    firsts = [
        select(Job.share)
        .where(Job.status == status, Job.share > above, Job.run_at <= at, Job.kind.in_(kinds))
        .with_hint(Job, _BY_SHARE, "mysql")
        .order_by(Job.share)
        .limit(1)
        .scalar_subquery()
        for status in WAITING_STATUSES
    ]
    found = [share for share in (await session.execute(select(*firsts))).one() if share is not None]
    return min(found, default=None)


async def _lock_oldest_jobs(
    session: WriteSession, share: int, at: datetime, tries: Mapping[str, int], limit: int
) -> list[Any]:
    """Lock the oldest due jobs of a share, those that failed before first."""
    rows: list[Any] = []
    # One status at a time follows the index, so MariaDB locks only the rows it returns.
    for status in WAITING_STATUSES:
        if len(rows) < limit:
            query = select(Job.id, Job.kind, Job.payload, Job.attempt_count, Job.share).where(
                Job.status == status,
                Job.share == share,
                Job.run_at <= at,
                Job.kind.in_(list(tries)),
            )
            ordered = (
                query.with_hint(Job, _BY_SHARE, "mysql")
                .order_by(Job.run_at, Job.id)
                .limit(limit - len(rows))
            )
            rows += (await session.execute(ordered.with_for_update(skip_locked=True))).all()
    return rows


async def _mark_claimed(
    session: WriteSession,
    rt: Runtime,
    worker: str,
    tries: Mapping[str, int],
    rows: Sequence[Any],
    at: datetime,
    renewed_at: float,
) -> list[JobClaim]:
    """Mark locked jobs as claimed.

    The attempt is counted here, so that a job that kills its worker is counted too.
    """
    if not rows:
        return []
    locked_by = (  # a new one per claim: a released or revived job counts its attempts anew
        f"{worker}/{secrets.token_hex(4)}"
    )
    await session.execute(
        update(Job)
        .where(Job.id.in_([row.id for row in rows]))
        .values(
            status=JobStatus.IN_PROGRESS,
            attempt_count=Job.attempt_count + 1,
            max_tries=case(dict(tries), value=Job.kind, else_=Job.max_tries),
            claimed_at=at,
            locked_by=locked_by,
            lease_expires_at=at + timedelta(seconds=rt.settings.job_lease_seconds),
        )
        .execution_options(synchronize_session=False)
    )
    return [
        JobClaim(
            row.id,
            row.kind,
            row.payload,
            row.attempt_count + 1,
            locked_by,
            rt.clock,
            renewed_at,
            share=row.share,
        )
        for row in rows
    ]
