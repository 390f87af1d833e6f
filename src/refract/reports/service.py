"""Changes of reports. The caller opens the transaction."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select, update

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.domains.hosts import split_address
from refract.limits.service import charge
from refract.links.queries import resolve_name
from refract.redirect.resolver import parse_typed_path
from refract.reports.errors import ReportNotFound
from refract.reports.models import Report, ReportStatus
from refract.reports.schemas import ReportCreate

_DIGEST_SIZE = 16


def extract_name(target: str) -> str:
    """Return the name in a short URL or path: `roadmap` of `https://go.example/roadmap+`."""
    return parse_typed_path(split_address("", target.partition("#")[0].partition("?")[0])[1]).name


async def receive_report(
    session: WriteSession, rt: Runtime, network: str, new: ReportCreate
) -> None:
    """Store a report if its target exists. Raises `RateLimited` if the network sent too many."""
    await charge(
        session, f"reports:{network}", 1, per_hour=rt.settings.reports_per_hour, now=rt.clock.now()
    )
    await file_report(session, rt, network, new)


async def file_report(
    session: WriteSession, rt: Runtime, network: str, new: ReportCreate
) -> Report | None:
    """Store a report, or return None if its target does not exist.

    A repeated report from the same network replaces the first.
    """
    host, name = split_address(rt.settings.public_url, new.target)[0], extract_name(new.target)
    found = await resolve_name(session, name, host)
    if found is None:
        return None
    digest = rt.secret.sign("report", network.encode(), size=_DIGEST_SIZE).hex()
    same = (
        Report.kind == found.kind,
        Report.target_id == found.target_id,
        Report.status == ReportStatus.OPEN,
    )
    report = await session.scalar(
        select(Report).where(*same, Report.network == digest).limit(1).with_for_update()
    )
    if report is None:
        report = Report(
            id=rt.ids.next_id(),
            kind=found.kind.value,
            target_id=found.target_id,
            name=name[:64],
            domain=host,
            network=digest,
            status=ReportStatus.OPEN.value,
            created_at=rt.clock.now(),
        )
        session.add(report)
    report.reason, report.details = new.reason.value, new.details
    await session.flush()
    return report


async def lock_report(session: WriteSession, report_id: int) -> Report:
    """Lock a report until the transaction ends."""
    report = await session.get(Report, report_id, with_for_update=True)
    if report is None:
        raise ReportNotFound
    return report


async def close_reports(
    session: WriteSession, report: Report, outcome: str, by: int, now: datetime
) -> None:
    """Close every open report of the same target."""
    closed: dict[str, Any] = {
        "status": ReportStatus.CLOSED.value,
        "outcome": outcome,
        "closed_at": now,
        "closed_by": by,
    }
    await _update_all(session, report, ReportStatus.OPEN, closed)


async def reopen_reports(session: WriteSession, report: Report) -> None:
    """Reopen the closed reports of the same target."""
    reopened: dict[str, Any] = {
        "status": ReportStatus.OPEN.value,
        "outcome": None,
        "closed_at": None,
        "closed_by": None,
    }
    await _update_all(session, report, ReportStatus.CLOSED, reopened)


async def _update_all(
    session: WriteSession, report: Report, status: ReportStatus, values: dict[str, Any]
) -> None:
    same = (
        Report.kind == report.kind,
        Report.target_id == report.target_id,
        Report.status == status,
    )
    await session.execute(
        update(Report).where(*same).values(values).execution_options(synchronize_session=False)
    )


async def purge_closed_reports(session: WriteSession, now: datetime, days: int) -> None:
    """Delete reports that were closed more than `days` days ago."""
    await session.execute(delete(Report).where(Report.closed_at < now - timedelta(days=days)))


async def delete_target_reports(session: WriteSession, target_ids: list[int]) -> None:
    """Delete all reports of these links and lists."""
    if target_ids:
        await session.execute(delete(Report).where(Report.target_id.in_(target_ids)))
