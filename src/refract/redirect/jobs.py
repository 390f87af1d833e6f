"""The engine's periodic work."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar

from refract.core.runtime import Runtime
from refract.jobs.payload import Payload
from refract.jobs.registry import handles
from refract.jobs.schedule import Every
from refract.links import feed

KEPT = timedelta(minutes=5)
SLICE = 1000


class TrimFeed(Payload):
    """Delete news of changes that every process has read."""

    kind: ClassVar[str] = "redirect.trim_feed"


@handles(TrimFeed)
async def trim_feed(rt: Runtime, job: TrimFeed) -> None:  # noqa: ARG001 - every handler has this shape
    """In slices with a pause between them, so that nobody waits long for a lock."""
    before = datetime.now(UTC) - KEPT
    while True:
        async with rt.db.write() as session:
            if not await feed.trim(session, before, SLICE):
                return
        await rt.clock.sleep(0.01)


HANDLERS = (trim_feed,)
PERIODIC = (Every(TrimFeed(), seconds=120),)
