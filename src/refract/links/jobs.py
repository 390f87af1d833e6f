"""Background jobs of links: expiry, purges and rechecks of destinations."""

from datetime import time, timedelta
from typing import ClassVar

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.schedule import PeriodicJob
from refract.jobs.slices import write_in_slices
from refract.links import service
from refract.links.safety import fallbacks
from refract.links.safety import jobs as safety_jobs


class MarkExpired(JobPayload):
    """Update the status of expired links."""

    kind: ClassVar[str] = "links.mark_expired"


class PurgeLinks(JobPayload):
    """Delete links that ended long ago, if the operator has enabled it."""

    kind: ClassVar[str] = "links.purge"


class PurgeInvitations(JobPayload):
    """Delete expired invitations."""

    kind: ClassVar[str] = "links.forget_invitations"


class AssignOwners(JobPayload):
    """Fill in the owners of links that were clicked for the first time."""

    kind: ClassVar[str] = "links.assign_owners"


class RepairCopies(JobPayload):
    """Correct what rows of owners, totals and tags repeat, after a rolling upgrade."""

    kind: ClassVar[str] = "links.repair_copies"


@handles(AssignOwners)
async def assign_owners(rt: Runtime, _job: AssignOwners) -> None:
    await write_in_slices(rt, service.assign_owners)


@handles(RepairCopies)
async def repair_copies(rt: Runtime, _job: RepairCopies) -> None:
    after = 0

    async def repair_slice(session: WriteSession) -> bool:
        nonlocal after
        last = await service.repair_copies(session, after)
        after = last or after
        return last is not None

    await write_in_slices(rt, repair_slice)


@handles(PurgeInvitations)
async def purge_invitations(rt: Runtime, _job: PurgeInvitations) -> None:
    await write_in_slices(rt, lambda session: service.purge_invitations(session, rt.clock.now()))


@handles(MarkExpired)
async def mark_expired(rt: Runtime, _job: MarkExpired) -> None:
    await write_in_slices(rt, lambda session: service.mark_expired(session, rt.clock.now()))


@handles(PurgeLinks)
async def purge_links(rt: Runtime, _job: PurgeLinks) -> None:
    after = timedelta(days=rt.settings.purge_expired_after_days)
    if after:
        await write_in_slices(
            rt, lambda session: service.purge_links(session, rt.clock.now(), after)
        )


HANDLERS = (
    assign_owners,
    repair_copies,
    mark_expired,
    purge_links,
    purge_invitations,
    safety_jobs.recheck_links,
    safety_jobs.recheck_due_links,
    safety_jobs.purge_url_checks,
    fallbacks.recheck_fallbacks,
)
PERIODIC = (
    PeriodicJob(MarkExpired(), seconds=60),
    PeriodicJob(AssignOwners(), seconds=60),
    PeriodicJob(PurgeLinks(), daily=time(2, 0)),
    PeriodicJob(PurgeInvitations(), daily=time(2, 15)),
    PeriodicJob(RepairCopies(), daily=time(2, 45)),
    PeriodicJob(safety_jobs.RecheckDueLinks(), seconds=safety_jobs.RUN_INTERVAL_SECONDS),
    PeriodicJob(safety_jobs.PurgeUrlChecks(), daily=time(2, 30)),
    PeriodicJob(fallbacks.RecheckFallbacks(), daily=time(3, 15)),
)
