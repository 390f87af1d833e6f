"""Prometheus gauge of open reports."""

from sqlalchemy import func, select

from refract.core.runtime import Runtime
from refract.reports.models import Report, ReportStatus


async def observe_reports(rt: Runtime) -> None:
    """Set the gauge to the number of open reports."""
    waiting = rt.metrics.gauge("refract_reports_open", "Open abuse reports.")
    async with rt.db.read() as session:
        open_reports = (
            select(func.count()).select_from(Report).where(Report.status == ReportStatus.OPEN)
        )
        waiting.set(await session.scalar(open_reports) or 0)
