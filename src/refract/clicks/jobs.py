"""Jobs of click data: close hours, drop old roll-ups, destroy salts, verify all clicks."""

from datetime import time
from typing import ClassVar

from refract.clicks import verify
from refract.clicks.ingest import salts
from refract.clicks.rollups import compaction
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue
from refract.jobs.schedule import PeriodicJob


class CloseHours(JobPayload):
    """Add hours that are over to their days and months."""

    kind: ClassVar[str] = "analytics.close_hours"


class DropOldRollups(JobPayload):
    """Drop roll-ups older than the configured retention."""

    kind: ClassVar[str] = "analytics.drop_old_rollups"


class DestroySalts(JobPayload):
    """Destroy the salts by which visitors of two days ago could be recognised."""

    kind: ClassVar[str] = "analytics.destroy_salts"


class VerifyClicks(JobPayload):
    """Check that all clicks are accounted for, and keep the result for the admin page."""

    kind: ClassVar[str] = "analytics.verify"


async def enqueue_verification(session: WriteSession, rt: Runtime) -> bool:
    """Start a verification; return whether none was waiting or running already."""
    kind = VerifyClicks.kind
    return await enqueue(session, rt, VerifyClicks(), dedup=kind) is not None


@handles(CloseHours)
async def close_hours(rt: Runtime, _job: CloseHours) -> None:
    await compaction.close_hours(rt)


@handles(DropOldRollups)
async def drop_old_rollups(rt: Runtime, _job: DropOldRollups) -> None:
    await compaction.drop_expired_rollups(rt)


@handles(DestroySalts)
async def destroy_salts(rt: Runtime, _job: DestroySalts) -> None:
    await salts.destroy_expired_salts(rt)


@handles(VerifyClicks)
async def verify_clicks(rt: Runtime, _job: VerifyClicks) -> None:
    found = await verify.reconcile(rt)
    async with rt.db.write() as session:
        await verify.store_verification(session, found, rt.clock.now())


HANDLERS = (close_hours, drop_old_rollups, destroy_salts, verify_clicks)
PERIODIC = (
    PeriodicJob(CloseHours(), seconds=300),
    PeriodicJob(DropOldRollups(), daily=time(3, 0)),
    PeriodicJob(DestroySalts(), seconds=600),
    PeriodicJob(VerifyClicks(), daily=time(4, 30)),
)
