"""URLs of a domain or a link to which visitors are sent when there is nothing to follow."""

from collections.abc import Collection
from typing import ClassVar

import structlog

from refract.core.errors import FieldError, RefractError
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.core.urls import parse_web_url
from refract.domains.errors import DomainNotFound
from refract.domains.hooks import DomainHooks
from refract.domains.queries import list_domains
from refract.domains.schemas import FALLBACKS
from refract.domains.service import clear_fallbacks
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.links.enums import FlagReason
from refract.links.feed import publish_domain_change
from refract.links.safety.blocked_domains import BlockedDomainCache
from refract.links.safety.errors import InvalidUrl
from refract.links.safety.service import DestinationChecker, check_destination

_log = structlog.get_logger("refract.domains")


class RecheckFallbacks(JobPayload):
    """Check the fallbacks of all domains again."""

    kind: ClassVar[str] = "links.recheck_fallbacks"


async def check_fallback(rt: Runtime, typed: str, *, field: str | None = None) -> str:
    """Return the URL to which a domain or a link may redirect instead, or raise why it may not.

    The error names the `field` of the request.

    It passes the checks of links. No preview can warn of it, so one that links are flagged for is
    refused; and no path fills placeholders.
    """
    try:
        checked = await check_destination(rt, typed)
        if checked.template is not None:
            raise InvalidUrl(reason=Phrase("Placeholders only work in links. Remove the braces."))
        if checked.flag_reason is FlagReason.LOOKALIKE:
            raise InvalidUrl(reason=Phrase("The host imitates another one. Choose another URL."))
    except RefractError as exc:
        exc.errors = [FieldError(field, exc.message)] if field else exc.errors
        raise
    return checked.href


@handles(RecheckFallbacks)
async def recheck_fallbacks(rt: Runtime, _job: RecheckFallbacks) -> None:
    """Clear fallbacks to which links may no longer lead. Visitors get the default answer then."""
    async with rt.db.read() as session:
        saved = {
            domain.host: {url for name in FALLBACKS if (url := getattr(domain, name))}
            for domain in await list_domains(session)
        }
    bad = await _find_bad_urls(rt, sorted(set().union(*saved.values())))
    hooks = DomainHooks(check_fallback, publish_domain_change)
    for host in sorted(host for host, urls in saved.items() if urls & bad):
        try:
            async with rt.db.write() as session:
                fields = await clear_fallbacks(session, hooks, host, bad, rt.clock.now())
        except DomainNotFound:
            continue  # deleted since
        _log.warning("fallbacks_cleared", domain=host, fields=fields)


async def _find_bad_urls(rt: Runtime, urls: Collection[str]) -> set[str]:
    """Return those that are blocked or dangerous now. No transaction is open during requests."""
    async with rt.db.read() as session:
        blocked = await rt.singleton(BlockedDomainCache).load_current(session)
    bad = {url for url in urls if blocked.match(parse_web_url(url, limit=len(url)).host)}
    checker = rt.singleton(DestinationChecker)
    if checker.has_checks:
        findings = await checker.recheck(sorted(set(urls) - bad))
        bad |= {url for url, found in findings.items() if found.reason is not None}
    return bad
