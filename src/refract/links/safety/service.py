"""Whether a destination may be led to: parsed, no loop, not blocked, not known as dangerous.

Nothing here holds a transaction while it waits for another service.
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
from refract.core.urls import BadUrl, normalize_host, parse_web_url
from refract.jobs.payload import JobPayload
from refract.jobs.queue import JobSource, enqueue_all
from refract.links.golinks.template import DestinationTemplate, parse_template
from refract.links.models import FlagReason
from refract.links.safety.blocked_domains import find_blocked_domains
from refract.links.safety.blocklist import BlocklistFile
from refract.links.safety.errors import BlockedDestination, InvalidUrl, LinkLoop, MaliciousUrl
from refract.links.safety.models import UrlVerdict
from refract.links.safety.queries import UrlFinding, find_checks, store_checks
from refract.links.safety.safe_browsing import SafeBrowsingClient

_ALL_INTERFACES = ("0.0.0.0", "::", "")  # noqa: S104 - compared, never bound
_UNSPECIFIED_HOSTS = ("0.0.0.0", "[::]")  # noqa: S104 - a connection to them reaches this machine


@dataclass(frozen=True, slots=True)
class CheckedDestination:
    """A destination that may be led to."""

    as_typed: str
    href: str
    """The serialised form: what goes into `Location` (placeholders still in braces), and what find-if-exists compares."""
    host: str
    flag_reason: FlagReason | None = None
    """Why visitors see a preview before they are led there."""
    unchecked: bool = False
    """The checking service could not be asked: ask it again later."""
    template: DestinationTemplate | None = None
    """The destination taken apart, when it has placeholders."""

    @property
    def flagged(self) -> bool:
        return self.flag_reason is not None

    @property
    def checked_href(self) -> str:
        """What a checking service is asked about: the part that every visitor is led to."""
        return _without_fragment(self.template.fixed_href if self.template else self.href)


@dataclass(frozen=True, slots=True)
class RecheckResult:
    """What a later check says of an address: nothing against it, or why it must stop, with the service's word for the danger."""

    reason: FlagReason | None = None
    threat: str | None = None


async def check_destination(rt: Runtime, destination: str) -> CheckedDestination:
    """Return a destination that may be led to. Raises why not. Other services may be asked: no transaction may be open."""
    return await rt.singleton(DestinationChecker).check_one(destination)


async def check_destinations(
    rt: Runtime, destinations: Sequence[str]
) -> list[CheckedDestination | RefractError]:
    """For each destination, in order: what may be led to, or why not. Call it outside any transaction."""
    return await rt.singleton(DestinationChecker).check(destinations)


class DestinationChecker:
    """Every check that a destination passes, with what they keep between calls. One per process."""

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
        """Whether a destination can be compared with anything beside the domains that administrators block, which stop at once."""
        return self._checker.is_configured or self._rt.settings.blocklist_path is not None

    async def check(self, destinations: Sequence[str]) -> list[CheckedDestination | RefractError]:
        answers = [self._parse_destination(typed) for typed in destinations]
        answers = await self._reject_blocked(answers)
        return await self._reject_dangerous(answers)

    async def check_one(self, destination: str) -> CheckedDestination:
        """The same for one, raising why not."""
        answer = (await self.check([destination]))[0]
        if isinstance(answer, RefractError):
            raise answer
        return answer

    async def recheck(self, hrefs: Sequence[str]) -> dict[str, RecheckResult]:
        """Compare addresses with the block list and ask the service again, whatever is remembered.

        Addresses that the service could not be asked about are missing from what is returned.
        """
        listed = await self._blocklist.load_domains()
        blocked = {
            href: RecheckResult(FlagReason.BLOCKED)
            for href in hrefs
            if listed.match(parse_web_url(href, limit=len(href)).host)
        }
        asked = [href for href in hrefs if href not in blocked]
        if not self._checker.is_configured:
            return blocked | dict.fromkeys(asked, RecheckResult())
        findings = await self._checker.check_urls(
            list(dict.fromkeys(_without_fragment(href) for href in asked))
        )
        async with self._rt.db.write() as session:
            await store_checks(session, findings, self._rt.clock.now())
        return blocked | {
            href: _build_recheck_result(findings[bare])
            for href in asked
            if (bare := _without_fragment(href)) in findings
        }

    def _parse_destination(self, typed: str) -> CheckedDestination | RefractError:
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

    async def _reject_blocked(
        self, answers: list[CheckedDestination | RefractError]
    ) -> list[CheckedDestination | RefractError]:
        hosts = {answer.host for answer in answers if isinstance(answer, CheckedDestination)}
        if not hosts:
            return answers
        listed = await self._blocklist.load_domains()
        async with self._rt.db.read() as session:
            blocked = await find_blocked_domains(session, hosts)
        refused = {host for host in hosts if listed.match(host) or blocked.match(host)}
        return [
            (
                BlockedDestination(host=answer.host)
                if isinstance(answer, CheckedDestination) and answer.host in refused
                else answer
            )
            for answer in answers
        ]

    async def _reject_dangerous(
        self, answers: list[CheckedDestination | RefractError]
    ) -> list[CheckedDestination | RefractError]:
        asked = list(
            dict.fromkeys(
                answer.checked_href for answer in answers if isinstance(answer, CheckedDestination)
            )
        )
        if not self._checker.is_configured or not asked:
            return answers
        now = self._rt.clock.now()
        async with self._rt.db.read() as session:
            known = await find_checks(session, asked, now)
        new = await self._checker.check_urls(
            [href for href in asked if href not in known]
        )  # slow: no transaction is open here
        if new:
            async with self._rt.db.write() as writing:
                await store_checks(writing, new, now)
        known |= new
        return [
            (
                _apply_finding(answer, known.get(answer.checked_href))
                if isinstance(answer, CheckedDestination)
                else answer
            )
            for answer in answers
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
    answer: CheckedDestination, found: UrlFinding | None
) -> CheckedDestination | RefractError:
    if found is None:
        return replace(
            answer, flag_reason=answer.flag_reason or FlagReason.UNCHECKED, unchecked=True
        )
    return (
        answer if found.verdict is UrlVerdict.SAFE else MaliciousUrl(threat=_describe_threat(found))
    )


def _without_fragment(href: str) -> str:
    return href.partition("#")[0]


class OwnAddresses:
    """Where we answer ourselves: the public address, and the one we listen on. Another port is another server's."""

    def __init__(self, settings: Settings) -> None:
        public = parse_web_url(f"{settings.public_url}/")
        self._host = _normalise_host(public.host)
        self._port = settings.port
        # Whoever answers on one of the two usual ports sends visitors of the other there.
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
    """One spelling per host: no trailing dot, and an IPv4 address inside IPv6 is that IPv4 address."""
    bare = normalize_host(host)
    if not bare.startswith("["):
        return bare
    mapped = ipaddress.IPv6Address(bare.strip("[]")).ipv4_mapped
    return str(mapped) if mapped else bare


# Jobs that a change of a link asks for, in its own transaction.


class RecheckLinks(JobPayload):
    """Links whose destination is to be checked now, for instance because the checking service was away when they were made."""

    kind: ClassVar[str] = "links.recheck"

    link_ids: list[int]


async def enqueue_recheck(
    session: WriteSession, source: JobSource, link_ids: Sequence[int]
) -> None:
    """Have the destinations of these links checked, as soon as the service can be asked."""
    await enqueue_all(
        session,
        source,
        [RecheckLinks(link_ids=list(some)) for some in iter_batches(list(link_ids))],
    )
