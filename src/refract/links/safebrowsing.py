"""Google Safe Browsing, version 4: one question for up to 500 addresses, an answer within two seconds or none at all.

A service that does not answer is left alone for a while: a dead one must not slow every creation.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import structlog

from refract import __version__
from refract.core.clock import Clock
from refract.core.settings import Settings
from refract.core.urls import BadUrl, parse_web_url
from refract.links.safety_models import Verdict
from refract.links.safety_queries import Finding

MOST_ADDRESSES = 500
PATIENCE = 2.0
TRIES_BEFORE_REST = 3
REST_SECONDS = 30.0

_PATH = "/v4/threatMatches:find"
_THREATS = ["MALWARE", "SOCIAL_ENGINEERING", "UNWANTED_SOFTWARE", "POTENTIALLY_HARMFUL_APPLICATION"]


class CheckFailed(Exception):
    """No answer that could be used; the message says why, for the log."""


class Breaker:
    """Stops asking after some failures in a row; one question in a while finds out whether the other side is back."""

    def __init__(self, clock: Clock, *, failures: int = TRIES_BEFORE_REST, rest: float = REST_SECONDS) -> None:
        self._clock = clock
        self._allowed = failures
        self._rest = rest
        self._failures = 0
        self._again_at = 0.0

    @property
    def resting(self) -> bool:
        return self._failures >= self._allowed

    def may_ask(self) -> bool:
        if not self.resting:
            return True
        now = self._clock.monotonic()
        if now < self._again_at:
            return False
        self._again_at = now + self._rest  # this caller is the one who tries; the others go on resting
        return True

    def went_well(self) -> None:
        self._failures = 0

    def failed(self) -> None:
        self._failures += 1
        if self.resting:
            self._again_at = self._clock.monotonic() + self._rest


class SafeBrowsing:
    """The service, or nothing when no key is configured."""

    def __init__(self, settings: Settings, clock: Clock, *, patience: float = PATIENCE) -> None:
        self._key = settings.safe_browsing_key
        self._url = settings.safe_browsing_url.rstrip("/") + _PATH
        self._patience = patience
        self._breaker = Breaker(clock)
        self._client: httpx.AsyncClient | None = None
        self._log = structlog.get_logger("refract.safebrowsing")

    @property
    def configured(self) -> bool:
        return self._key is not None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def check(self, hrefs: Sequence[str]) -> dict[str, Finding]:
        """What the service says of each address. Addresses that it could not be asked about are missing from the answer."""
        batches = [list(hrefs[start : start + MOST_ADDRESSES]) for start in range(0, len(hrefs), MOST_ADDRESSES)]
        answers = await asyncio.gather(*(self._batch(batch) for batch in batches))
        return {href: found for answer in answers for href, found in answer.items()}

    async def _batch(self, hrefs: list[str]) -> dict[str, Finding]:
        if not self._breaker.may_ask():
            return {}
        try:
            threats = _threats(await self._ask(hrefs))
        except CheckFailed as failed:
            self._breaker.failed()
            self._log.warning("addresses could not be checked", count=len(hrefs), reason=str(failed), resting=self._breaker.resting)
            return {}
        self._breaker.went_well()
        return {href: Finding(Verdict.BAD, threats[href]) if href in threats else Finding(Verdict.SAFE) for href in hrefs}

    async def _ask(self, hrefs: list[str]) -> Any:
        if self._client is None:
            self._client = httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=self._patience)
        question = {
            "client": {"clientId": "refract", "clientVersion": __version__},
            "threatInfo": {
                "threatTypes": _THREATS,
                "platformTypes": ["ANY_PLATFORM"],
                "threatEntryTypes": ["URL"],
                "threatEntries": [{"url": href} for href in hrefs],
            },
        }
        key = self._key.get_secret_value() if self._key else ""
        try:
            async with asyncio.timeout(self._patience):
                answer = await self._client.post(self._url, json=question, headers={"X-Goog-Api-Key": key})
        except TimeoutError as wrong:
            problem = f"no answer within {self._patience:g} seconds"
            raise CheckFailed(problem) from wrong
        except httpx.HTTPError as wrong:
            raise CheckFailed(type(wrong).__name__) from wrong
        if answer.status_code != 200:
            problem = f"the service answered {answer.status_code}"
            raise CheckFailed(problem)
        try:
            return answer.json()
        except ValueError as wrong:
            problem = "the answer is not JSON"
            raise CheckFailed(problem) from wrong


def _threats(answer: Any) -> dict[str, str]:
    """The dangerous addresses of an answer, each with the service's word for the danger."""
    try:
        return {_serialised(match["threat"]["url"]): str(match["threatType"]) for match in answer.get("matches", [])}
    except (AttributeError, KeyError, TypeError) as wrong:
        problem = "the answer has another shape"
        raise CheckFailed(problem) from wrong


def _serialised(url: Any) -> str:
    """The service may spell an address differently from how it was asked."""
    try:
        return parse_web_url(str(url), limit=len(str(url))).href
    except BadUrl:
        return str(url)
