"""Fetching of a page that a stranger named."""

import asyncio
import re
import ssl
import zlib
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
from refract.core.net.addresses import (
    AddressGuard,
    HostResolver,
    get_port,
    resolve_allowed_addresses,
    resolve_by_system,
)
from refract.core.net.charset import decode_html
from refract.core.net.connection import FetchLimits, HttpExchange, open_connection
from refract.core.net.errors import (
    BadAnswer,
    BadStatus,
    NotAPage,
    RefusedAddress,
    TimedOut,
    TooLarge,
    TooManyRedirects,
    Unreachable,
)
from refract.core.settings.model import Settings
from refract.core.urls import BadUrl, WebUrl, normalize_host, parse_web_url

HTML_TYPES = ("text/html", "application/xhtml+xml")
ANY_TYPE = ("*/*",)
_USER_AGENT = (  # without our address: the name of an intranet is private
    f"Mozilla/5.0 (compatible; Refract/{__version__})"
)
_MAX_URL_LENGTH = 8192
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([^\s;\"']{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A fetched page and its final URL."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool = False

    @property
    def content_type(self) -> str:
        """Return type and subtype alone; empty if the server sent none."""
        return _get_content_type(self.headers)

    @property
    def charset(self) -> str | None:
        """Return the encoding that the server declares."""
        stated = _CHARSET.search(self.headers.get("content-type", ""))
        return stated[1] if stated else None

    @property
    def text(self) -> str:
        """Return the whole decoded body.

        For foreign pages, use it only in an extraction process.
        """
        return decode_html(self.body, self.charset, whole=not self.truncated)

    def resolve_url(self, reference: str) -> str:
        """Return the URL of a reference on this page.

        Raises `RefusedAddress` if it could not be fetched anyway.
        """
        return _resolve_reference(_parse_url(self.url), reference).href


class PageFetcher:
    """The client. One per process is enough, and limits its connections per host."""

    def __init__(
        self,
        guard: AddressGuard,
        *,
        resolve: HostResolver = resolve_by_system,
        limits: FetchLimits | None = None,
        tls: ssl.SSLContext | None = None,
        own_url: str | None = None,
    ) -> None:
        """`own_url` is never fetched: it would tell which short links exist, past every limit."""
        self._guard = guard
        self._own_origin = _get_origin(parse_web_url(own_url)) if own_url else None
        self._resolve = resolve
        self._limits = limits or FetchLimits()
        self._given_tls = tls
        # A host without fetches is forgotten.
        self._slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        guard = AddressGuard(allow=settings.fetch_allow, ports=frozenset(settings.fetch_ports))
        return cls(guard, own_url=settings.public_url)

    async def fetch(
        self,
        url: str,
        *,
        accept: tuple[str, ...] = HTML_TYPES,
        budget: float = 10.0,
        truncate_at: int | None = None,
        credentials: Mapping[str, str] | None = None,
    ) -> FetchedPage:
        """Fetch `url`, or raise a `FetchError` within `budget` seconds.

        The budget includes redirects and waiting for a slot. `accept` are the useful content types
        (also `image/*`). With `truncate_at`, reading stops after so many bytes and the page is
        `truncated`; without it, a page over the limits raises `TooLarge`. Fetch references of a
        page by this method as well. `credentials` are headers for the server of `url`; with them,
        a redirect to another server is refused.
        """
        try:
            async with asyncio.timeout(budget):
                return await self._follow_redirects(
                    _parse_url(url), accept, truncate_at, credentials or {}
                )
        except TimeoutError as exc:
            raise TimedOut(url) from exc
        except OSError as exc:
            raise Unreachable(f"{url}: {exc}") from exc

    async def _follow_redirects(
        self,
        url: WebUrl,
        accept: tuple[str, ...],
        truncate_at: int | None,
        credentials: Mapping[str, str],
    ) -> FetchedPage:
        first = url
        for _ in range(self._limits.redirects + 1):
            if _get_origin(url) == self._own_origin:
                raise RefusedAddress(f"{url.href} is this installation")
            async with self._open_response(url, accept, credentials) as (exchange, response):
                headers = _read_headers(response)
                target = (
                    headers.get("location")
                    if response.status_code in (301, 302, 303, 307, 308)
                    else None
                )
                if target is None:
                    _check_content(response.status_code, headers, accept)
                    return await self._read_page(
                        url, response.status_code, headers, exchange, truncate_at
                    )
            url = _resolve_reference(url, target)
            if credentials and (_get_origin(url), url.scheme) != (_get_origin(first), first.scheme):
                raise RefusedAddress(f"{first.host} leads to another server")
        raise TooManyRedirects(url.href)

    @asynccontextmanager
    async def _open_response(
        self, url: WebUrl, accept: tuple[str, ...], credentials: Mapping[str, str]
    ) -> AsyncIterator[tuple[HttpExchange, h11.Response]]:
        """Open one hop.

        It frees the host's slot at its end, so that two hosts that redirect to each other cannot
        block each other.
        """
        async with self._slots.setdefault(
            normalize_host(url.host), asyncio.Semaphore(self._limits.per_host)
        ):
            async with asyncio.timeout(self._limits.connect):
                addresses = await resolve_allowed_addresses(url, self._guard, self._resolve)
            tls = self._tls if url.scheme == "https" else None
            async with open_connection(
                self._guard, addresses, get_port(url), tls=tls, host=url.host, limits=self._limits
            ) as exchange:
                yield (
                    exchange,
                    await exchange.send_request(
                        url.path + url.query,
                        [*_build_request_headers(url, accept), *credentials.items()],
                    ),
                )

    async def _read_page(
        self,
        url: WebUrl,
        status: int,
        headers: Mapping[str, str],
        exchange: HttpExchange,
        truncate_at: int | None,
    ) -> FetchedPage:
        claimed = headers.get("content-length", "")
        if truncate_at is None and claimed.isdigit() and int(claimed) > self._limits.wire:
            raise TooLarge(f"{claimed} bytes announced")
        body = ResponseBody(
            headers.get("content-encoding", "").strip().lower(), self._limits, truncate_at
        )
        while not body.is_full and (piece := await exchange.read_chunk()):
            body.feed(piece)
        return FetchedPage(url.href, status, headers, body.finish(), body.truncated)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Create the context when first needed: reading the system's certificates takes a while."""
        return self._given_tls or ssl.create_default_context()


def _get_origin(url: WebUrl) -> tuple[str, int]:
    return normalize_host(url.host), get_port(url)


def _parse_url(text: str) -> WebUrl:
    try:
        return parse_web_url(text, limit=_MAX_URL_LENGTH)
    except BadUrl as exc:
        raise RefusedAddress(f"{text[:200]}: {exc}") from exc


def _resolve_reference(base: WebUrl, reference: str) -> WebUrl:
    """Return the target of a redirect or reference.

    It passes the same checks as any URL, and never leads from https back to http.
    """
    try:
        url = _parse_url(URL(reference.strip(), base=base.href).href)
    except ValueError as exc:
        raise RefusedAddress(f"{base.href} refers to {reference[:200]}") from exc
    if base.scheme == "https" and url.scheme == "http":
        raise RefusedAddress(f"{base.href} leads out of https")
    return url


def _build_request_headers(url: WebUrl, accept: tuple[str, ...]) -> list[tuple[str, str]]:
    return [
        ("Host", f"{url.host}:{url.port}" if url.port else url.host),
        ("User-Agent", _USER_AGENT),
        # Some servers respond with 406 to clients that do not accept everything.
        ("Accept", ", ".join((*accept, "*/*;q=0.1"))),
        ("Accept-Encoding", "gzip, identity"),
        ("Connection", "close"),
    ]


def _read_headers(response: h11.Response) -> dict[str, str]:
    """Return the headers by lower-case name, repeated ones joined.

    Servers write UTF-8 where the standard allows only Latin-1.
    """
    found: dict[str, str] = {}
    for raw_name, raw_value in response.headers:
        name, value = raw_name.decode("ascii"), _decode_header(raw_value)
        found[name] = f"{found[name]}, {value}" if name in found and name != "location" else value
    return found


def _decode_header(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _get_content_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _check_content(status: int, headers: Mapping[str, str], accept: tuple[str, ...]) -> None:
    if not 200 <= status <= 299:
        raise BadStatus(status)
    if status in (204, 205):
        raise NotAPage(f"status {status}")
    given = _get_content_type(headers)
    if given and not any(fnmatchcase(given, pattern) for pattern in accept):
        raise NotAPage(given[:80])


# A body as it grows: decoded in chunks, never beyond its limit.


class ResponseBody:
    """Feed it until it `is_full`, then `finish`.

    With `truncate_at`, the rest after so many bytes is not read and the body is `truncated`.
    Without it, a body over the limit is an error.
    """

    def __init__(self, encoding: str, limits: FetchLimits, truncate_at: int | None) -> None:
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise BadAnswer(f"encoded as {encoding[:80]}, which was not asked for")
        self._gzip = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
        self._limits = limits
        self._truncate_at = truncate_at
        self._max_bytes = (
            limits.decoded if truncate_at is None else min(truncate_at, limits.decoded)
        )
        self._wire = 0
        self._bytes = bytearray()
        self.truncated = False

    @property
    def is_full(self) -> bool:
        return self.truncated or (self._gzip is not None and self._gzip.eof)

    def feed(self, piece: bytes) -> None:
        self._wire += len(piece)
        plausible = max(self._limits.ratio_from, self._limits.ratio * self._wire)
        # One more than allowed, to notice that there is more.
        room = min(self._max_bytes, plausible) + 1 - len(self._bytes)
        self._bytes += (
            piece[:room] if self._gzip is None else self._inflate(self._gzip, piece, room)
        )
        size = len(self._bytes)
        if size > plausible:
            raise TooLarge(f"{self._wire} bytes became {size}")
        if size > self._max_bytes:
            if self._truncate_at is None:
                raise TooLarge(f"more than {self._max_bytes} bytes once decoded")
            del self._bytes[self._max_bytes :]
            self.truncated = True

    def finish(self) -> bytes:
        """Return the whole body, if the server has completed it."""
        if self._gzip is not None and self._wire and not self.is_full:
            raise Unreachable("the compressed body ended too early")
        return bytes(self._bytes)

    @staticmethod
    def _inflate(gzip: "zlib._Decompress", piece: bytes, room: int) -> bytes:
        try:
            return gzip.decompress(piece, room)
        except zlib.error as exc:
            raise BadAnswer(f"broken gzip: {exc}") from exc
