"""Periodic jobs of click data: close hours, drop old roll-ups, destroy salts."""

from datetime import time
from typing import ClassVar

from refract.clicks.ingest import salts
from refract.clicks.rollups import compaction
from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
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


@handles(CloseHours)
async def close_hours(rt: Runtime, _job: CloseHours) -> None:
    await compaction.close_hours(rt)


@handles(DropOldRollups)
async def drop_old_rollups(rt: Runtime, _job: DropOldRollups) -> None:
    await compaction.drop_expired_rollups(rt)


@handles(DestroySalts)
async def destroy_salts(rt: Runtime, _job: DestroySalts) -> None:
    await salts.destroy_expired_salts(rt)


HANDLERS = (close_hours, drop_old_rollups, destroy_salts)
PERIODIC = (
    PeriodicJob(CloseHours(), seconds=300),
    PeriodicJob(DropOldRollups(), daily=time(3, 0)),
    PeriodicJob(DestroySalts(), seconds=600),
)
