"""Purging of reports that were closed long ago."""

from datetime import time
from typing import ClassVar

from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.schedule import PeriodicJob
from refract.reports import service


class PurgeReports(JobPayload):
    """Remove reports closed longer ago than `REFRACT_REPORT_DAYS`."""

    kind: ClassVar[str] = "reports.forget"


@handles(PurgeReports)
async def purge_reports(rt: Runtime, _job: PurgeReports) -> None:
    async with rt.db.write() as session:
        await service.purge_closed_reports(session, rt.clock.now(), rt.settings.report_days)


HANDLERS = (purge_reports,)
PERIODIC = (PeriodicJob(PurgeReports(), daily=time(3, 20)),)
