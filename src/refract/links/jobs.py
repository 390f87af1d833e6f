"""What happens to links by itself: expiry is noted, long-ended ones are purged, flagged ones get a second look."""

from datetime import time, timedelta
from typing import ClassVar

from refract.core.runtime import Runtime
from refract.jobs.payload import Payload
from refract.jobs.registry import handles
from refract.jobs.schedule import Every
from refract.links import safety_jobs, service

BREATH_SECONDS = 0.01


class MarkExpired(Payload):
    """Note in the rows of expired links that they are."""

    kind: ClassVar[str] = "links.mark_expired"


class PurgeLinks(Payload):
    """Remove links that ended long ago, if the operator wants that."""

    kind: ClassVar[str] = "links.purge"


class ForgetInvitations(Payload):
    """Remove invitations that nobody answered in time."""

    kind: ClassVar[str] = "links.forget_invitations"


@handles(ForgetInvitations)
async def forget_invitations(rt: Runtime, _job: ForgetInvitations) -> None:
    """In slices, so that nobody waits long for the lock."""
    while True:
        async with rt.db.write() as session:
            if not await service.forget_invitations(session, rt.clock.now()):
                return
        await rt.clock.sleep(BREATH_SECONDS)


@handles(MarkExpired)
async def mark_expired(rt: Runtime, _job: MarkExpired) -> None:
    """In slices, so that nobody waits long for the lock."""
    while True:
        async with rt.db.write() as session:
            if not await service.mark_expired(session, rt.clock.now()):
                return
        await rt.clock.sleep(BREATH_SECONDS)


@handles(PurgeLinks)
async def purge_links(rt: Runtime, _job: PurgeLinks) -> None:
    after = timedelta(days=rt.settings.purge_expired_after_days)
    while after:
        async with rt.db.write() as session:
            if not await service.purge_links(session, rt.clock.now(), after):
                return
        await rt.clock.sleep(BREATH_SECONDS)


HANDLERS = (
    mark_expired,
    purge_links,
    forget_invitations,
    safety_jobs.recheck_links,
    safety_jobs.recheck_due_links,
    safety_jobs.forget_checks,
)
PERIODIC = (
    Every(MarkExpired(), seconds=60),
    Every(PurgeLinks(), daily=time(2, 0)),
    Every(ForgetInvitations(), daily=time(2, 15)),
    Every(safety_jobs.RecheckDueLinks(), seconds=safety_jobs.RUN_INTERVAL_SECONDS),
    Every(safety_jobs.ForgetChecks(), daily=time(2, 30)),
)
