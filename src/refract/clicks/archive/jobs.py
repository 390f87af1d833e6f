"""Daily job of the archive: move old days into Parquet files, drop expired files."""

from datetime import time
from typing import ClassVar

import structlog

from refract.clicks.archive import service
from refract.clicks.columns.service import build_missing_tables
from refract.clicks.ingest.shared_facts import drop_unused_facts
from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.schedule import PeriodicJob


class ArchiveClicks(JobPayload):
    """Move old click events into Parquet files."""

    kind: ClassVar[str] = "analytics.archive"


@handles(ArchiveClicks, transient_errors=(service.ArchiveConflict,))
async def archive_clicks(rt: Runtime, _job: ArchiveClicks) -> None:
    moved = await service.archive_old_days(rt)
    dropped = await service.drop_expired_files(rt)
    await service.sweep_files(rt)
    await build_missing_tables(rt)
    await drop_unused_facts(rt)
    if moved or dropped:
        structlog.get_logger("refract.archive").info(
            "clicks_archived", events=moved, files_dropped=dropped
        )


HANDLERS = (archive_clicks,)
PERIODIC = (PeriodicJob(ArchiveClicks(), daily=time(3, 10)),)
