"""Destinations that are checked after the fact: at once where nobody could be asked before, and all of them again and again."""

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from sqlalchemy import or_, select, update

from refract.core.db.bulk import iter_batches
from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl
from refract.jobs.errors import TryAgain
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.links.golinks.template import parse_template
from refract.links.models import FlagReason, Link, LinkState, LinkTotals
from refract.links.safety.queries import purge_expired_checks
from refract.links.safety.service import DestinationChecker, RecheckLinks
from refract.links.service.lifecycle import disable_dangerous_link

CLICKED_RECHECK_INTERVAL = timedelta(days=1)
"""How often a link is checked that somebody followed since the last time."""
RECHECK_INTERVAL = timedelta(days=7)
"""How often every other link is."""
BATCH_SIZE = 500
"""Links of one question to the service."""
MAX_BATCHES = 20
"""Batches of one run: what is left is due in the next, so the work is spread out."""
RUN_INTERVAL_SECONDS = 900
YIELD_SECONDS = 0.01

_RETRY_BACKOFF = (60.0, 60.0, 300.0, 900.0, 3600.0, 3600.0 * 6, 3600.0 * 24)


class RecheckDueLinks(JobPayload):
    """Check the links again that were checked longest ago."""

    kind: ClassVar[str] = "links.recheck_due"


class PurgeUrlChecks(JobPayload):
    """What checks said is no longer worth keeping."""

    kind: ClassVar[str] = "links.forget_checks"


@handles(RecheckLinks, tries=len(_RETRY_BACKOFF), backoff=_RETRY_BACKOFF)
async def recheck_links(rt: Runtime, job: RecheckLinks) -> None:
    """Take the flag off what is safe, and stop what is bad; what cannot be asked about is tried again."""
    if not rt.singleton(DestinationChecker).has_checks:
        return  # the operator no longer wants it
    async with rt.db.read() as session:
        links = await _load_destinations(session, job.link_ids)
    if not await _check_links(rt, links):
        code = "CHECK_UNAVAILABLE"
        raise TryAgain(code, "The checking service gave no answer.")


@handles(RecheckDueLinks)
async def recheck_due_links(rt: Runtime, _job: RecheckDueLinks) -> None:
    """Check what is due, the longest unchecked first. A service that does not answer ends the run."""
    for _ in range(MAX_BATCHES if rt.singleton(DestinationChecker).has_checks else 0):
        async with rt.db.read() as session:
            links = await _load_destinations(session, await find_due_links(session, rt))
        if not links or not await _check_links(rt, links):
            return
        await rt.clock.sleep(YIELD_SECONDS)


async def find_due_links(session: ReadSession, rt: Runtime, limit: int = BATCH_SIZE) -> list[int]:
    """Return links whose check is due: never checked, clicked since a check of yesterday, or last checked a week ago."""
    now = rt.clock.now()
    accepted = Link.flag_reason.in_(
        (FlagReason.DANGEROUS, FlagReason.BLOCKED)
    )  # active all the same: an administrator said so
    open_links = select(Link.id).where(
        Link.status == LinkState.ACTIVE, or_(Link.flag_reason.is_(None), ~accepted)
    )
    clicked = open_links.join(LinkTotals, LinkTotals.link_id == Link.id).where(
        LinkTotals.last_clicked_at
        > now
        - RECHECK_INTERVAL
        - CLICKED_RECHECK_INTERVAL,  # along its index; what was clicked before is due by the week
        LinkTotals.last_clicked_at > Link.checked_at,
        Link.checked_at <= now - CLICKED_RECHECK_INTERVAL,
    )
    questions = (
        open_links.where(Link.checked_at.is_(None)).order_by(Link.id),
        clicked.order_by(Link.checked_at),
        open_links.where(Link.checked_at <= now - RECHECK_INTERVAL).order_by(Link.checked_at),
    )
    found: dict[int, None] = {}
    for question in questions:
        if len(found) < limit:
            found |= dict.fromkeys(await session.scalars(question.limit(limit - len(found))))
    return list(found)


async def _load_destinations(
    session: ReadSession, link_ids: list[int]
) -> dict[int, tuple[str, str]]:
    """Return the digest and the address to check of each link that is not deleted."""
    found: dict[int, tuple[str, str]] = {}
    for some in iter_batches(sorted(link_ids)):
        question = select(Link.id, Link.href_digest, Link.destination).where(
            Link.id.in_(some), Link.status != LinkState.DELETED
        )
        found |= {
            link_id: (digest, _href_to_check(destination))
            for link_id, digest, destination in await session.execute(question)
        }
    return found


def _href_to_check(destination: str) -> str:
    try:
        return parse_template(destination).fixed_href
    except BadUrl:
        return (  # no URL by today's rules: it is not led to, so there is nothing to find out
            "https://invalid.invalid/"
        )


async def _check_links(rt: Runtime, links: Mapping[int, tuple[str, str]]) -> bool:
    """Check and settle. Return whether there was an answer for all of them. No transaction is open while others are asked."""
    findings = await rt.singleton(DestinationChecker).recheck([href for _, href in links.values()])
    found = {link_id: findings[href] for link_id, (_, href) in links.items() if href in findings}
    now = rt.clock.now()
    safe = sorted(link_id for link_id, finding in found.items() if finding.reason is None)
    unchecked = or_(Link.flag_reason.is_(None), Link.flag_reason == FlagReason.UNCHECKED)
    async with rt.db.write() as session:
        for some in iter_batches(safe):
            changed = (
                update(Link).where(Link.id.in_(some)).execution_options(synchronize_session=False)
            )
            await session.execute(changed.values(checked_at=now))
            by_digest = Link.href_digest.in_(
                {links[link_id][0] for link_id in some}
            )  # a destination changed since has its own check
            await session.execute(
                changed.where(Link.flagged, unchecked, by_digest).values(
                    flagged=False, flag_reason=None
                )
            )
    for link_id, finding in found.items():
        if finding.reason is not None:  # one link, one transaction
            async with rt.db.write() as session:
                await disable_dangerous_link(
                    session, link_id, links[link_id][0], finding.reason, finding.threat, now
                )
    return len(found) == len(links)


@handles(PurgeUrlChecks)
async def purge_url_checks(rt: Runtime, _job: PurgeUrlChecks) -> None:
    """In slices, so that nobody waits long."""
    while True:
        async with rt.db.write() as session:
            if not await purge_expired_checks(session, rt.clock.now()):
                return
