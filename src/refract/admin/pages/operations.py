"""Admin pages: overview, all links, background jobs and blocked domains."""

from typing import Annotated, Any, Literal

from fastapi import Form, Query, Request
from starlette.responses import RedirectResponse, Response

from refract.admin import queries, service
from refract.admin.overview import load_overview
from refract.core.errors import Invalid, NotFound
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import AdminCaller
from refract.identity.responses import render_response
from refract.jobs import queries as jobs
from refract.jobs.models import Job, JobStatus
from refract.links import queries as links
from refract.links.dependencies import to_link_caller
from refract.links.enums import LinkState
from refract.links.queries import LinkFilter, OwnerFilter
from refract.links.safety import blocked_domains as safety_blocked_domains
from refract.web import flash
from refract.web.dependencies import PER_PAGE, CursorParam, Rt, build_pager, page_router
from refract.web.health import HealthEndpoints
from refract.web.i18n import gettext, translate_error, translate_stored_error

router = page_router()
LINKS_PATH = "/app/admin/links"
MAX_SHOWN_MESSAGE = 300
"""Characters of a failed job's message."""


@router.get("/app/admin")
async def admin_page(request: Request, actor: AdminCaller, rt: Rt) -> Response:
    """Show health, storage, trends, received clicks with their verification, and open jobs."""
    vitals: HealthEndpoints = request.app.state.vitals
    _, readiness = await vitals.check_readiness()
    figures = await queries.load_figures(rt)
    overview = await load_overview(rt)
    async with rt.db.read() as session:
        depth = await jobs.count_open_jobs(session)
        oldest = await jobs.get_oldest_due_seconds(session, rt)
    return render_response(
        request,
        actor,
        "admin/index.html",
        page_title=gettext("Admin"),
        here="overview",
        readiness=readiness,
        figures=figures,
        overview=overview,
        waiting=sum(count for (status, _), count in depth.items() if status != JobStatus.DEAD),
        dead=sum(count for (status, _), count in depth.items() if status == JobStatus.DEAD),
        oldest=round(oldest),
    )


@router.post("/app/admin/verify")
async def verify_clicks(actor: AdminCaller, rt: Rt) -> Response:
    """Start a verification of all clicks in the background."""
    async with rt.db.write() as session:
        is_new = await service.start_verification(session, rt, actor.user)
    response = RedirectResponse("/app/admin", 303)
    message = gettext("Verification started") if is_new else gettext("Already verifying")
    flash.add(response, rt, message)
    return response


@router.get(LINKS_PATH)
async def links_page(
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    cursor: CursorParam = None,
    q: Annotated[str, Query(max_length=200)] = "",
    status: LinkState | Literal[""] = "",
) -> Response:
    """Show links of all users, newest first; without a status, all but deleted ones."""
    filters = LinkFilter(OwnerFilter.ALL, status or None, q=q or None)
    now = rt.clock.now()
    async with rt.db.read() as session:
        page = await links.load_links_page(
            session,
            CursorCodec(rt.secret),
            to_link_caller(actor),
            filters,
            now,
            limit=PER_PAGE,
            cursor=cursor,
        )
        cards = await links.load_cards(session, page.items)
    return render_response(
        request,
        actor,
        "admin/links.html",
        page_title=gettext("Links"),
        here="links",
        links=[card.to_schema(rt.settings.public_url, now) for card in cards],
        q=q,
        chosen_status=status,
        **build_pager(LINKS_PATH, {"q": q, "status": status}, cursor, page.next_cursor),
    )


@router.get("/app/admin/jobs")
async def jobs_page(
    request: Request, actor: AdminCaller, rt: Rt, cursor: CursorParam = None
) -> Response:
    """Show open jobs by kind, and the failed ones."""
    async with rt.db.read() as session:
        depth = await jobs.count_open_jobs(session)
        page = await jobs.list_dead_jobs(
            session, CursorCodec(rt.secret), cursor=cursor, limit=PER_PAGE
        )
    kinds = sorted({kind for _, kind in depth})
    return render_response(
        request,
        actor,
        "admin/jobs.html",
        page_title=gettext("Jobs"),
        here="jobs",
        kinds=[
            (
                kind,
                {
                    status.value: depth.get((status, kind), 0)
                    for status in JobStatus
                    if status != JobStatus.DONE
                },
            )
            for kind in kinds
        ],
        dead=[(job, _explain_failure(job)) for job in page.items],
        next_url=f"/app/admin/jobs?cursor={page.next_cursor}" if page.next_cursor else None,
    )


def _explain_failure(job: Job) -> str:
    message = translate_stored_error(job.last_error_code or "", job.last_error_message or "")
    return message[:MAX_SHOWN_MESSAGE]


@router.post("/app/admin/jobs/{job_id}/retry")
async def retry_job(job_id: Id, actor: AdminCaller, rt: Rt) -> Response:
    """Requeue a failed job with all its attempts."""
    async with rt.db.write() as session:
        job = await service.retry_job(session, rt, actor.user, job_id)
        kind = job.kind
    response = RedirectResponse("/app/admin/jobs", 303)
    flash.add(response, rt, gettext("Retrying {kind}", kind=kind))
    return response


@router.get("/app/admin/blocked-domains")
async def blocked_page(request: Request, actor: AdminCaller, rt: Rt) -> Response:
    return await _render_blocked(request, actor, rt)


@router.post("/app/admin/blocked-domains")
async def block_domain(
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    domain: Annotated[str, Form(max_length=255)] = "",
    reason: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Block a domain. Its links stop working immediately."""
    try:
        async with rt.db.write() as session:
            row = await safety_blocked_domains.block_domain(
                session, domain.strip(), reason=reason.strip(), by=actor.user.id, at=rt.clock.now()
            )
            name = row.domain
    except Invalid as exc:
        values, errors = {"domain": domain, "reason": reason}, {"domain": translate_error(exc)}
        return await _render_blocked(
            request, actor, rt, status=exc.status, values=values, errors=errors
        )
    response = RedirectResponse("/app/admin/blocked-domains", 303)
    flash.add(
        response,
        rt,
        gettext("Blocked {domain}", domain=name),
        undo=f"/app/admin/blocked-domains/{name}/remove",
    )
    return response


@router.post("/app/admin/blocked-domains/{domain}/remove")
async def unblock_domain(domain: str, actor: AdminCaller, rt: Rt) -> Response:
    """Let links to a domain work again."""
    response = RedirectResponse("/app/admin/blocked-domains", 303)
    try:
        async with rt.db.write() as session:
            await safety_blocked_domains.unblock_domain(
                session, domain, by=actor.user.id, at=rt.clock.now()
            )
        flash.add(response, rt, gettext("Unblocked {domain}", domain=domain[:100]))
    except NotFound as exc:
        flash.add(response, rt, translate_error(exc), kind="note")
    return response


async def _render_blocked(
    request: Request, actor: Caller, rt: Runtime, *, status: int = 200, **context: Any
) -> Response:
    async with rt.db.read() as session:
        domains = await safety_blocked_domains.list_blocked_domains(session, limit=1_000)
    return render_response(
        request,
        actor,
        "admin/blocked_domains.html",
        status=status,
        page_title=gettext("Blocked domains"),
        here="blocked",
        domains=domains,
        **context,
    )
