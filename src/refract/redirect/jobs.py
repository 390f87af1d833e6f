"""Periodic jobs of the redirect engine."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar

from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.schedule import PeriodicJob
from refract.jobs.slices import write_in_slices
from refract.links import feed

FEED_RETENTION = timedelta(minutes=5)
BATCH_SIZE = 1000


class TrimFeed(JobPayload):
    """Delete rows of the feed that every process has read."""

    kind: ClassVar[str] = "redirect.trim_feed"


@handles(TrimFeed)
async def trim_feed(rt: Runtime, job: TrimFeed) -> None:  # noqa: ARG001 - a job handler
    before = datetime.now(UTC) - FEED_RETENTION
    await write_in_slices(rt, lambda session: feed.trim_feed(session, before, BATCH_SIZE))


HANDLERS = (trim_feed,)
PERIODIC = (PeriodicJob(TrimFeed(), seconds=120),)
