"""Metadata of providers: discovery and keys, refreshed hourly, used for up to a day.

The operator configures the issuer, so it may be on an intranet: the client connects to any address,
but with a short timeout, a size limit and no redirects. Metadata is also stored in the database, so
that a process can start while the provider is unavailable.
"""

import asyncio
import contextlib
import contextvars
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx
import structlog
from pydantic import BaseModel, ValidationError, field_validator
from sqlalchemy import delete

from refract import __version__
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer, is_safe_url
from refract.core.tracing import client_hooks
from refract.identity.errors import IssuerUnavailable
from refract.identity.models import IssuerDocuments
from refract.identity.oidc import tokens

REFRESH_AFTER = timedelta(hours=1)
MAX_STALENESS = timedelta(hours=24)
REQUEST_TIMEOUT = 5.0
RETRY_INTERVAL = 30.0
UNKNOWN_KEY_INTERVAL = 60.0
"""An unknown key id may mean new keys; this bounds requests if many such tokens arrive."""
MAX_RESPONSE_BYTES = 512 * 1024
MAX_KEYS = 100


class DocumentRefused(Exception):
    """The provider's response is unusable; the message is the reason, for the log."""


class ProviderStatusError(DocumentRefused):
    """The provider answered with another status than 200."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class DiscoveryDocument(BaseModel):
    """The fields of the discovery document that we use."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    end_session_endpoint: str | None = None
    authorization_response_iss_parameter_supported: bool = False
    token_endpoint_auth_methods_supported: list[str] = [
        "client_secret_basic"
    ]  # the standard's own default

    @field_validator(
        "authorization_endpoint",
        "token_endpoint",
        "jwks_uri",
        "userinfo_endpoint",
        "end_session_endpoint",
    )
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        if value is not None and not is_safe_url(value):
            problem = "an address of the provider is not https"
            raise ValueError(problem)
        return value


@dataclass(frozen=True, slots=True)
class ProviderMetadata:
    """Discovery document and keys of a provider, and when they were fetched."""

    discovery: DiscoveryDocument
    keys: tuple[Mapping[str, Any], ...]
    fetched_at: datetime


class OidcProvider:
    """A configured issuer with its cached metadata."""

    def __init__(self, rt: Runtime, name: str, issuer: Issuer) -> None:
        self.name = name
        self.issuer = issuer
        self._rt = rt
        self._metadata: ProviderMetadata | None = None
        self._refresh_lock = asyncio.Lock()
        self._retry_at = 0.0
        self._unknown_key_at = 0.0
        self._refresh_task: asyncio.Task[None] | None = None
        self._client: httpx.AsyncClient | None = None
        self._log = structlog.get_logger("refract.oidc")

    async def close(self) -> None:
        if self._refresh_task is not None:
            self._refresh_task.cancel()
            await asyncio.gather(self._refresh_task, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    async def get_metadata(self) -> ProviderMetadata:
        """Return cached metadata; refresh it in the background when it is stale.

        Raises `IssuerUnavailable` if there is none and it can't be fetched.
        """
        now = self._rt.clock.now()
        known = self._metadata or await self._load_stored()
        if known is None or now - known.fetched_at >= MAX_STALENESS:
            return await self._refresh(known)
        if now - known.fetched_at >= REFRESH_AFTER and (
            self._refresh_task is None or self._refresh_task.done()
        ):
            # In a context of its own, outside the transaction of the request.
            self._refresh_task = asyncio.create_task(
                self._refresh_quietly(known), context=contextvars.Context()
            )
        return known

    async def find_signing_key(
        self, token: tokens.UnverifiedToken, algorithm: str
    ) -> Mapping[str, Any]:
        """Return the key that may have signed a token.

        An unknown key id refreshes the keys, at most once per `UNKNOWN_KEY_INTERVAL`. Raises
        `TokenRefused`.
        """
        metadata = await self.get_metadata()
        key = tokens.select_key(metadata.keys, token.key_id, algorithm)
        if key is None and self._rt.clock.monotonic() >= self._unknown_key_at:
            self._unknown_key_at = self._rt.clock.monotonic() + UNKNOWN_KEY_INTERVAL
            try:
                refreshed = await asyncio.create_task(
                    self._refresh(metadata), context=contextvars.Context()
                )
            except IssuerUnavailable:
                refreshed = metadata
            key = tokens.select_key(refreshed.keys, token.key_id, algorithm)
        if key is None:
            raise tokens.TokenRefused("no published key fits")
        return key

    async def request_json(self, method: str, url: str, **options: Any) -> Any:
        """Send a request and return the JSON of its response. Raises `DocumentRefused`."""
        if self._client is None:
            self._client = httpx.AsyncClient(
                trust_env=False,
                follow_redirects=False,
                verify=ssl.create_default_context(),
                headers={"User-Agent": f"Refract/{__version__}", "Accept": "application/json"},
                event_hooks=client_hooks(self._rt),
            )
        try:
            async with (
                asyncio.timeout(REQUEST_TIMEOUT),
                self._client.stream(method, url, timeout=REQUEST_TIMEOUT, **options) as response,
            ):
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_RESPONSE_BYTES:
                        raise DocumentRefused("the answer is too long")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as exc:
            raise DocumentRefused(type(exc).__name__) from exc
        if response.status_code != 200:
            raise ProviderStatusError(response.status_code)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as exc:
            raise DocumentRefused("the answer is not JSON") from exc

    async def _refresh_quietly(self, known: ProviderMetadata) -> None:
        with contextlib.suppress(Unavailable):  # logged already; the cached metadata stays in use
            await self._refresh(known)

    async def _refresh(self, known: ProviderMetadata | None) -> ProviderMetadata:
        """Fetch now. Concurrent calls share one fetch; a failure is not retried for a while."""
        async with self._refresh_lock:
            if self._metadata is not None and self._metadata is not known:
                return self._metadata  # another call has refreshed it meanwhile
            if self._rt.clock.monotonic() < self._retry_at:
                raise IssuerUnavailable(name=self.issuer.display_name)
            try:
                self._metadata = await self._fetch()
            except DocumentRefused as exc:
                self._retry_at = self._rt.clock.monotonic() + RETRY_INTERVAL
                self._log.warning("issuer_unavailable", issuer=self.name, reason=str(exc))
                raise IssuerUnavailable(name=self.issuer.display_name) from exc
            await self._store(self._metadata)
            return self._metadata

    async def _fetch(self) -> ProviderMetadata:
        document = await self.request_json(
            "GET", f"{self.issuer.url.rstrip('/')}/.well-known/openid-configuration"
        )
        discovery = _parse_discovery(document, self.issuer.url)
        return ProviderMetadata(
            discovery,
            _parse_keys(await self.request_json("GET", discovery.jwks_uri)),
            self._rt.clock.now(),
        )

    async def _load_stored(self) -> ProviderMetadata | None:
        async with self._rt.db.read() as session:
            row = await session.get(IssuerDocuments, self.issuer.url)
        if row is not None:
            try:
                self._metadata = ProviderMetadata(
                    _parse_discovery(row.discovery, self.issuer.url),
                    _parse_keys(row.keys),
                    row.fetched_at,
                )
            except DocumentRefused:
                return None  # stored by a release with other rules
        return self._metadata

    async def _store(self, metadata: ProviderMetadata) -> None:
        if self._rt.settings.role == "redirect":  # which may only read
            return
        row = IssuerDocuments(
            issuer=self.issuer.url,
            discovery=metadata.discovery.model_dump(),
            keys={"keys": [dict(key) for key in metadata.keys]},
            fetched_at=metadata.fetched_at,
        )
        try:
            async with self._rt.db.write() as session:
                await session.execute(
                    delete(IssuerDocuments).where(IssuerDocuments.issuer == row.issuer)
                )
                session.add(row)
        except Unavailable as exc:
            self._log.warning("issuer_storing_failed", issuer=self.name, reason=exc.message)


def _parse_discovery(document: Any, issuer: str) -> DiscoveryDocument:
    try:
        discovery = DiscoveryDocument.model_validate(document)
    except ValidationError as exc:
        first = exc.errors()[0]
        raise DocumentRefused(
            f"discovery: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        ) from exc
    if discovery.issuer != issuer:
        raise DocumentRefused(
            f'discovery names the issuer "{discovery.issuer[:200]}": write the setting exactly so'
        )
    return discovery


def _parse_keys(document: Any) -> tuple[Mapping[str, Any], ...]:
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not keys:
        raise DocumentRefused("the key set has no keys")
    public = [
        key
        for key in keys[:MAX_KEYS]
        if isinstance(key, dict) and key.get("kty") in ("RSA", "EC", "OKP") and "d" not in key
    ]
    if not public:
        raise DocumentRefused("the key set has no public keys")
    return tuple(public)


class OidcProviders:
    """All configured issuers. One per runtime."""

    def __init__(self, rt: Runtime) -> None:
        self.by_name = {
            name: OidcProvider(rt, name, issuer) for name, issuer in rt.settings.issuers.items()
        }
        self._by_url = {provider.issuer.url: provider for provider in self.by_name.values()}

    def find_by_issuer(self, url: str) -> OidcProvider | None:
        """Return the provider whose tokens have this issuer, or None."""
        return self._by_url.get(url)

    async def close(self) -> None:
        for provider in self.by_name.values():
            await provider.close()
