"""What is forgotten every day: sessions that have ended, old lines of the audit log, stored answers, full buckets."""

from datetime import time, timedelta
from typing import ClassVar

from refract.core.runtime import Runtime
from refract.identity import audit, sessions
from refract.identity.payloads import LogRevocations
from refract.identity.revocation_log import append_revocations
from refract.jobs.payload import Payload
from refract.jobs.registry import handles
from refract.jobs.schedule import Every
from refract.limits.service import delete_idle_buckets
from refract.web import idempotency

BUCKETS_KEPT = timedelta(hours=2)
"""A bucket is full again after an hour, so deleting it changes nothing."""


class ForgetOld(Payload):
    """Remove what no longer means anything."""

    kind: ClassVar[str] = "identity.forget_old"


@handles(ForgetOld)
async def forget_old(rt: Runtime, _job: ForgetOld) -> None:
    now = rt.clock.now()
    async with rt.db.write() as session:
        await sessions.forget_old(session, rt)
    async with rt.db.write() as session:
        await audit.forget_old(session, rt)
    async with rt.db.write() as session:
        await idempotency.forget_old(session, now)
        await delete_idle_buckets(session, now - BUCKETS_KEPT)
    await rt.db.checkpoint()


@handles(LogRevocations)
async def log_revocations(rt: Runtime, _job: LogRevocations) -> None:
    await append_revocations(rt)


HANDLERS = (forget_old, log_revocations)
PERIODIC = (
    Every(ForgetOld(), daily=time(3, 0)),
    Every(LogRevocations(), daily=time(2, 50)),  # whatever was revoked without a line in the audit log
)
