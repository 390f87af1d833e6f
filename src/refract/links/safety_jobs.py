"""Work for later: destinations that nobody could be asked about when their links were made."""

from collections.abc import Sequence
from typing import ClassVar

from sqlalchemy import select, update

from refract.core.db import WriteSession
from refract.core.errors import InvalidStateTransition
from refract.core.runtime import Runtime
from refract.jobs.errors import TryAgain
from refract.jobs.payload import Payload
from refract.jobs.queue import enqueue_all
from refract.jobs.registry import handles
from refract.links.access import Who
from refract.links.errors import LinkNotFound
from refract.links.models import Link, LinkState
from refract.links.safety import Safety
from refract.links.safety_models import Verdict
from refract.links.safety_queries import Finding, forget_old_checks
from refract.links.service.lifecycle import disable_link
from refract.links.templates import read_template

OURSELVES = Who(0, is_admin=True)
"""Nobody in particular: what the service finds out is done with an administrator's rights, so only one can take it back."""

_AT_ONCE = 500
_PATIENT = (60.0, 60.0, 300.0, 900.0, 3600.0, 3600.0 * 6, 3600.0 * 24)


class RecheckLinks(Payload):
    """Links that are flagged because the checking service was away."""

    kind: ClassVar[str] = "links.recheck"

    link_ids: list[int]


class ForgetChecks(Payload):
    """What checks said is no longer worth keeping."""

    kind: ClassVar[str] = "links.forget_checks"


async def check_later(session: WriteSession, rt: Runtime, link_ids: Sequence[int]) -> None:
    """Ask for a second look at flagged links, in the transaction that made them."""
    slices = [list(link_ids[start : start + _AT_ONCE]) for start in range(0, len(link_ids), _AT_ONCE)]
    await enqueue_all(session, rt, [RecheckLinks(link_ids=some) for some in slices])


@handles(RecheckLinks, tries=len(_PATIENT), backoff=_PATIENT)
async def recheck_links(rt: Runtime, job: RecheckLinks) -> None:
    """Take the flag off what is safe, and stop what is dangerous; what still cannot be asked about is tried again."""
    safety = rt.part(Safety)
    if not safety.asks_a_service:
        return  # the operator no longer wants it
    async with rt.db.read() as session:
        flagged = select(Link.id, Link.href_digest, Link.destination).where(
            Link.id.in_(job.link_ids), Link.flagged, Link.status != LinkState.DELETED
        )
        links = {link_id: (digest, destination) for link_id, digest, destination in await session.execute(flagged)}
    hrefs = {link_id: read_template(destination).fixed_href for link_id, (_, destination) in links.items()}

    findings = await safety.recheck(list(hrefs.values()))  # slow: no transaction is open here

    for link_id, (digest, _) in links.items():
        if found := findings.get(hrefs[link_id]):
            await _settle(rt, link_id, digest, found)
    if any(href not in findings for href in hrefs.values()):
        code = "CHECK_UNAVAILABLE"
        raise TryAgain(code, "The checking service gave no answer.")


async def _settle(rt: Runtime, link_id: int, digest: str, found: Finding) -> None:
    """One link, one transaction. A destination that was changed meanwhile has been checked for itself."""
    async with rt.db.write() as session:
        same = (Link.id == link_id, Link.href_digest == digest, Link.flagged)
        if found.verdict is Verdict.SAFE:
            await session.execute(update(Link).where(*same).values(flagged=False).execution_options(synchronize_session=False))
        elif await session.scalar(select(Link.id).where(*same).with_for_update()) is not None:
            try:
                await disable_link(session, OURSELVES, link_id, rt.clock.now())
            except (InvalidStateTransition, LinkNotFound):
                return  # expired, deleted or closed already: it leads nowhere


@handles(ForgetChecks)
async def forget_checks(rt: Runtime, _job: ForgetChecks) -> None:
    """In slices, so that nobody waits long."""
    while True:
        async with rt.db.write() as session:
            if not await forget_old_checks(session, rt.clock.now()):
                return
