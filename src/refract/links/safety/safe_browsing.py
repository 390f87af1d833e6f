"""Google Safe Browsing, version 4: up to 500 URLs per request, with a timeout of two seconds.

A failing service is not called for a while, so that it does not slow down every creation.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import structlog

from refract import __version__
from refract.core.clock import Clock
from refract.core.settings.model import Settings
from refract.core.urls import BadUrl, parse_web_url
from refract.links.safety.models import UrlVerdict
from refract.links.safety.queries import UrlFinding

if TYPE_CHECKING:
    import httpx

MAX_URLS_PER_REQUEST = 500
REQUEST_TIMEOUT = 2.0
MAX_FAILURES = 3
RETRY_INTERVAL_SECONDS = 30.0

_PATH = "/v4/threatMatches:find"
_THREAT_TYPES = [
    "MALWARE",
    "SOCIAL_ENGINEERING",
    "UNWANTED_SOFTWARE",
    "POTENTIALLY_HARMFUL_APPLICATION",
]


class CheckFailed(Exception):
    """The service gave no usable response. The message is for the log."""


class SafeBrowsingBreaker:
    """A circuit breaker: opens after several failures, and tries one request at intervals."""

    def __init__(
        self,
        clock: Clock,
        *,
        max_failures: int = MAX_FAILURES,
        retry_interval: float = RETRY_INTERVAL_SECONDS,
    ) -> None:
        self._clock = clock
        self._max_failures = max_failures
        self._retry_interval = retry_interval
        self._failures = 0
        self._retry_at = 0.0

    @property
    def is_open(self) -> bool:
        return self._failures >= self._max_failures

    def allow_request(self) -> bool:
        if not self.is_open:
            return True
        now = self._clock.monotonic()
        if now < self._retry_at:
            return False
        self._retry_at = now + self._retry_interval  # this caller tries, the others keep waiting
        return True

    def record_success(self) -> None:
        self._failures = 0

    def record_failure(self) -> None:
        self._failures += 1
        if self.is_open:
            self._retry_at = self._clock.monotonic() + self._retry_interval


class SafeBrowsingClient:
    """The client of the service. Disabled when no key is configured."""

    def __init__(
        self, settings: Settings, clock: Clock, *, timeout: float = REQUEST_TIMEOUT
    ) -> None:
        self._key = settings.safe_browsing_key
        self._url = settings.safe_browsing_url.rstrip("/") + _PATH
        self._timeout = timeout
        self._breaker = SafeBrowsingBreaker(clock)
        self._client: httpx.AsyncClient | None = None
        self._log = structlog.get_logger("refract.safebrowsing")

    @property
    def is_configured(self) -> bool:
        return self._key is not None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def check_urls(self, hrefs: Sequence[str]) -> dict[str, UrlFinding]:
        """Return the result for each URL. URLs that could not be checked are missing."""
        batches = [
            list(hrefs[start : start + MAX_URLS_PER_REQUEST])
            for start in range(0, len(hrefs), MAX_URLS_PER_REQUEST)
        ]
        answers = await asyncio.gather(*(self._check_batch(batch) for batch in batches))
        return {href: found for answer in answers for href, found in answer.items()}

    async def _check_batch(self, hrefs: list[str]) -> dict[str, UrlFinding]:
        if not self._breaker.allow_request():
            return {}
        try:
            threats = _parse_threats(await self._request_matches(hrefs))
        except CheckFailed as exc:
            self._breaker.record_failure()
            self._log.warning(
                "addresses could not be checked",
                count=len(hrefs),
                reason=str(exc),
                resting=self._breaker.is_open,
            )
            return {}
        self._breaker.record_success()
        return {
            href: (
                UrlFinding(UrlVerdict.BAD, threats[href])
                if href in threats
                else UrlFinding(UrlVerdict.SAFE)
            )
            for href in hrefs
        }

    async def _request_matches(self, hrefs: list[str]) -> Any:
        import httpx  # noqa: PLC0415 - slow to load, and needed only with a key

        if self._client is None:
            self._client = httpx.AsyncClient(
                trust_env=False, follow_redirects=False, timeout=self._timeout
            )
        body = {
            "client": {"clientId": "refract", "clientVersion": __version__},
            "threatInfo": {
                "threatTypes": _THREAT_TYPES,
                "platformTypes": ["ANY_PLATFORM"],
                "threatEntryTypes": ["URL"],
                "threatEntries": [{"url": href} for href in hrefs],
            },
        }
        key = self._key.get_secret_value() if self._key else ""
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._client.post(
                    self._url, json=body, headers={"X-Goog-Api-Key": key}
                )
        except TimeoutError as exc:
            problem = f"no answer within {self._timeout:g} seconds"
            raise CheckFailed(problem) from exc
        except httpx.HTTPError as exc:
            raise CheckFailed(type(exc).__name__) from exc
        if answer.status_code != 200:
            problem = f"the service answered {answer.status_code}"
            raise CheckFailed(problem)
        try:
            return answer.json()
        except ValueError as exc:
            problem = "the answer is not JSON"
            raise CheckFailed(problem) from exc


def _parse_threats(answer: Any) -> dict[str, str]:
    """Return the dangerous URLs of a response, each with the service's name for the danger."""
    try:
        return {
            _normalise_url(match["threat"]["url"]): str(match["threatType"])
            for match in answer.get("matches", [])
        }
    except (AttributeError, KeyError, TypeError) as exc:
        problem = "the answer has another shape"
        raise CheckFailed(problem) from exc


def _normalise_url(url: Any) -> str:
    """Return a URL in one spelling, because the service may spell it differently."""
    try:
        return parse_web_url(str(url), limit=len(str(url))).href
    except BadUrl:
        return str(url)
