"""Decisions on abuse reports. The caller opens the transaction."""

from dataclasses import dataclass
from enum import StrEnum

from refract.admin.schemas import PersonPatch
from refract.admin.service import change_person
from refract.core.db.session import WriteSession
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.identity import audit
from refract.identity.models import User
from refract.links import service as links
from refract.links.access import LinkCaller as LinkActor
from refract.links.safety import blocked_domains
from refract.lists import service as lists
from refract.lists.access import ListCaller as ListActor
from refract.names.enums import NameTarget
from refract.names.grammar import format_name
from refract.reports import queries, service
from refract.reports.errors import ActionNotApplicable
from refract.reports.models import Report
from refract.reports.queries import ReportTarget
from refract.web.i18n import gettext


class ReportAction(StrEnum):
    """An action on the reports of one target."""

    DISMISS = "dismiss"
    REOPEN = "reopen"
    DISABLE_LINK = "disable-link"
    UNPUBLISH_LIST = "unpublish-list"
    SUSPEND_OWNER = "suspend-owner"
    BLOCK_DOMAIN = "block-domain"


@dataclass(frozen=True, slots=True)
class ReportDecision:
    """A decision, a message about it, and the path that undoes it by POST."""

    report: Report
    message: str
    undo: str | None


async def decide_report(
    session: WriteSession,
    rt: Runtime,
    by: User,
    report_id: int,
    action: ReportAction,
    domain: str | None = None,
) -> ReportDecision:
    """Act on the target and close its reports; dismissing and reopening change the reports alone.

    Each decision is recorded in the audit log.
    """
    report = await service.lock_report(session, report_id)
    target = (await queries.load_targets(session, [report]))[report.target_id]
    decision = await _apply_action(session, rt, by, report, target, action, domain)
    if action is ReportAction.REOPEN:
        await service.reopen_reports(session, report)
    else:
        await service.close_reports(session, report, action.value, by.id, rt.clock.now())
    about = f"{report.kind} {report.target_id}"
    await audit.record_event(
        session, rt, f"report.{action.value}", actor=by, target=about, detail=report.full_name
    )
    return decision


async def _apply_action(
    session: WriteSession,
    rt: Runtime,
    by: User,
    report: Report,
    target: ReportTarget,
    action: ReportAction,
    domain: str | None,
) -> ReportDecision:
    name = format_name(report.full_name)
    match action:
        case ReportAction.DISMISS:
            message = gettext("Dismissed reports of {name}", name=name)
            return ReportDecision(report, message, f"/app/admin/reports/{report.id}/reopen")
        case ReportAction.REOPEN:
            message = gettext("Reopened reports of {name}", name=name)
            return ReportDecision(report, message, None)
        case ReportAction.DISABLE_LINK | ReportAction.UNPUBLISH_LIST:
            return await _take_down_target(session, rt, by, report, action)
        case ReportAction.SUSPEND_OWNER:
            return await _suspend_owner(session, rt, by, report, target)
        case ReportAction.BLOCK_DOMAIN:
            row = await blocked_domains.block_domain(
                session,
                _choose_domain(target, domain),
                reason=f"Reported: {report.reason}",
                by=by.id,
                at=rt.clock.now(),
            )
            message = gettext("Blocked {domain}", domain=row.domain)
            undo = f"/app/admin/blocked-domains/{row.domain}/remove"
            return ReportDecision(report, message, undo)


async def _take_down_target(
    session: WriteSession, rt: Runtime, by: User, report: Report, action: ReportAction
) -> ReportDecision:
    """Disable a link or delete a list. The other kind of target is rejected."""
    now, name, target_id = rt.clock.now(), format_name(report.full_name), report.target_id
    if action is ReportAction.DISABLE_LINK:
        _require_kind(report, NameTarget.LINK, "only a link can be disabled")
        await links.disable_link(session, LinkActor(by.id, is_admin=True), target_id, now)
        message = gettext("Disabled {name}", name=name)
        return ReportDecision(report, message, f"/app/links/{target_id}/enable")
    _require_kind(report, NameTarget.LIST, "only a list can be unpublished")
    await lists.delete_list(session, rt.ids, ListActor(by.id, is_admin=True), target_id, now)
    message = gettext("Deleted {name}. You can restore it for 24 hours.", name=name)
    return ReportDecision(report, message, f"/app/admin/lists/{target_id}/undo")


async def _suspend_owner(
    session: WriteSession, rt: Runtime, by: User, report: Report, target: ReportTarget
) -> ReportDecision:
    if target.owner is None:
        raise ActionNotApplicable(why=Phrase("no account owns it"))
    suspension = PersonPatch(status="suspended")
    person = await change_person(session, rt, by, target.owner.id, suspension)
    message = gettext("Suspended {name}", name=person.chosen_name or person.email)
    return ReportDecision(report, message, f"/app/admin/people/{person.id}/restore")


def _require_kind(report: Report, kind: NameTarget, why: str) -> None:
    if report.kind != kind:
        raise ActionNotApplicable(why=why)


def _choose_domain(target: ReportTarget, domain: str | None) -> str:
    """Return the domain to block: the named one, or the only host of the target."""
    if domain:
        return domain
    if len(target.hosts) == 1:
        return target.hosts[0]
    raise ActionNotApplicable(
        why=Phrase("it goes to several hosts, so choose the domain")
        if target.hosts
        else Phrase("it has no destination")
    )
