"""The operators' pages: what waits, what failed, what is blocked, and whether the figures add up."""

from typing import Annotated, Any

from fastapi import Form, Request
from sqlalchemy import select
from starlette.responses import RedirectResponse, Response

from refract.admin import service
from refract.analytics.figures import add_up
from refract.core.errors import Invalid, NotFound
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity.actors import Admin
from refract.identity.rendering import respond
from refract.identity.visitors import Actor
from refract.jobs import queries as jobs
from refract.jobs.models import JobStatus
from refract.links import blocking
from refract.links.safety_models import BlockedDomain
from refract.web import flash
from refract.web.toolkit import Cursor, Rt, page_router
from refract.web.vitals import Vitals

router = page_router()
DEAD_PER_PAGE = 25


@router.get("/app/admin")
async def admin_page(request: Request, actor: Admin, rt: Rt) -> Response:
    """Health with each dependency, the figures, and how much work waits."""
    vitals: Vitals = request.app.state.vitals
    _, readiness = await vitals.readiness()
    figures = await add_up(rt)
    async with rt.db.read() as session:
        depth = await jobs.depth(session)
        oldest = await jobs.oldest_due_seconds(session, rt)
    return respond(
        request,
        actor,
        "admin/index.html",
        page_title="Admin",
        here="overview",
        readiness=readiness,
        figures=figures,
        waiting=sum(count for (status, _), count in depth.items() if status != JobStatus.DEAD),
        dead=sum(count for (status, _), count in depth.items() if status == JobStatus.DEAD),
        oldest=round(oldest),
    )


@router.get("/app/admin/jobs")
async def jobs_page(request: Request, actor: Admin, rt: Rt, cursor: Cursor = None) -> Response:
    """How much waits of each kind, and what has been given up."""
    async with rt.db.read() as session:
        depth = await jobs.depth(session)
        page = await jobs.dead_jobs(session, Cursors(rt.secret), cursor=cursor, limit=DEAD_PER_PAGE)
    kinds = sorted({kind for _, kind in depth})
    return respond(
        request,
        actor,
        "admin/jobs.html",
        page_title="Jobs",
        here="jobs",
        kinds=[(kind, {status.value: depth.get((status, kind), 0) for status in JobStatus if status != JobStatus.DONE}) for kind in kinds],
        dead=page.items,
        next_url=f"/app/admin/jobs?cursor={page.next_cursor}" if page.next_cursor else None,
    )


@router.post("/app/admin/jobs/{job_id}/retry")
async def retry_job(job_id: Id, actor: Admin, rt: Rt) -> Response:
    """Give a job that was given up all its tries again."""
    async with rt.db.write() as session:
        job = await service.retry_job(session, rt, actor.user, job_id)
        kind = job.kind
    response = RedirectResponse("/app/admin/jobs", 303)
    flash.say(response, rt, f"{kind} is tried again.")
    return response


@router.get("/app/admin/blocked-domains")
async def blocked_page(request: Request, actor: Admin, rt: Rt) -> Response:
    return await _blocked(request, actor, rt)


@router.post("/app/admin/blocked-domains")
async def block(
    request: Request,
    actor: Admin,
    rt: Rt,
    domain: Annotated[str, Form(max_length=255)] = "",
    reason: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Block a domain: its links stop at once."""
    try:
        async with rt.db.write() as session:
            row = await blocking.block_domain(session, domain.strip(), reason=reason.strip(), by=actor.user.id, at=rt.clock.now())
            name = row.domain
    except Invalid as refused:
        values, errors = {"domain": domain, "reason": reason}, {"domain": refused.message}
        return await _blocked(request, actor, rt, status=refused.status, values=values, errors=errors)
    response = RedirectResponse("/app/admin/blocked-domains", 303)
    flash.say(response, rt, f"{name} is blocked.", undo=f"/app/admin/blocked-domains/{name}/remove")
    return response


@router.post("/app/admin/blocked-domains/{domain}/remove")
async def unblock(domain: str, actor: Admin, rt: Rt) -> Response:
    """Let links to a domain work again."""
    response = RedirectResponse("/app/admin/blocked-domains", 303)
    try:
        async with rt.db.write() as session:
            await blocking.unblock_domain(session, domain, by=actor.user.id, at=rt.clock.now())
        flash.say(response, rt, f"{domain[:100]} is allowed again.")
    except NotFound as refused:
        flash.say(response, rt, refused.message, kind="note")
    return response


async def _blocked(request: Request, actor: Actor, rt: Runtime, *, status: int = 200, **context: Any) -> Response:
    async with rt.db.read() as session:
        found = list(await session.scalars(select(BlockedDomain).order_by(BlockedDomain.domain).limit(1_000)))
    return respond(
        request, actor, "admin/blocked_domains.html", status=status, page_title="Blocked domains", here="blocked", domains=found, **context
    )
