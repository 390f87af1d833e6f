"""Background jobs of entries: fetching page metadata, and rechecking URLs."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from sqlalchemy import select

from refract.core.db.session import WriteSession
from refract.core.extraction.pool import ANONYMOUS_OWNER, ExtractionPool
from refract.core.net import FetchError, PageFetcher
from refract.core.net.metadata import PageMetadata, fetch_metadata
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.jobs.errors import TryAgain
from refract.jobs.handlers import handles
from refract.jobs.models import COMMON_SHARE
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue_all
from refract.jobs.slices import run_in_slices
from refract.links.safety.jobs import (
    BATCH_SIZE,
    CLICKED_RECHECK_INTERVAL,
    MAX_BATCHES,
    RECHECK_INTERVAL,
)
from refract.links.safety.service import DestinationChecker
from refract.lists import queries, service
from refract.lists.models import ListEntry

FETCH_TIMEOUT_SECONDS = 5.0
_RETRY_BACKOFF = (60.0, 60.0, 300.0, 900.0, 3600.0, 3600.0 * 6, 3600.0 * 24)


class FetchEntry(JobPayload):
    """Fetch the metadata of an entry's page."""

    kind: ClassVar[str] = "lists.fetch_entry"

    entry_id: int


class RecheckEntries(JobPayload):
    """Check entries that were added while the checking service was unavailable."""

    kind: ClassVar[str] = "lists.recheck"

    entry_ids: list[int]


class RecheckDueEntries(JobPayload):
    """Recheck the entries whose last check is the oldest."""

    kind: ClassVar[str] = "lists.recheck_due"


def build_fetcher(rt: Runtime) -> PageFetcher:
    return PageFetcher.from_settings(rt.settings)


async def enqueue_entry_jobs(
    session: WriteSession, rt: Runtime, entries: Sequence[ListEntry], user_id: int | None
) -> None:
    """Enqueue the jobs of new entries, in the transaction that adds them.

    Anonymous callers have one share of the queue in common.
    """
    pending = [
        FetchEntry(entry_id=entry.id) for entry in entries if entry.fetch_status == "pending"
    ]
    await enqueue_all(session, rt, pending, share=user_id or COMMON_SHARE)
    unchecked = [entry.id for entry in entries if entry.checked_at is None]
    if unchecked:
        await enqueue_all(session, rt, [RecheckEntries(entry_ids=unchecked)])


@handles(FetchEntry)
async def fetch_entry(rt: Runtime, job: FetchEntry) -> None:
    """Fill in the page's metadata. There is one attempt.

    Only a failure of our own database is retried. If the URL was changed meanwhile, the result is
    dropped: its own job fills it in.
    """
    async with rt.db.read() as session:
        pending = await queries.find_pending_entry(session, job.entry_id)
    if pending is None:
        return  # removed in the meantime
    found = await _fetch_metadata(rt, *pending)  # slow: no transaction is open here
    async with rt.db.write() as writing:
        await service.fill_entry(writing, job.entry_id, found, rt.clock.now(), href=pending[0])


async def _fetch_metadata(rt: Runtime, href: str, owner_id: int | None) -> PageMetadata | None:
    owner = ANONYMOUS_OWNER if owner_id is None else str(owner_id)
    try:
        return await fetch_metadata(
            rt.singleton(build_fetcher),
            rt.singleton(ExtractionPool),
            href,
            owner=owner,
            budget=FETCH_TIMEOUT_SECONDS,
        )
    except FetchError:
        return None


@handles(RecheckEntries, tries=len(_RETRY_BACKOFF), backoff=_RETRY_BACKOFF)
async def recheck_entries(rt: Runtime, job: RecheckEntries) -> None:
    """Unflag safe entries, block dangerous ones; retry if the service is unavailable."""
    if not rt.singleton(DestinationChecker).has_checks:
        return  # checks have been disabled since
    async with rt.db.read() as session:
        query = select(ListEntry.id, ListEntry.href).where(ListEntry.id.in_(job.entry_ids))
        hrefs = dict((await session.execute(query)).all())
    if not await _check_entries(rt, hrefs):
        code = "CHECK_UNAVAILABLE"
        raise TryAgain(code, Phrase("The safety check service isn't responding."))


@handles(RecheckDueEntries)
async def recheck_due_entries(rt: Runtime, _job: RecheckDueEntries) -> None:
    """Recheck due entries, the oldest check first. Stop if the checking service is unavailable."""
    if rt.singleton(DestinationChecker).has_checks:
        await run_in_slices(rt, partial(_check_due_entries, rt), max_steps=MAX_BATCHES)


async def _check_due_entries(rt: Runtime) -> bool:
    async with rt.db.read() as session:
        hrefs = await queries.find_due_entries(
            session,
            rt.clock.now(),
            clicked_every=CLICKED_RECHECK_INTERVAL,
            every=RECHECK_INTERVAL,
            limit=BATCH_SIZE,
        )
    return bool(hrefs) and await _check_entries(rt, hrefs)


async def _check_entries(rt: Runtime, hrefs: Mapping[int, str]) -> bool:
    """Check entries and record the results. Return whether all of them could be checked.

    No transaction is open during the checks.
    """
    findings = await rt.singleton(DestinationChecker).recheck(list(hrefs.values()))
    found = {entry_id: findings[href] for entry_id, href in hrefs.items() if href in findings}
    safe = [entry_id for entry_id, finding in found.items() if finding.reason is None]
    async with rt.db.write() as session:
        await service.record_checks(
            session,
            safe,
            [entry_id for entry_id in found if entry_id not in set(safe)],
            rt.clock.now(),
        )
    return len(found) == len(hrefs)
