"""Rechecks of destinations: soon where a check failed before, and of all links periodically."""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import ClassVar

from sqlalchemy import or_, select, update

from refract.core.db.bulk import iter_batches
from refract.core.db.session import ReadSession
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl
from refract.jobs.errors import TryAgain
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.slices import run_in_slices, write_in_slices
from refract.links.enums import FlagReason, LinkState
from refract.links.golinks.template import parse_template
from refract.links.models import Link, LinkTotals
from refract.links.rules.document import parse_rules
from refract.links.safety.queries import purge_expired_checks
from refract.links.safety.service import DestinationChecker, RecheckLinks
from refract.links.service.lifecycle import disable_dangerous_link

CLICKED_RECHECK_INTERVAL = timedelta(days=1)
"""How often a link is checked that had clicks since its last check."""
RECHECK_INTERVAL = timedelta(days=7)
"""How often every other link is checked."""
BATCH_SIZE = 500
"""Links per request to the service."""
MAX_BATCHES = 20
"""Batches per run. The rest is due in the next run, which spreads the load."""
RUN_INTERVAL_SECONDS = 900

_RETRY_BACKOFF = (60.0, 60.0, 300.0, 900.0, 3600.0, 3600.0 * 6, 3600.0 * 24)


class RecheckDueLinks(JobPayload):
    """Check the links whose last check is longest ago."""

    kind: ClassVar[str] = "links.recheck_due"


class PurgeUrlChecks(JobPayload):
    """Delete expired results of checks."""

    kind: ClassVar[str] = "links.forget_checks"


@handles(RecheckLinks, tries=len(_RETRY_BACKOFF), backoff=_RETRY_BACKOFF)
async def recheck_links(rt: Runtime, job: RecheckLinks) -> None:
    """Clear the flag of safe links and stop bad ones. Retry those without a result."""
    if not rt.singleton(DestinationChecker).has_checks:
        return  # the operator has disabled checks
    async with rt.db.read() as session:
        links = await _load_destinations(session, job.link_ids)
    if not await _check_links(rt, links):
        code = "CHECK_UNAVAILABLE"
        raise TryAgain(code, Phrase("The safety check service isn't responding."))


@handles(RecheckDueLinks)
async def recheck_due_links(rt: Runtime, _job: RecheckDueLinks) -> None:
    """Check the due links, least recently checked first. Stop if the service fails."""
    if rt.singleton(DestinationChecker).has_checks:
        await run_in_slices(rt, partial(_check_due_links, rt), max_steps=MAX_BATCHES)


async def _check_due_links(rt: Runtime) -> bool:
    async with rt.db.read() as session:
        links = await _load_destinations(session, await find_due_links(session, rt))
    return bool(links) and await _check_links(rt, links)


async def find_due_links(session: ReadSession, rt: Runtime, limit: int = BATCH_SIZE) -> list[int]:
    """Return links whose check is due.

    Those are links never checked, clicked since a check of yesterday, or last checked a week
    ago.
    """
    now = rt.clock.now()
    accepted = Link.flag_reason.in_(
        (FlagReason.DANGEROUS, FlagReason.BLOCKED)
    )  # active because an administrator enabled them
    open_links = select(Link.id).where(
        Link.status == LinkState.ACTIVE, or_(Link.flag_reason.is_(None), ~accepted)
    )
    clicked = open_links.join(LinkTotals, LinkTotals.link_id == Link.id).where(
        LinkTotals.last_clicked_at
        > now
        - RECHECK_INTERVAL
        - CLICKED_RECHECK_INTERVAL,  # along its index; older clicks are covered by the weekly check
        LinkTotals.last_clicked_at > Link.checked_at,
        Link.checked_at <= now - CLICKED_RECHECK_INTERVAL,
    )
    queries = (
        open_links.where(Link.checked_at.is_(None)).order_by(Link.id),
        clicked.order_by(Link.checked_at),
        open_links.where(Link.checked_at <= now - RECHECK_INTERVAL).order_by(Link.checked_at),
    )
    found: dict[int, None] = {}
    for query in queries:
        if len(found) < limit:
            found |= dict.fromkeys(await session.scalars(query.limit(limit - len(found))))
    return list(found)


_CheckedLinks = Mapping[int, tuple[str, tuple[str, ...]]]


async def _load_destinations(
    session: ReadSession, link_ids: list[int]
) -> dict[int, tuple[str, tuple[str, ...]]]:
    """Return the digest and the URLs to check of each link that is not deleted.

    The first is that of its destination, the others are those of its rules.
    """
    found: dict[int, tuple[str, tuple[str, ...]]] = {}
    for batch in iter_batches(sorted(link_ids)):
        query = select(Link.id, Link.href_digest, Link.destination, Link.rules).where(
            Link.id.in_(batch), Link.status != LinkState.DELETED
        )
        found |= {
            link_id: (
                digest,
                tuple(
                    map(
                        _href_to_check,
                        (destination, *(rule.destination for rule in parse_rules(rules))),
                    )
                ),
            )
            for link_id, digest, destination, rules in await session.execute(query)
        }
    return found


def _href_to_check(destination: str) -> str:
    try:
        return parse_template(destination).fixed_href
    except BadUrl:
        return (  # invalid by current rules, so it never redirects there
            "https://invalid.invalid/"
        )


async def _check_links(rt: Runtime, links: _CheckedLinks) -> bool:
    """Check links and apply the results; return whether all of them had one.

    No transaction is open during the requests.
    """
    findings = await rt.singleton(DestinationChecker).recheck(
        list(dict.fromkeys(href for _, hrefs in links.values() for href in hrefs))
    )
    found = {
        link_id: next((finding for finding in results if finding.reason is not None), results[0])
        for link_id, (_, hrefs) in links.items()
        if len(results := [findings[href] for href in hrefs if href in findings]) == len(hrefs)
    }
    now = rt.clock.now()
    safe = sorted(link_id for link_id, finding in found.items() if finding.reason is None)
    unchecked = or_(Link.flag_reason.is_(None), Link.flag_reason == FlagReason.UNCHECKED)
    async with rt.db.write() as session:
        for batch in iter_batches(safe):
            changed = (
                update(Link).where(Link.id.in_(batch)).execution_options(synchronize_session=False)
            )
            await session.execute(changed.values(checked_at=now))
            by_digest = Link.href_digest.in_(
                {links[link_id][0] for link_id in batch}
            )  # a changed destination has its own check
            await session.execute(
                changed.where(Link.flagged, unchecked, by_digest).values(
                    flagged=False, flag_reason=None
                )
            )
    for link_id, finding in found.items():
        if finding.reason is not None:  # one transaction per link
            async with rt.db.write() as session:
                await disable_dangerous_link(
                    session, link_id, links[link_id][0], finding.reason, finding.threat, now
                )
    return len(found) == len(links)


@handles(PurgeUrlChecks)
async def purge_url_checks(rt: Runtime, _job: PurgeUrlChecks) -> None:
    await write_in_slices(rt, lambda session: purge_expired_checks(session, rt.clock.now()))
