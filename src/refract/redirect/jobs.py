"""The engine's periodic work."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar

from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.schedule import PeriodicJob
from refract.links import feed

FEED_RETENTION = timedelta(minutes=5)
BATCH_SIZE = 1000


class TrimFeed(JobPayload):
    """Delete news of changes that every process has read."""

    kind: ClassVar[str] = "redirect.trim_feed"


@handles(TrimFeed)
async def trim_feed(rt: Runtime, job: TrimFeed) -> None:  # noqa: ARG001 - every handler has this shape
    """In slices with a pause between them, so that nobody waits long for a lock."""
    before = datetime.now(UTC) - FEED_RETENTION
    while True:
        async with rt.db.write() as session:
            if not await feed.trim_feed(session, before, BATCH_SIZE):
                return
        await rt.clock.sleep(0.01)


HANDLERS = (trim_feed,)
PERIODIC = (PeriodicJob(TrimFeed(), seconds=120),)
