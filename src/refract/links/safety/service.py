"""Checks of destinations: valid, no loop, not blocked, not known as dangerous.

No transaction is open while another service is called.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import ClassVar, Self

from refract.core.db.bulk import iter_batches
from refract.core.db.session import WriteSession
from refract.core.errors import RefractError
from refract.core.ip_addresses import is_loopback
from refract.core.lookalikes import is_lookalike
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.core.urls import BadUrl, complete_url, normalize_host, parse_web_url
from refract.jobs.payload import JobPayload
from refract.jobs.queue import JobSource, enqueue_all
from refract.links.enums import FlagReason
from refract.links.golinks.template import DestinationTemplate, parse_template
from refract.links.safety.blocked_domains import find_refused_hosts
from refract.links.safety.blocklist import BlocklistFile
from refract.links.safety.errors import BlockedDestination, InvalidUrl, LinkLoop, MaliciousUrl
from refract.links.safety.models import UrlVerdict
from refract.links.safety.queries import UrlFinding, find_checks, store_checks
from refract.links.safety.safe_browsing import SafeBrowsingClient

_ALL_INTERFACES = ("0.0.0.0", "::", "")  # noqa: S104 - compared, never bound
_UNSPECIFIED_HOSTS = ("0.0.0.0", "[::]")  # noqa: S104 - compared, never bound


@dataclass(frozen=True, slots=True)
class CheckedDestination:
    """A destination that links may lead to."""

    as_typed: str
    href: str
    """Serialised, with placeholders in braces. Sent as `Location`, compared by `find_if_exists`."""
    host: str
    flag_reason: FlagReason | None = None
    """Why visitors see a preview first."""
    unchecked: bool = False
    """Whether the safety check failed and must be repeated."""
    template: DestinationTemplate | None = None
    """The parsed destination, if it has placeholders."""

    @property
    def flagged(self) -> bool:
        return self.flag_reason is not None

    @property
    def checked_href(self) -> str:
        """Return the URL to check: the part that all expansions share."""
        return _without_fragment(self.template.fixed_href if self.template else self.href)


@dataclass(frozen=True, slots=True)
class RecheckResult:
    """The result of a later check: safe, or why the link must stop. `threat` names the danger."""

    reason: FlagReason | None = None
    threat: str | None = None


async def check_destination(rt: Runtime, destination: str) -> CheckedDestination:
    """Return a checked destination, or raise why it is not allowed.

    This may call other services, so no transaction may be open.
    """
    return await rt.singleton(DestinationChecker).check_one(destination)


async def check_destinations(
    rt: Runtime, destinations: Sequence[str]
) -> list[CheckedDestination | RefractError]:
    """Return a checked destination or an error for each, in order.

    This may call other services, so no transaction may be open.
    """
    return await rt.singleton(DestinationChecker).check(destinations)


class DestinationChecker:
    """All checks of destinations with their caches. One per process."""

    def __init__(self, rt: Runtime, checker: SafeBrowsingClient | None = None) -> None:
        self._rt = rt
        self._own_addresses = OwnAddresses(rt.settings)
        self._blocklist = BlocklistFile(rt.settings.blocklist_path)
        self._checker = checker or SafeBrowsingClient(rt.settings, rt.clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._checker.close()

    @property
    def has_checks(self) -> bool:
        """Return whether there is anything to check beside blocked domains, which stop at once."""
        return self._checker.is_configured or self._rt.settings.blocklist_path is not None

    async def check(self, destinations: Sequence[str]) -> list[CheckedDestination | RefractError]:
        results = [self._parse_destination(typed) for typed in destinations]
        results = await self._reject_hosts(results)
        return await self._reject_dangerous(results)

    async def check_one(self, destination: str) -> CheckedDestination:
        """Check one destination. Raises the error."""
        result = (await self.check([destination]))[0]
        if isinstance(result, RefractError):
            raise result
        return result

    async def recheck(self, hrefs: Sequence[str]) -> dict[str, RecheckResult]:
        """Check URLs with the blocklist and the service, ignoring stored results.

        URLs that the service could not check are missing.
        """
        listed = await self._blocklist.load_domains()
        blocked = {
            href: RecheckResult(FlagReason.BLOCKED)
            for href in hrefs
            if listed.match(parse_web_url(href, limit=len(href)).host)
        }
        hrefs_to_check = [href for href in hrefs if href not in blocked]
        if not self._checker.is_configured:
            return blocked | dict.fromkeys(hrefs_to_check, RecheckResult())
        findings = await self._checker.check_urls(
            list(dict.fromkeys(_without_fragment(href) for href in hrefs_to_check))
        )
        async with self._rt.db.write() as session:
            await store_checks(session, findings, self._rt.clock.now())
        return blocked | {
            href: _build_recheck_result(findings[bare])
            for href in hrefs_to_check
            if (bare := _without_fragment(href)) in findings
        }

    def _parse_destination(self, text: str) -> CheckedDestination | RefractError:
        typed = complete_url(text)
        try:
            template = parse_template(typed)
        except BadUrl as exc:
            return InvalidUrl(reason=str(exc))
        if self._own_addresses.matches(template):
            return LinkLoop(host=template.host)
        reason = FlagReason.LOOKALIKE if is_lookalike(template.host) else None
        return CheckedDestination(
            typed,
            template.href,
            template.host,
            reason,
            template=template if template.placeholders else None,
        )

    async def _reject_hosts(
        self, results: list[CheckedDestination | RefractError]
    ) -> list[CheckedDestination | RefractError]:
        hosts = {result.host for result in results if isinstance(result, CheckedDestination)}
        if not hosts:
            return results
        listed = await self._blocklist.load_domains()
        async with self._rt.db.read() as session:
            blocked, own = await find_refused_hosts(session, hosts)
        refused: dict[str, RefractError] = {
            host: BlockedDestination(host=host)
            for host in hosts
            if listed.match(host) or blocked.match(host)
        }
        refused |= {host: LinkLoop(host=host) for host in hosts if normalize_host(host) in own}
        return [
            refused.get(result.host, result) if isinstance(result, CheckedDestination) else result
            for result in results
        ]

    async def _reject_dangerous(
        self, results: list[CheckedDestination | RefractError]
    ) -> list[CheckedDestination | RefractError]:
        hrefs_to_check = list(
            dict.fromkeys(
                result.checked_href for result in results if isinstance(result, CheckedDestination)
            )
        )
        if not self._checker.is_configured or not hrefs_to_check:
            return results
        now = self._rt.clock.now()
        async with self._rt.db.read() as session:
            known = await find_checks(session, hrefs_to_check, now)
        new = await self._checker.check_urls(
            [href for href in hrefs_to_check if href not in known]
        )  # slow, so no transaction is open
        if new:
            async with self._rt.db.write() as writing:
                await store_checks(writing, new, now)
        known |= new
        return [
            (
                _apply_finding(result, known.get(result.checked_href))
                if isinstance(result, CheckedDestination)
                else result
            )
            for result in results
        ]


def _build_recheck_result(found: UrlFinding) -> RecheckResult:
    return (
        RecheckResult()
        if found.verdict is UrlVerdict.SAFE
        else RecheckResult(FlagReason.DANGEROUS, _describe_threat(found))
    )


def _describe_threat(found: UrlFinding) -> str:
    return (found.threat or "unknown").replace("_", " ").lower()


def _apply_finding(
    result: CheckedDestination, found: UrlFinding | None
) -> CheckedDestination | RefractError:
    if found is None:
        return replace(
            result, flag_reason=result.flag_reason or FlagReason.UNCHECKED, unchecked=True
        )
    return (
        result if found.verdict is UrlVerdict.SAFE else MaliciousUrl(threat=_describe_threat(found))
    )


def _without_fragment(href: str) -> str:
    return href.partition("#")[0]


class OwnAddresses:
    """The hosts and ports of this server: its public URL and its listening address."""

    def __init__(self, settings: Settings) -> None:
        public = parse_web_url(f"{settings.public_url}/")
        self._host = _normalise_host(public.host)
        self._port = settings.port
        # A server on one of the two default ports usually redirects from the other.
        self._public_ports = {settings.port, *([int(public.port)] if public.port else (80, 443))}
        self._on_all_interfaces = settings.host in _ALL_INTERFACES
        self._listen_host = (
            None if self._on_all_interfaces else _normalise_host(_parse_listen_host(settings.host))
        )

    def matches(self, template: DestinationTemplate) -> bool:
        host = _normalise_host(template.host)
        port = int(template.port or (443 if template.scheme == "https" else 80))
        if host == self._host and port in self._public_ports:
            return True
        if port != self._port:
            return False
        here = is_loopback(host) or host in _UNSPECIFIED_HOSTS
        return host == self._listen_host or (
            here and (self._on_all_interfaces or is_loopback(self._listen_host or ""))
        )


def _parse_listen_host(listening: str) -> str:
    try:
        return parse_web_url(
            f"http://[{listening}]/" if ":" in listening else f"http://{listening}/"
        ).host
    except BadUrl:
        return listening.lower()


def _normalise_host(host: str) -> str:
    """Return a host in one spelling: no trailing dot, and IPv4 for IPv4-mapped IPv6."""
    bare = normalize_host(host)
    if not bare.startswith("["):
        return bare
    mapped = ipaddress.IPv6Address(bare.strip("[]")).ipv4_mapped
    return str(mapped) if mapped else bare


# Jobs that are queued in the transaction of a change.


class RecheckLinks(JobPayload):
    """Links to check now, for instance because the service failed when they were created."""

    kind: ClassVar[str] = "links.recheck"

    link_ids: list[int]


async def enqueue_recheck(
    session: WriteSession, source: JobSource, link_ids: Sequence[int]
) -> None:
    """Queue a check of the destinations of these links."""
    await enqueue_all(
        session,
        source,
        [RecheckLinks(link_ids=list(batch)) for batch in iter_batches(list(link_ids))],
    )
