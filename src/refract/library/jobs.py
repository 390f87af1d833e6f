"""Background jobs of the library: enrichment, stuck items, storage usage.

Read, work, write: slow work holds no transaction.
"""

import asyncio
import random
from dataclasses import dataclass
from datetime import timedelta

import structlog
from sqlalchemy import select

from refract.core.net import FetchError
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.schemas import Preferences
from refract.jobs.errors import TryAgain
from refract.jobs.handlers import handles
from refract.jobs.models import DEFAULT_MAX_TRIES, Job, JobStatus
from refract.jobs.queue import finish_job
from refract.jobs.schedule import PeriodicJob
from refract.jobs.slices import run_in_slices
from refract.library import service
from refract.library.enrichment.background import load_background
from refract.library.enrichment.model import ModelClient, ModelFailed
from refract.library.enrichment.offline import describe_offline
from refract.library.enrichment.page_fetcher import ArticleFetcher
from refract.library.enrichment.types import (
    EnrichmentInput,
    EnrichmentProposal,
    ExtractedPage,
    UserBackground,
)
from refract.library.models import (
    EnrichmentNotice,
    Item,
    ItemStatus,
    ItemType,
    LibraryUsage,
    SavedPage,
)
from refract.library.payloads import EnrichItem, FailStuckItems, RecountUsage
from refract.library.queries.items import lock_item_row
from refract.library.service import storage
from refract.web.i18n import mark

MAX_TRIES = DEFAULT_MAX_TRIES
ENRICHMENT_TIMEOUT = 900.0
MODEL_RETRY_SECONDS = (2.0, 8.0)
RECOUNT_INTERVAL = 7 * 86_400
_log = structlog.get_logger("refract.library")


@dataclass(frozen=True, slots=True)
class EnrichmentTask:
    """What the enrichment of an item starts from."""

    user_id: int
    text: str
    url: str | None
    preferences: Preferences
    is_paid: bool
    page: ExtractedPage | None


@handles(EnrichItem, tries=MAX_TRIES, timeout=ENRICHMENT_TIMEOUT)
async def enrich_item(rt: Runtime, job: EnrichItem) -> None:
    """Suggest a title, a summary and tags for an item."""
    task = await _load_task(rt, job)
    if task is None:
        return  # discarded, confirmed or erased meanwhile
    asking = task.is_paid and rt.settings.model_url is not None and task.preferences.suggestions
    if job.resumed and asking and rt.singleton(ModelClient).is_busy:
        await _requeue(rt, job)
        return
    page = task.page
    if task.url is not None and page is None:
        try:
            page = await rt.singleton(ArticleFetcher).fetch_article(task.url, task.user_id)
        except FetchError as exc:
            await _handle_fetch_error(rt, job, exc)
            return
    material = EnrichmentInput(task.text, task.url, page, task.preferences.language)
    async with rt.db.read() as session:
        background = await load_background(session, task.user_id, job.item_id)
    offline = await asyncio.to_thread(
        describe_offline, material, background, with_tags=task.preferences.suggestions
    )
    if asking and not job.resumed:
        if not await _store_draft(rt, job, offline, page if task.page is None else None):
            return
        if rt.singleton(ModelClient).is_busy:
            await _requeue(rt, job)
            return
    proposal, note = (
        await _ask_model(rt, material, background, offline) if asking else (offline, None)
    )
    await _store_final(
        rt, job, proposal, page if not asking and task.page is None else None, note, asking=asking
    )


async def _load_task(rt: Runtime, job: EnrichItem) -> EnrichmentTask | None:
    async with rt.db.read() as session:
        item = await session.get(Item, job.item_id)
        ours = item is not None and (job.claim is None or item.job_id == job.claim.job_id)
        if item is None or not ours or item.status != ItemStatus.ENRICHING:
            return None
        user = await session.get_one(User, item.user_id)
        # a page that was fetched before is not fetched again
        again = job.resumed or (job.claim is not None and job.claim.attempt > 1)
        page = await session.get(SavedPage, item.id) if again else None
        url = item.url if item.type == ItemType.ARTICLE else None
        preferences = Preferences.model_validate(user.preferences)
        return EnrichmentTask(
            user.id,
            item.text,
            url,
            preferences,
            item.charged_job_id is not None,
            _to_extracted_page(page) if page else None,
        )


def _to_extracted_page(page: SavedPage) -> ExtractedPage:
    return ExtractedPage(
        url=page.url,
        canonical_url=page.canonical_url,
        title=page.title,
        description=page.description,
        author=page.author,
        site=page.site,
        language=page.language,
        published_at=page.published_at,
        image_url=page.image_url,
        keywords=tuple(page.keywords),
        text=page.text,
        html=page.html,
    )


async def _handle_fetch_error(rt: Runtime, job: EnrichItem, error: FetchError) -> None:
    """Retry transient errors; mark the item as failed after the third attempt or any other error.

    A page that was fetched before stays.
    """
    attempt = job.claim.attempt if job.claim is not None else MAX_TRIES
    # without the URL: what a user saves is private
    _log.info("page_fetch_failed", item=str(job.item_id), kind=error.kind)
    if error.is_transient and attempt < MAX_TRIES:
        raise TryAgain(error.kind.upper(), error.message) from error
    async with rt.db.write() as session:
        await finish_job(session, job)
        item = await service.lock_item_for_job(session, job)
        if item is not None:
            await service.mark_failed(session, rt, item, error.message)


async def _store_draft(
    rt: Runtime, job: EnrichItem, offline: EnrichmentProposal, page: ExtractedPage | None
) -> bool:
    """Store the offline proposal while the model works; return False if the job is obsolete."""
    async with rt.db.write() as session:
        item = await service.lock_item_for_job(session, job)
        if item is None:
            return False
        if page is not None:
            await service.store_page(session, rt, item, page)
        await service.apply_proposal(session, rt, item, offline, final=False)
        return True


async def _requeue(rt: Runtime, job: EnrichItem) -> None:
    """Enqueue the job again for later, when the model may be free.

    A job that waited here would block a slot of the background workers.
    """
    async with rt.db.write() as session:
        await finish_job(session, job)
        item = await service.lock_item_for_job(session, job)
        if item is not None:
            seconds = random.uniform(*MODEL_RETRY_SECONDS)  # noqa: S311 - jitter
            await service.enqueue_enrichment(
                session, rt, item, run_at=rt.clock.now() + timedelta(seconds=seconds), resumed=True
            )


async def _ask_model(
    rt: Runtime, material: EnrichmentInput, background: UserBackground, offline: EnrichmentProposal
) -> tuple[EnrichmentProposal, EnrichmentNotice | None]:
    try:
        return await rt.singleton(ModelClient).describe(material, background), None
    except ModelFailed as exc:
        _log.warning("model_failed", note=exc.note, detail=str(exc))
        return offline, exc.note


async def _store_final(
    rt: Runtime,
    job: EnrichItem,
    proposal: EnrichmentProposal,
    page: ExtractedPage | None,
    note: EnrichmentNotice | None,
    *,
    asking: bool,
) -> None:
    """Store the final proposal and finish the job in one commit."""
    async with rt.db.write() as session:
        await finish_job(session, job)
        item = await service.lock_item_for_job(session, job)
        if item is None:
            return
        if page is not None:
            await service.store_page(session, rt, item, page)
        if note is not None:
            await service.refund_enrichment(session, rt, item, note)
        elif not asking and item.charged_job_id is not None:
            # the model was removed, or suggestions turned off, after the capture
            has_model = rt.settings.model_url is not None
            notice = (
                EnrichmentNotice.SUGGESTIONS_OFF
                if has_model
                else EnrichmentNotice.MODEL_UNAVAILABLE
            )
            await service.refund_enrichment(session, rt, item, notice)
        await service.apply_proposal(session, rt, item, proposal, final=True)
        await service.auto_confirm_item(session, rt, item)


@handles(FailStuckItems)
async def fail_stuck_items(rt: Runtime, _job: FailStuckItems) -> None:
    """Mark items as failed whose job died with its worker three times."""
    async with rt.db.read() as session:
        recent = rt.clock.now() - timedelta(days=1)
        dead = select(Job.id, Job.payload).where(
            Job.status == JobStatus.DEAD, Job.kind == EnrichItem.kind, Job.finished_at > recent
        )
        dead_jobs = {
            int(payload["item_id"]): job_id
            for job_id, payload in (await session.execute(dead)).all()
        }
        waiting = select(Item.id, Item.job_id).where(
            Item.id.in_(list(dead_jobs)), Item.status == ItemStatus.ENRICHING
        )
        stuck = (
            [
                item_id
                for item_id, job_id in (await session.execute(waiting)).all()
                if dead_jobs[item_id] == job_id
            ]
            if dead_jobs
            else []
        )
    for item_id in stuck:
        async with rt.db.write() as session:
            item = await lock_item_row(session, item_id)
            if (
                item is not None
                and item.status == ItemStatus.ENRICHING
                and item.job_id == dead_jobs[item_id]
            ):
                await service.mark_failed(
                    session, rt, item, mark("Processing stopped unexpectedly. Try again.")
                )


@handles(RecountUsage)
async def recount_usage(rt: Runtime, _job: RecountUsage) -> None:
    """Measure the usage of every user, each in a transaction of their own, and log drift."""
    last = -1

    async def recount_next() -> bool:
        nonlocal last
        async with rt.db.read() as session:
            after = (
                select(LibraryUsage.user_id)
                .where(LibraryUsage.user_id > last)
                .order_by(LibraryUsage.user_id)
                .limit(1)
            )
            user_id = await session.scalar(after)
        if user_id is None:
            return False
        async with rt.db.write() as session:
            off = await storage.reconcile_usage(session, user_id)
        if off is not None:
            _log.warning("usage_drifted", user=str(user_id), items=off.items, bytes=off.bytes)
        last = user_id
        return True

    await run_in_slices(rt, recount_next)


HANDLERS = (enrich_item, fail_stuck_items, recount_usage)
PERIODIC = (
    PeriodicJob(FailStuckItems(), seconds=60),
    PeriodicJob(RecountUsage(), seconds=RECOUNT_INTERVAL),
)
