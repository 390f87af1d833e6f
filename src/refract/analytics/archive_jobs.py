"""Once a day: old days become column files, outlived ones go."""

from datetime import time
from typing import ClassVar

import structlog

from refract.analytics import archive
from refract.core.runtime import Runtime
from refract.jobs.payload import Payload
from refract.jobs.registry import handles
from refract.jobs.schedule import Every


class ArchiveClicks(Payload):
    """Move old click events into column files."""

    kind: ClassVar[str] = "analytics.archive"


@handles(ArchiveClicks, passing=(archive.Moved,))
async def archive_clicks(rt: Runtime, _job: ArchiveClicks) -> None:
    moved = await archive.archive_old_days(rt)
    dropped = await archive.drop_outlived(rt)
    await archive.sweep(rt)
    if moved or dropped:
        structlog.get_logger("refract.archive").info("clicks_archived", events=moved, files_dropped=dropped)


HANDLERS = (archive_clicks,)
PERIODIC = (Every(ArchiveClicks(), daily=time(3, 10)),)
