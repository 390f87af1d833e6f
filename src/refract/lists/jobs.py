"""Periodic jobs of lists: purging, releasing names, failing stale entries, rechecking URLs."""

from datetime import time
from typing import ClassVar

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.schedule import PeriodicJob
from refract.jobs.slices import write_in_slices
from refract.links.safety.jobs import RUN_INTERVAL_SECONDS
from refract.lists import entry_jobs, service
from refract.names.service import release_expired_names


class PurgeLists(JobPayload):
    """Erase lists deleted long ago, abandoned drafts without an owner, and old log entries."""

    kind: ClassVar[str] = "lists.erase"


class FailStaleEntries(JobPayload):
    """Mark entries as failed whose fetch job was lost."""

    kind: ClassVar[str] = "lists.give_up_waiting"


class ReleaseNames(JobPayload):
    """Free the names of lists deleted 24 hours ago; erase entries removed then."""

    kind: ClassVar[str] = "lists.release_names"


@handles(ReleaseNames)
async def release_names(rt: Runtime, _job: ReleaseNames) -> None:
    async with rt.db.write() as session:
        await release_expired_names(session, rt.clock.now())
        await service.purge_removed_entries(session, rt.clock.now())


@handles(PurgeLists)
async def purge_lists(rt: Runtime, _job: PurgeLists) -> None:
    async def purge(session: WriteSession) -> int:
        now = rt.clock.now()
        return await service.purge_old_lists(session, now) + await service.purge_actions(
            session, now
        )

    await write_in_slices(rt, purge)


@handles(FailStaleEntries)
async def fail_stale_entries(rt: Runtime, _job: FailStaleEntries) -> None:
    async with rt.db.write() as session:
        await service.fail_stale_entries(session, rt.clock.now())


HANDLERS = (
    entry_jobs.fetch_entry,
    entry_jobs.recheck_entries,
    entry_jobs.recheck_due_entries,
    purge_lists,
    fail_stale_entries,
    release_names,
)
PERIODIC = (
    PeriodicJob(PurgeLists(), daily=time(3, 0)),
    PeriodicJob(FailStaleEntries(), seconds=300),
    PeriodicJob(ReleaseNames(), seconds=300),
    PeriodicJob(entry_jobs.RecheckDueEntries(), seconds=RUN_INTERVAL_SECONDS),
)
