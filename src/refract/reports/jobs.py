"""Removal of reports that were closed long ago."""

from datetime import time
from typing import ClassVar

from refract.core.runtime import Runtime
from refract.jobs.payload import Payload
from refract.jobs.registry import handles
from refract.jobs.schedule import Every
from refract.reports import service


class ForgetReports(Payload):
    """Remove reports closed longer ago than `REFRACT_REPORT_DAYS`."""

    kind: ClassVar[str] = "reports.forget"


@handles(ForgetReports)
async def forget_reports(rt: Runtime, _job: ForgetReports) -> None:
    async with rt.db.write() as session:
        await service.forget_closed(session, rt.clock.now(), rt.settings.report_days)


HANDLERS = (forget_reports,)
PERIODIC = (Every(ForgetReports(), daily=time(3, 20)),)
