"""Admin API of the audit log, background jobs, all links, and click counts."""

from typing import Annotated

from fastapi import Query

from refract.admin import queries, service
from refract.admin.schemas import AuditOut, AuditPage, FiguresOut, JobOut, JobPage, QueueDepth
from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.identity import audit
from refract.identity.dependencies import AdminCaller
from refract.jobs import queries as jobs
from refract.jobs.errors import JobNotDead, JobNotFound
from refract.links import queries as links
from refract.links.dependencies import to_link_caller
from refract.links.enums import LinkState
from refract.links.queries import LinkFilter, LinkSort, OwnerFilter
from refract.links.schemas import LinksPage
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems

audit_router = api_router("/admin/audit", "admin")
jobs_router = api_router("/admin/jobs", "admin")
figures_router = api_router("/admin/figures", "admin")
links_router = api_router("/admin/links", "admin")


@audit_router.get("")
async def read_audit_log(
    actor: AdminCaller,  # noqa: ARG001 - it guards
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
) -> AuditPage:
    """List the entries of the audit log, newest first. They are kept for 90 days."""
    async with rt.db.read() as session:
        page = await audit.list_entries(session, CursorCodec(rt.secret), limit=limit, cursor=cursor)
    return AuditPage(
        items=[AuditOut.model_validate(entry) for entry in page.items], next_cursor=page.next_cursor
    )


@jobs_router.get("")
async def list_jobs(
    actor: AdminCaller,  # noqa: ARG001 - it guards
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
) -> JobPage:
    """Return the depth of the queue, and the failed jobs, latest first."""
    async with rt.db.read() as session:
        page = await jobs.list_dead_jobs(
            session, CursorCodec(rt.secret), cursor=cursor, limit=limit
        )
        depth = await jobs.count_open_jobs(session)
        oldest = await jobs.get_oldest_due_seconds(session, rt)
    return JobPage(
        items=[JobOut.model_validate(job) for job in page.items],
        next_cursor=page.next_cursor,
        depth=[
            QueueDepth(kind=kind, status=status, jobs=count)
            for (status, kind), count in sorted(depth.items())
        ],
        oldest_due_seconds=oldest,
    )


@jobs_router.post("/{job_id}/retry", responses=problems(JobNotFound, JobNotDead))
async def retry_job(job_id: Id, actor: AdminCaller, rt: Rt) -> JobOut:
    """Requeue a failed job immediately, with all its attempts."""
    async with rt.db.write() as session:
        job = await service.retry_job(session, rt, actor.user, job_id)
        return JobOut.model_validate(job)


@figures_router.get("")
async def read_figures(actor: AdminCaller, rt: Rt) -> FiguresOut:  # noqa: ARG001 - it guards
    """Return the clicks received, by the spools that this node can read, and the last verification.

    Clicks are verified daily, and when you ask for it.
    """
    return queries.build_figures_out(await queries.load_figures(rt))


@figures_router.post("/verify", status_code=202)
async def verify_figures(actor: AdminCaller, rt: Rt) -> FiguresOut:
    """Start a verification of all clicks in the background, unless one is waiting or running."""
    async with rt.db.write() as session:
        await service.start_verification(session, rt, actor.user)
    return queries.build_figures_out(await queries.load_figures(rt))


@links_router.get("")
async def list_all_links(
    actor: AdminCaller,
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
    status: Annotated[
        LinkState | None, Query(description="As it is now; left out, everything but deleted links.")
    ] = None,
    q: Annotated[
        str | None,
        Query(
            max_length=200, description="Words that name, title, notes or destination must contain."
        ),
    ] = None,
    sort: Annotated[LinkSort, Query(description="What comes first.")] = LinkSort.CREATED,
) -> LinksPage:
    """List the links of all users."""
    filters, now = LinkFilter(OwnerFilter.ALL, status, q=q, sort=sort), rt.clock.now()
    async with rt.db.read() as session:
        page = await links.load_links_page(
            session,
            CursorCodec(rt.secret),
            to_link_caller(actor),
            filters,
            now,
            limit=limit,
            cursor=cursor,
        )
        cards = await links.load_cards(session, page.items)
    return LinksPage(
        items=[card.to_schema(rt.settings.public_url, now) for card in cards],
        next_cursor=page.next_cursor,
    )
