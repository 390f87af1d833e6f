"""Fetch a page that a stranger named, and come back with it or with the reason why not."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Self
from weakref import WeakValueDictionary

import h11
from ada_url import URL

from refract import __version__
from refract.core.net.addresses import Guard
from refract.core.net.body import Body
from refract.core.net.charset import decode
from refract.core.net.errors import BadStatus, NotAPage, RefusedAddress, TimedOut, TooLarge, TooManyRedirects, Unreachable
from refract.core.net.limits import Limits
from refract.core.net.names import Resolver, approved_addresses, port_of, resolve_by_system
from refract.core.net.wire import Exchange, connected
from refract.core.settings import Settings
from refract.core.urls import BadUrl, WebUrl, parse_web_url, same_site_host

PAGES = ("text/html", "application/xhtml+xml")
ANYTHING = ("*/*",)
_AGENT = f"Mozilla/5.0 (compatible; Refract/{__version__})"  # no address of ours: an intranet's name is nobody's business
_LONGEST_URL = 8192
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([^\s;\"']{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Page:
    """What was found, and where in the end."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool = False

    @property
    def content_type(self) -> str:
        """Type and subtype alone; empty if the server said nothing."""
        return _essence(self.headers)

    @property
    def charset(self) -> str | None:
        """The encoding that the server states."""
        stated = _CHARSET.search(self.headers.get("content-type", ""))
        return stated[1] if stated else None

    @property
    def text(self) -> str:
        """The whole body, decoded. Of a foreign page this is for an extraction process to do."""
        return decode(self.body, self.charset, whole=not self.truncated)

    def join(self, reference: str) -> str:
        """The full address of something this page refers to. `RefusedAddress` if it could not be fetched anyway."""
        return _follow(_parse(self.url), reference).href


class Fetcher:
    """The client. One per process is enough, and limits its connections to any one host."""

    def __init__(
        self, guard: Guard, *, resolve: Resolver = resolve_by_system, limits: Limits | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._guard = guard
        self._resolve = resolve
        self._limits = limits or Limits()
        self._given_tls = tls
        self._slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()  # a host nobody fetches from is forgotten

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(Guard(allow=settings.fetch_allow, ports=frozenset(settings.fetch_ports)))

    async def fetch(self, url: str, *, accept: tuple[str, ...] = PAGES, budget: float = 10.0, enough: int | None = None) -> Page:
        """Get what is at `url`, or raise a `FetchError` within `budget` seconds, redirects and waiting for a turn included.

        `accept` names the content types that are of use (`image/*` is one too). With `enough`, reading stops after so many bytes and
        the page is `truncated`; without it a page over the limits is `TooLarge`. Whatever a page refers to comes by this door as well.
        """
        try:
            async with asyncio.timeout(budget):
                return await self._through_redirects(_parse(url), accept, enough)
        except TimeoutError as wrong:
            raise TimedOut(url) from wrong
        except OSError as wrong:
            raise Unreachable(f"{url}: {wrong}") from wrong

    async def _through_redirects(self, url: WebUrl, accept: tuple[str, ...], enough: int | None) -> Page:
        for _ in range(self._limits.redirects + 1):
            async with self._answer(url, accept) as (exchange, response):
                headers = _headers(response)
                target = headers.get("location") if response.status_code in (301, 302, 303, 307, 308) else None
                if target is None:
                    _expect_content(response.status_code, headers, accept)
                    return await self._read(url, response.status_code, headers, exchange, enough)
            url = _follow(url, target)
        raise TooManyRedirects(url.href)

    @asynccontextmanager
    async def _answer(self, url: WebUrl, accept: tuple[str, ...]) -> AsyncIterator[tuple[Exchange, h11.Response]]:
        """One hop. The host's turn ends with it, so that two hosts redirecting to each other cannot block each other."""
        async with self._slots.setdefault(same_site_host(url.host), asyncio.Semaphore(self._limits.per_host)):
            async with asyncio.timeout(self._limits.connect):
                addresses = await approved_addresses(url, self._guard, self._resolve)
            tls = self._tls if url.scheme == "https" else None
            async with connected(self._guard, addresses, port_of(url), tls=tls, host=url.host, limits=self._limits) as exchange:
                yield exchange, await exchange.ask(url.path + url.query, _request_headers(url, accept))

    async def _read(self, url: WebUrl, status: int, headers: Mapping[str, str], exchange: Exchange, enough: int | None) -> Page:
        claimed = headers.get("content-length", "")
        if enough is None and claimed.isdigit() and int(claimed) > self._limits.wire:
            raise TooLarge(f"{claimed} bytes announced")
        body = Body(headers.get("content-encoding", "").strip().lower(), self._limits, enough)
        while not body.full and (piece := await exchange.data()):
            body.feed(piece)
        return Page(url.href, status, headers, body.finish(), body.truncated)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Made when first needed: reading the system's certificates takes a while."""
        return self._given_tls or ssl.create_default_context()


def _parse(text: str) -> WebUrl:
    try:
        return parse_web_url(text, limit=_LONGEST_URL)
    except BadUrl as wrong:
        raise RefusedAddress(f"{text[:200]}: {wrong}") from wrong


def _follow(base: WebUrl, reference: str) -> WebUrl:
    """Where a redirect or a reference leads: through the same checks as any address, and never from https back to http."""
    try:
        url = _parse(URL(reference.strip(), base=base.href).href)
    except ValueError as wrong:
        raise RefusedAddress(f"{base.href} refers to {reference[:200]}") from wrong
    if base.scheme == "https" and url.scheme == "http":
        raise RefusedAddress(f"{base.href} leads out of https")
    return url


def _request_headers(url: WebUrl, accept: tuple[str, ...]) -> list[tuple[str, str]]:
    return [
        ("Host", f"{url.host}:{url.port}" if url.port else url.host),
        ("User-Agent", _AGENT),
        ("Accept", ", ".join((*accept, "*/*;q=0.1"))),  # some servers answer 406 to those who do not take everything
        ("Accept-Encoding", "gzip, identity"),
        ("Connection", "close"),
    ]


def _headers(response: h11.Response) -> dict[str, str]:
    """Lower-case names; a repeated header's values joined. Servers write UTF-8 where the standard knows only Latin-1."""
    found: dict[str, str] = {}
    for raw_name, raw_value in response.headers:
        name, value = raw_name.decode("ascii"), _header_text(raw_value)
        found[name] = f"{found[name]}, {value}" if name in found and name != "location" else value
    return found


def _header_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _essence(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _expect_content(status: int, headers: Mapping[str, str], accept: tuple[str, ...]) -> None:
    if not 200 <= status <= 299:
        raise BadStatus(status)
    if status in (204, 205):
        raise NotAPage(f"status {status}")
    given = _essence(headers)
    if given and not any(fnmatchcase(given, pattern) for pattern in accept):
        raise NotAPage(given[:80])
