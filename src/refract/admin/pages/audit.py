"""Admin page of the audit log."""

from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from refract.admin.pages.audit_details import translate_detail
from refract.core.db.session import ReadSession
from refract.core.errors import RefractError
from refract.core.pagination import CursorCodec
from refract.identity import audit
from refract.identity.dependencies import AdminCaller
from refract.identity.models import AuditEntry, User
from refract.identity.responses import render_response
from refract.identity.users import get_user_by_email, get_users_by_id
from refract.web.dependencies import PER_PAGE, CursorParam, Rt, build_pager, page_router
from refract.web.i18n import LazyText, gettext, lazy_gettext

router = page_router()
PATH = "/app/admin/audit"
MAX_ID_DIGITS = 19
AUDIT_LABELS: dict[str, LazyText] = {
    "account.allowed": lazy_gettext("Sign-up allowed again"),
    "account.deleted": lazy_gettext("Account deleted"),
    "account.exported": lazy_gettext("Account data exported"),
    "account.made": lazy_gettext("Account created"),
    "clicks.exported": lazy_gettext("Clicks exported"),
    "clicks.verification_started": lazy_gettext("Verification of clicks started"),
    "credentials.refused": lazy_gettext("Invalid credentials refused"),
    "domain.blocked": lazy_gettext("Domain blocked"),
    "domain.changed": lazy_gettext("Domain changed"),
    "domain.created": lazy_gettext("Domain added"),
    "domain.deleted": lazy_gettext("Domain deleted"),
    "domain.disabled": lazy_gettext("Domain disabled"),
    "domain.enabled": lazy_gettext("Domain enabled"),
    "domain.unblocked": lazy_gettext("Domain unblocked"),
    "invitation.accepted": lazy_gettext("Invitation accepted"),
    "invitation.created": lazy_gettext("Person invited"),
    "invitation.link_renewed": lazy_gettext("Invitation link replaced"),
    "invitation.revoked": lazy_gettext("Invitation revoked"),
    "job.retried": lazy_gettext("Job retried"),
    "key.created": lazy_gettext("API key created"),
    "key.revoked": lazy_gettext("API key revoked"),
    "library.exported": lazy_gettext("Library exported"),
    "library.import": lazy_gettext("Library import started"),
    "links.import": lazy_gettext("Link import started"),
    "library.import_rolled_back": lazy_gettext("Library import undone"),
    "link.deleted": lazy_gettext("Link deleted"),
    "link.disabled": lazy_gettext("Link disabled"),
    "link.edited": lazy_gettext("Link edited"),
    "link.enabled": lazy_gettext("Link enabled"),
    "link.invitation_withdrawn": lazy_gettext("Co-owner invitation withdrawn"),
    "link.name_released": lazy_gettext("Name removed from link"),
    "link.named": lazy_gettext("Name added to link"),
    "link.owner_added": lazy_gettext("Co-owner added"),
    "link.owner_invited": lazy_gettext("Co-owner invited"),
    "link.owner_removed": lazy_gettext("Co-owner removed"),
    "link.renewed": lazy_gettext("Link expiry changed"),
    "link.reverted": lazy_gettext("Link version restored"),
    "link.shared": lazy_gettext("Viewer added to link"),
    "link.transferred": lazy_gettext("Link transferred"),
    "link.undone": lazy_gettext("Link change undone"),
    "link.unshared": lazy_gettext("Viewer removed from link"),
    "links.exported": lazy_gettext("Links exported"),
    "links.held": lazy_gettext("Links put on hold"),
    "links.released": lazy_gettext("Links no longer on hold"),
    "list.deleted": lazy_gettext("List deleted"),
    "list.edited": lazy_gettext("List edited"),
    "list.edition_begun": lazy_gettext("List edition started"),
    "list.entries_added": lazy_gettext("Links added to list"),
    "list.entry_edited": lazy_gettext("Link of a list edited"),
    "list.entry_fetched": lazy_gettext("Link of a list fetched again"),
    "list.entry_removed": lazy_gettext("Link removed from list"),
    "list.entry_restored": lazy_gettext("Link restored to list"),
    "list.name_released": lazy_gettext("Name of a list released"),
    "list.published": lazy_gettext("List published"),
    "list.reordered": lazy_gettext("List reordered"),
    "list.restored": lazy_gettext("List restored"),
    "list.section_added": lazy_gettext("Section added to list"),
    "list.section_edited": lazy_gettext("Section of a list edited"),
    "list.section_removed": lazy_gettext("Section removed from list"),
    "list.transferred": lazy_gettext("List transferred"),
    "plan.changed": lazy_gettext("Plan changed"),
    "profile.changed": lazy_gettext("Profile changed"),
    "quota.changed": lazy_gettext("AI limit changed"),
    "report.block-domain": lazy_gettext("Reported domain blocked"),
    "report.disable-link": lazy_gettext("Reported link disabled"),
    "report.dismiss": lazy_gettext("Report dismissed"),
    "report.reopen": lazy_gettext("Report reopened"),
    "report.suspend-owner": lazy_gettext("Owner of a reported page suspended"),
    "report.unpublish-list": lazy_gettext("Reported list deleted"),
    "role.changed": lazy_gettext("Role changed"),
    "session.ended": lazy_gettext("Session ended"),
    "sessions.ended": lazy_gettext("Sessions ended"),
    "signed_in": lazy_gettext("Signed in"),
    "signed_out": lazy_gettext("Signed out"),
    "signin_link.made": lazy_gettext("Sign-in link created"),
    "status.changed": lazy_gettext("Account status changed"),
    "tag.changed": lazy_gettext("Tag changed"),
    "tag.deleted": lazy_gettext("Tag deleted"),
    "tag.merged": lazy_gettext("Tag merged"),
    "team.changed": lazy_gettext("Team renamed"),
    "team.created": lazy_gettext("Team created"),
    "team.defaults_changed": lazy_gettext("Defaults of a team changed"),
    "team.deleted": lazy_gettext("Team deleted"),
    "team.group_changed": lazy_gettext("Group of a team changed"),
    "team.key_created": lazy_gettext("API key of a team created"),
    "team.key_revoked": lazy_gettext("API key of a team revoked"),
    "team.left": lazy_gettext("Left a team"),
    "team.member_added": lazy_gettext("Team member added"),
    "team.member_removed": lazy_gettext("Team member removed"),
    "team.role_changed": lazy_gettext("Role in a team changed"),
}


@router.get(PATH)
async def audit_page(
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    cursor: CursorParam = None,
    action: Annotated[str, Query(max_length=64)] = "",
    person: Annotated[str, Query(max_length=255)] = "",
) -> Response:
    """Show the audit log, newest first, with the names of those who acted.

    `person` is the email address or the id of who acted.
    """
    async with rt.db.read() as session:
        actor_id = await _find_actor_id(session, person.strip()) if person.strip() else None
        page = await audit.list_entries(
            session,
            CursorCodec(rt.secret),
            limit=PER_PAGE,
            cursor=cursor,
            actor_id=actor_id,
            action=action or None,
        )
        actor_ids = {entry.actor_id for entry in page.items if entry.actor_id is not None}
        actors = await get_users_by_id(session, actor_ids)
    return render_response(
        request,
        actor,
        "admin/audit_log.html",
        page_title=gettext("Audit log"),
        here="audit",
        entries=[_build_row(entry, actors.get(entry.actor_id or 0)) for entry in page.items],
        days=rt.settings.audit_days,
        actions=sorted(
            ((name, str(label)) for name, label in AUDIT_LABELS.items()), key=lambda one: one[1]
        ),
        action=action,
        person=person.strip(),
        **build_pager(PATH, {"action": action, "person": person.strip()}, cursor, page.next_cursor),
    )


async def _find_actor_id(session: ReadSession, person: str) -> int:
    """Return the id of a person by email or id, or 0, which no user has."""
    if person.isdecimal():
        return int(person) if len(person) < MAX_ID_DIGITS else 0
    try:
        return (await get_user_by_email(session, person)).id
    except RefractError:
        return 0


def _build_row(entry: AuditEntry, actor: User | None) -> dict[str, Any]:
    """Return an entry with its label and the name of its actor, or the id if there is no name."""
    name = (actor.chosen_name or actor.email) if actor else None
    return {
        "at": entry.at,
        "label": AUDIT_LABELS.get(entry.action, entry.action),
        "action": entry.action,
        "target": entry.target,
        "detail": translate_detail(entry.action, entry.detail or ""),
        "actor": name or entry.actor_id,
        "key_prefix": entry.key_prefix,
    }
