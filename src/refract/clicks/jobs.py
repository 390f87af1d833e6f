"""Jobs of click data: roll-ups and their retention, salts, verification."""

from datetime import time
from typing import ClassVar

from refract.clicks import verify
from refract.clicks.ingest import salts
from refract.clicks.rollups import compaction, group_builder
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


class BuildGroup(JobPayload):
    """Sum up the clicks of a group of links, which is too large to be summed up when asked for."""

    kind: ClassVar[str] = "analytics.build_group"
    group_kind: int
    group_id: int


class DropGroup(JobPayload):
    """Drop the roll-ups of a group of links."""

    kind: ClassVar[str] = "analytics.drop_group"
    group_kind: int
    group_id: int


async def enqueue_group_build(
    session: WriteSession, rt: Runtime, group_kind: int, group_id: int
) -> None:
    """Let a group of links have roll-ups of its own."""
    await group_builder.request_group(session, group_kind, group_id)
    payload = BuildGroup(group_kind=group_kind, group_id=group_id)
    await enqueue(session, rt, payload, dedup=f"{BuildGroup.kind}:{group_kind}:{group_id}")


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


@handles(BuildGroup)
async def build_group(rt: Runtime, job: BuildGroup) -> None:
    await group_builder.build_group(rt, job.group_kind, job.group_id)


@handles(DropGroup)
async def drop_group(rt: Runtime, job: DropGroup) -> None:
    await group_builder.drop_group(rt, job.group_kind, job.group_id)


HANDLERS = (close_hours, drop_old_rollups, destroy_salts, verify_clicks, build_group, drop_group)
PERIODIC = (
    PeriodicJob(CloseHours(), seconds=300),
    PeriodicJob(DropOldRollups(), daily=time(3, 0)),
    PeriodicJob(DestroySalts(), seconds=600),
    PeriodicJob(VerifyClicks(), daily=time(4, 30)),
)
