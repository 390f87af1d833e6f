"""What happens to figures by themselves: hours are closed, old roll-ups are dropped, and salts are destroyed."""

from datetime import time
from typing import ClassVar

from refract.analytics import closing, salts
from refract.core.runtime import Runtime
from refract.jobs.payload import Payload
from refract.jobs.registry import handles
from refract.jobs.schedule import Every


class CloseHours(Payload):
    """Add hours that are over to the days and months they belong to."""

    kind: ClassVar[str] = "analytics.close_hours"


class DropOldRollups(Payload):
    """Drop figures that have been kept for as long as the operator wants."""

    kind: ClassVar[str] = "analytics.drop_old_rollups"


class DestroySalts(Payload):
    """Destroy what visitors of two days ago could be recognised by."""

    kind: ClassVar[str] = "analytics.destroy_salts"


@handles(CloseHours)
async def close_hours(rt: Runtime, _job: CloseHours) -> None:
    await closing.close_hours(rt)


@handles(DropOldRollups)
async def drop_old_rollups(rt: Runtime, _job: DropOldRollups) -> None:
    await closing.drop_old(rt)


@handles(DestroySalts)
async def destroy_salts(rt: Runtime, _job: DestroySalts) -> None:
    await salts.destroy_old(rt)


HANDLERS = (close_hours, drop_old_rollups, destroy_salts)
PERIODIC = (
    Every(CloseHours(), seconds=300),
    Every(DropOldRollups(), daily=time(3, 0)),
    Every(DestroySalts(), seconds=600),
)
