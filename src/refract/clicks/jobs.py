"""What happens to figures by themselves: hours are closed, old roll-ups are dropped, and salts are destroyed."""

from datetime import time
from typing import ClassVar

from refract.clicks.ingest import salts
from refract.clicks.rollups import compaction
from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.schedule import PeriodicJob


class CloseHours(JobPayload):
    """Add hours that are over to the days and months they belong to."""

    kind: ClassVar[str] = "analytics.close_hours"


class DropOldRollups(JobPayload):
    """Drop figures that have been kept for as long as the operator wants."""

    kind: ClassVar[str] = "analytics.drop_old_rollups"


class DestroySalts(JobPayload):
    """Destroy what visitors of two days ago could be recognised by."""

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
