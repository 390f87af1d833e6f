"""What happens to lists by itself: pages are looked at, what nobody needs any more is erased."""

from datetime import time
from typing import ClassVar

from refract.core.runtime import Runtime
from refract.jobs.payload import Payload
from refract.jobs.registry import handles
from refract.jobs.schedule import Every
from refract.links.safety_jobs import RUN_INTERVAL_SECONDS
from refract.lists import fetching, service
from refract.names.service import release_held

BREATH_SECONDS = 0.01


class EraseLists(Payload):
    """Erase lists deleted long ago, drafts that nobody came back to, and old lines of the log."""

    kind: ClassVar[str] = "lists.erase"


class GiveUpWaiting(Payload):
    """End the waiting of entries whose job was lost."""

    kind: ClassVar[str] = "lists.give_up_waiting"


class ReleaseNames(Payload):
    """Free the names of lists deleted 24 hours ago."""

    kind: ClassVar[str] = "lists.release_names"


@handles(ReleaseNames)
async def release_names(rt: Runtime, _job: ReleaseNames) -> None:
    async with rt.db.write() as session:
        await release_held(session, rt.clock.now())


@handles(EraseLists)
async def erase_lists(rt: Runtime, _job: EraseLists) -> None:
    """In slices, so that nobody waits long for the lock."""
    while True:
        async with rt.db.write() as session:
            erased = await service.erase_old(session, rt.clock.now())
            forgotten = await service.forget_actions(session, rt.clock.now())
        if not erased and not forgotten:
            return
        await rt.clock.sleep(BREATH_SECONDS)


@handles(GiveUpWaiting)
async def give_up_waiting(rt: Runtime, _job: GiveUpWaiting) -> None:
    async with rt.db.write() as session:
        await service.give_up_waiting(session, rt.clock.now())


HANDLERS = (
    fetching.fetch_entry,
    fetching.recheck_entries,
    fetching.recheck_due_entries,
    erase_lists,
    give_up_waiting,
    release_names,
)
PERIODIC = (
    Every(EraseLists(), daily=time(3, 0)),
    Every(GiveUpWaiting(), seconds=300),
    Every(ReleaseNames(), seconds=300),
    Every(fetching.RecheckDueEntries(), seconds=RUN_INTERVAL_SECONDS),
)
