"""Email of invitations, and daily deletion of what has expired."""

from datetime import time, timedelta
from typing import ClassVar

from refract.core.runtime import Runtime
from refract.identity import audit, sessions
from refract.identity.invitations import jobs as invitation_jobs
from refract.identity.invitations.service import delete_old_invitations
from refract.identity.payloads import LogRevocations
from refract.identity.revocation_log import append_revocations
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.schedule import PeriodicJob
from refract.limits.service import delete_idle_buckets
from refract.web import idempotency

BUCKET_RETENTION = timedelta(hours=2)
"""A bucket is full again after an hour, so deleting it changes nothing."""


class DeleteExpiredRecords(JobPayload):
    """Delete records that have expired."""

    kind: ClassVar[str] = "identity.forget_old"


@handles(DeleteExpiredRecords)
async def delete_expired_records(rt: Runtime, _job: DeleteExpiredRecords) -> None:
    now = rt.clock.now()
    async with rt.db.write() as session:
        await sessions.delete_expired_sessions(session, rt)
        await delete_old_invitations(session, now)
    async with rt.db.write() as session:
        await audit.delete_old_entries(session, rt)
    async with rt.db.write() as session:
        await idempotency.delete_expired_responses(session, now)
        await delete_idle_buckets(session, now - BUCKET_RETENTION)
    await rt.db.checkpoint()


@handles(LogRevocations)
async def log_revocations(rt: Runtime, _job: LogRevocations) -> None:
    await append_revocations(rt)


HANDLERS = (delete_expired_records, log_revocations, *invitation_jobs.HANDLERS)
PERIODIC = (
    PeriodicJob(DeleteExpiredRecords(), daily=time(3, 0)),
    PeriodicJob(
        LogRevocations(), daily=time(2, 50)
    ),  # revocations without an entry in the audit log
)
