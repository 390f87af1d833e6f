"""Whether a destination may be led to: parsed, no loop, not blocked, not known as dangerous.

Nothing here holds a transaction while it waits for another service.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from refract.core.address import is_loopback
from refract.core.errors import RefractError
from refract.core.lookalikes import is_lookalike
from refract.core.runtime import Runtime
from refract.core.settings import Settings
from refract.core.urls import BadUrl, parse_web_url, same_site_host
from refract.links.blocking import blocked_among
from refract.links.blocklist import BlockList
from refract.links.models import FlagReason
from refract.links.safebrowsing import SafeBrowsing
from refract.links.safety_errors import BlockedDestination, InvalidUrl, LinkLoop, MaliciousUrl
from refract.links.safety_models import Verdict
from refract.links.safety_queries import Finding, remember, remembered
from refract.links.templates import Template, read_template

_ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - compared, never bound
_UNSPECIFIED = ("0.0.0.0", "[::]")  # noqa: S104 - a connection to them reaches this machine


@dataclass(frozen=True, slots=True)
class Vetted:
    """A destination that may be led to."""

    typed: str
    href: str
    """The serialised form: what goes into `Location` (placeholders still in braces), and what find-if-exists compares."""
    host: str
    flag_reason: FlagReason | None = None
    """Why visitors see a preview before they are led there."""
    unchecked: bool = False
    """The checking service could not be asked: ask it again later."""
    template: Template | None = None
    """The destination taken apart, when it has placeholders."""

    @property
    def flagged(self) -> bool:
        return self.flag_reason is not None

    @property
    def checked_href(self) -> str:
        """What a checking service is asked about: the part that every visitor is led to."""
        return _without_fragment(self.template.fixed_href if self.template else self.href)


@dataclass(frozen=True, slots=True)
class Recheck:
    """What a later check says of an address: nothing against it, or why it must stop, with the service's word for the danger."""

    reason: FlagReason | None = None
    threat: str | None = None


async def check_destination(rt: Runtime, destination: str) -> Vetted:
    """Return a destination that may be led to. Raises why not. Other services may be asked: no transaction may be open."""
    return await rt.part(Safety).vet_one(destination)


async def vet(rt: Runtime, destinations: Sequence[str]) -> list[Vetted | RefractError]:
    """For each destination, in order: what may be led to, or why not. Call it outside any transaction."""
    return await rt.part(Safety).vet(destinations)


class Safety:
    """Every check that a destination passes, with what they keep between calls. One per process."""

    def __init__(self, rt: Runtime, checker: SafeBrowsing | None = None) -> None:
        self._rt = rt
        self._own = OwnAddresses(rt.settings)
        self._blocklist = BlockList(rt.settings.blocklist_path)
        self._checker = checker or SafeBrowsing(rt.settings, rt.clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        await self._checker.close()

    @property
    def has_checks(self) -> bool:
        """Whether a destination can be compared with anything beside the domains that administrators block, which stop at once."""
        return self._checker.configured or self._rt.settings.blocklist_path is not None

    async def vet(self, destinations: Sequence[str]) -> list[Vetted | RefractError]:
        answers = [self._read(typed) for typed in destinations]
        answers = await self._not_blocked(answers)
        return await self._not_dangerous(answers)

    async def vet_one(self, destination: str) -> Vetted:
        """The same for one, raising why not."""
        answer = (await self.vet([destination]))[0]
        if isinstance(answer, RefractError):
            raise answer
        return answer

    async def recheck(self, hrefs: Sequence[str]) -> dict[str, Recheck]:
        """Compare addresses with the block list and ask the service again, whatever is remembered.

        Addresses that the service could not be asked about are missing from what is returned.
        """
        listed = await self._blocklist.current()
        blocked = {href: Recheck(FlagReason.BLOCKED) for href in hrefs if listed.match(parse_web_url(href, limit=len(href)).host)}
        asked = [href for href in hrefs if href not in blocked]
        if not self._checker.configured:
            return blocked | dict.fromkeys(asked, Recheck())
        findings = await self._checker.check(list(dict.fromkeys(_without_fragment(href) for href in asked)))
        async with self._rt.db.write() as session:
            await remember(session, findings, self._rt.clock.now())
        return blocked | {href: _rechecked(findings[bare]) for href in asked if (bare := _without_fragment(href)) in findings}

    def _read(self, typed: str) -> Vetted | RefractError:
        try:
            template = read_template(typed)
        except BadUrl as wrong:
            return InvalidUrl(reason=str(wrong))
        if self._own.include(template):
            return LinkLoop(host=template.host)
        reason = FlagReason.LOOKALIKE if is_lookalike(template.host) else None
        return Vetted(typed, template.href, template.host, reason, template=template if template.placeholders else None)

    async def _not_blocked(self, answers: list[Vetted | RefractError]) -> list[Vetted | RefractError]:
        hosts = {answer.host for answer in answers if isinstance(answer, Vetted)}
        if not hosts:
            return answers
        listed = await self._blocklist.current()
        async with self._rt.db.read() as session:
            blocked = await blocked_among(session, hosts)
        refused = {host for host in hosts if listed.match(host) or blocked.match(host)}
        return [
            BlockedDestination(host=answer.host) if isinstance(answer, Vetted) and answer.host in refused else answer for answer in answers
        ]

    async def _not_dangerous(self, answers: list[Vetted | RefractError]) -> list[Vetted | RefractError]:
        asked = list(dict.fromkeys(answer.checked_href for answer in answers if isinstance(answer, Vetted)))
        if not self._checker.configured or not asked:
            return answers
        now = self._rt.clock.now()
        async with self._rt.db.read() as session:
            known = await remembered(session, asked, now)
        new = await self._checker.check([href for href in asked if href not in known])  # slow: no transaction is open here
        if new:
            async with self._rt.db.write() as writing:
                await remember(writing, new, now)
        known |= new
        return [_judged(answer, known.get(answer.checked_href)) if isinstance(answer, Vetted) else answer for answer in answers]


def _rechecked(found: Finding) -> Recheck:
    return Recheck() if found.verdict is Verdict.SAFE else Recheck(FlagReason.DANGEROUS, _words(found))


def _words(found: Finding) -> str:
    return (found.threat or "unknown").replace("_", " ").lower()


def _judged(answer: Vetted, found: Finding | None) -> Vetted | RefractError:
    if found is None:
        return replace(answer, flag_reason=answer.flag_reason or FlagReason.UNCHECKED, unchecked=True)
    return answer if found.verdict is Verdict.SAFE else MaliciousUrl(threat=_words(found))


def _without_fragment(href: str) -> str:
    return href.partition("#")[0]


class OwnAddresses:
    """Where we answer ourselves: the public address, and the one we listen on. Another port is another server's."""

    def __init__(self, settings: Settings) -> None:
        public = parse_web_url(f"{settings.public_url}/")
        self._host = _compared(public.host)
        self._port = settings.port
        # Whoever answers on one of the two usual ports sends visitors of the other there.
        self._public_ports = {settings.port, *([int(public.port)] if public.port else (80, 443))}
        self._everywhere = settings.host in _ANYWHERE
        self._listening = None if self._everywhere else _compared(_host_of(settings.host))

    def include(self, template: Template) -> bool:
        host = _compared(template.host)
        port = int(template.port or (443 if template.scheme == "https" else 80))
        if host == self._host and port in self._public_ports:
            return True
        if port != self._port:
            return False
        here = is_loopback(host) or host in _UNSPECIFIED
        return host == self._listening or (here and (self._everywhere or is_loopback(self._listening or "")))


def _host_of(listening: str) -> str:
    try:
        return parse_web_url(f"http://[{listening}]/" if ":" in listening else f"http://{listening}/").host
    except BadUrl:
        return listening.lower()


def _compared(host: str) -> str:
    """One spelling per host: no trailing dot, and an IPv4 address inside IPv6 is that IPv4 address."""
    bare = same_site_host(host)
    if not bare.startswith("["):
        return bare
    mapped = ipaddress.IPv6Address(bare.strip("[]")).ipv4_mapped
    return str(mapped) if mapped else bare
