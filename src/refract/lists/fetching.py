"""Work for later on entries: what their pages say of themselves, and a second look at those nobody could be asked about."""

from collections.abc import Sequence
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
from refract.links.safety_models import Verdict
from refract.lists import queries, service
from refract.lists.models import ListEntry

BUDGET_SECONDS = 5.0
_PATIENT = (60.0, 60.0, 300.0, 900.0, 3600.0, 3600.0 * 6, 3600.0 * 24)


class FetchEntry(Payload):
    """An entry whose page is to be looked at."""

    kind: ClassVar[str] = "lists.fetch_entry"

    entry_id: int


class RecheckEntries(Payload):
    """Entries that are flagged because the checking service was away."""

    kind: ClassVar[str] = "lists.recheck"

    entry_ids: list[int]


def fetcher(rt: Runtime) -> Fetcher:
    return Fetcher.from_settings(rt.settings)


async def look_later(session: WriteSession, rt: Runtime, entries: Sequence[ListEntry], user_id: int | None) -> None:
    """Ask for everything that new entries still need, in the transaction that made them. Strangers share one turn."""
    pending = [FetchEntry(entry_id=entry.id) for entry in entries if entry.fetch_status == "pending"]
    await enqueue_all(session, rt, pending, share=user_id or NOBODY)
    flagged = [entry.id for entry in entries if entry.flagged]
    if flagged:
        await enqueue_all(session, rt, [RecheckEntries(entry_ids=flagged)])


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
    """Take the flag off what is safe, and stop what is dangerous; what still cannot be asked about is tried again."""
    safety = rt.part(Safety)
    if not safety.asks_a_service:
        return  # the operator no longer wants it
    async with rt.db.read() as session:
        flagged = select(ListEntry.id, ListEntry.href).where(ListEntry.id.in_(job.entry_ids), ListEntry.flagged)
        hrefs = dict((await session.execute(flagged)).all())

    findings = await safety.recheck(list(hrefs.values()))  # slow: no transaction is open here

    async with rt.db.write() as writing:
        for entry_id, href in hrefs.items():
            if found := findings.get(href):
                await service.settle_check(writing, entry_id, dangerous=found.verdict is not Verdict.SAFE)
    if any(href not in findings for href in hrefs.values()):
        code = "CHECK_UNAVAILABLE"
        raise TryAgain(code, "The checking service gave no answer.")
