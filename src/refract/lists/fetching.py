"""Work for later on entries: what their pages say of themselves, and a second look at those nobody could be asked about."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from sqlalchemy import select

from refract.core.db import WriteSession
from refract.core.extraction.pool import STRANGERS, ExtractionPool
from refract.core.net import Fetcher, FetchError
from refract.core.net.metadata import Metadata, fetch_metadata
from refract.core.runtime import Runtime
from refract.jobs.errors import TryAgain
from refract.jobs.models import NOBODY
from refract.jobs.payload import Payload
from refract.jobs.queue import enqueue_all
from refract.jobs.registry import handles
from refract.links.safety import Safety
from refract.links.safety_jobs import BATCH_SIZE, BREATH_SECONDS, CLICKED_EVERY, EVERY, MAX_BATCHES
from refract.lists import queries, service
from refract.lists.models import ListEntry

BUDGET_SECONDS = 5.0
_PATIENT = (60.0, 60.0, 300.0, 900.0, 3600.0, 3600.0 * 6, 3600.0 * 24)


class FetchEntry(Payload):
    """An entry whose page is to be looked at."""

    kind: ClassVar[str] = "lists.fetch_entry"

    entry_id: int


class RecheckEntries(Payload):
    """Entries that are to be checked now, since the checking service was away when they were added."""

    kind: ClassVar[str] = "lists.recheck"

    entry_ids: list[int]


class RecheckDueEntries(Payload):
    """Check the entries again that were checked longest ago."""

    kind: ClassVar[str] = "lists.recheck_due"


def fetcher(rt: Runtime) -> Fetcher:
    return Fetcher.from_settings(rt.settings)


async def look_later(session: WriteSession, rt: Runtime, entries: Sequence[ListEntry], user_id: int | None) -> None:
    """Ask for everything that new entries still need, in the transaction that made them. Strangers share one turn."""
    pending = [FetchEntry(entry_id=entry.id) for entry in entries if entry.fetch_status == "pending"]
    await enqueue_all(session, rt, pending, share=user_id or NOBODY)
    unchecked = [entry.id for entry in entries if entry.checked_at is None]
    if unchecked:
        await enqueue_all(session, rt, [RecheckEntries(entry_ids=unchecked)])


@handles(FetchEntry)
async def fetch_entry(rt: Runtime, job: FetchEntry) -> None:
    """Fill in what the page says. One look is all, and final; tried again is only what our own database kept us from."""
    async with rt.db.read() as session:
        pending = await queries.still_pending(session, job.entry_id)
    if pending is None:
        return  # taken out while it waited
    found = await _look(rt, *pending)  # slow: no transaction is open here
    async with rt.db.write() as writing:
        await service.fill_entry(writing, job.entry_id, found, rt.clock.now())


async def _look(rt: Runtime, href: str, owner_id: int | None) -> Metadata | None:
    owner = STRANGERS if owner_id is None else str(owner_id)
    try:
        return await fetch_metadata(rt.part(fetcher), rt.part(ExtractionPool), href, owner=owner, budget=BUDGET_SECONDS)
    except FetchError:
        return None


@handles(RecheckEntries, tries=len(_PATIENT), backoff=_PATIENT)
async def recheck_entries(rt: Runtime, job: RecheckEntries) -> None:
    """Take the flag off what is safe, and stop what is bad; what cannot be asked about is tried again."""
    if not rt.part(Safety).has_checks:
        return  # the operator no longer wants it
    async with rt.db.read() as session:
        wanted = select(ListEntry.id, ListEntry.href).where(ListEntry.id.in_(job.entry_ids))
        hrefs = dict((await session.execute(wanted)).all())
    if not await _check(rt, hrefs):
        code = "CHECK_UNAVAILABLE"
        raise TryAgain(code, "The checking service gave no answer.")


@handles(RecheckDueEntries)
async def recheck_due_entries(rt: Runtime, _job: RecheckDueEntries) -> None:
    """Check what is due, the longest unchecked first. A service that does not answer ends the run."""
    for _ in range(MAX_BATCHES if rt.part(Safety).has_checks else 0):
        async with rt.db.read() as session:
            hrefs = await queries.due_entries(session, rt.clock.now(), clicked_every=CLICKED_EVERY, every=EVERY, most=BATCH_SIZE)
        if not hrefs or not await _check(rt, hrefs):
            return
        await rt.clock.sleep(BREATH_SECONDS)


async def _check(rt: Runtime, hrefs: Mapping[int, str]) -> bool:
    """Check and settle. Return whether there was an answer for all of them. No transaction is open while others are asked."""
    findings = await rt.part(Safety).recheck(list(hrefs.values()))
    found = {entry_id: findings[href] for entry_id, href in hrefs.items() if href in findings}
    safe = [entry_id for entry_id, finding in found.items() if finding.reason is None]
    async with rt.db.write() as session:
        await service.settle_checks(session, safe, [entry_id for entry_id in found if entry_id not in set(safe)], rt.clock.now())
    return len(found) == len(hrefs)
