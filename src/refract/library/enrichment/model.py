"""The model tier: any endpoint that speaks OpenAI's chat completions.

If it fails, the offline proposal is used.
"""

import asyncio
import contextlib
import json
from typing import Any

import httpx
import structlog
from pydantic import ValidationError

from refract.core.runtime import Runtime
from refract.core.tracing import client_hooks
from refract.library.enrichment.prompt import (
    RESPONSE_SCHEMA,
    ModelDescription,
    build_messages,
    build_repair_messages,
    parse_response,
)
from refract.library.enrichment.reasons import AI_KNOWN_REASON, AI_NEW_REASON
from refract.library.enrichment.types import (
    EnrichmentInput,
    EnrichmentProposal,
    SuggestedTag,
    UserBackground,
)
from refract.library.models import Enrichment, EnrichmentNotice, SuggestionSource
from refract.tags.grammar import personal_key

MAX_RESPONSE_BYTES = 256 * 1024
MAX_TOKENS = 500
KNOWN_TAG_CONFIDENCE = 0.75
NEW_TAG_CONFIDENCE = 0.55
_SCHEMA_UNSUPPORTED_STATUSES = (400, 404, 415, 422, 500, 501)


class ModelFailed(Exception):
    """The model gave no usable proposal; `note` is the reason. The offline one is used."""

    def __init__(self, note: EnrichmentNotice, detail: str = "") -> None:
        super().__init__(detail)
        self.note = note


class ModelClient:
    """The client of the model.

    One per process, with as many concurrent requests as the operator allows.
    """

    def __init__(self, rt: Runtime) -> None:
        settings = rt.settings
        key = settings.model_key.get_secret_value() if settings.model_key else None
        self._http = httpx.AsyncClient(
            base_url=f"{settings.model_url}/",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=settings.model_timeout_seconds,
            follow_redirects=False,
            trust_env=False,
            event_hooks=client_hooks(rt),
        )
        self._name = settings.model_name
        self._timeout = settings.model_timeout_seconds
        self._slots = asyncio.Semaphore(settings.model_concurrency)
        self._is_structured = True
        self._log = structlog.get_logger("refract.library")

    @property
    def is_busy(self) -> bool:
        """Return whether a request would have to wait now."""
        return self._slots.locked()

    async def close(self) -> None:
        await self._http.aclose()

    async def describe(
        self, material: EnrichmentInput, background: UserBackground
    ) -> EnrichmentProposal:
        """Return a better proposal than the offline one.

        Raises `ModelFailed`. Waiting for a slot does not count against the timeout.
        """
        async with self._slots:
            try:
                async with asyncio.timeout(self._timeout):
                    description = await self._describe_with_repair(
                        build_messages(material, background)
                    )
            except (TimeoutError, httpx.TimeoutException) as exc:
                raise ModelFailed(EnrichmentNotice.MODEL_TOO_SLOW, type(exc).__name__) from exc
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
                raise ModelFailed(
                    EnrichmentNotice.MODEL_UNAVAILABLE, f"{type(exc).__name__}: {exc}"[:300]
                ) from exc
        return _build_proposal(description, background)

    async def _describe_with_repair(self, messages: list[dict[str, str]]) -> ModelDescription:
        response = await self._complete(messages)
        try:
            return parse_response(response)
        except ValueError as exc:
            why = _format_reason(exc)
        try:
            return parse_response(
                await self._complete(build_repair_messages(messages, response, why))
            )
        except ValueError as exc:
            raise ModelFailed(EnrichmentNotice.MODEL_NOT_UNDERSTOOD, _format_reason(exc)) from exc

    async def _complete(self, messages: list[dict[str, str]]) -> str:
        """Send one request.

        If the endpoint does not support structured output, do without from then on.
        """
        body: dict[str, Any] = {
            "model": self._name,
            "messages": messages,
            "temperature": 0.2,
            "max_tokens": MAX_TOKENS,
            "stream": False,
        }
        shape = {
            "type": "json_schema",
            "json_schema": {"name": "description", "schema": RESPONSE_SCHEMA, "strict": True},
        }
        if self._is_structured:
            status, content = await self._post({**body, "response_format": shape})
            if status < 300:
                return _parse_content(content)
            if status not in _SCHEMA_UNSUPPORTED_STATUSES:
                raise ModelFailed(EnrichmentNotice.MODEL_UNAVAILABLE, f"status {status}")
        status, content = await self._post(body)
        if status >= 300:
            raise ModelFailed(EnrichmentNotice.MODEL_UNAVAILABLE, f"status {status}")
        self._is_structured = False
        return _parse_content(content)

    async def _post(self, body: dict[str, Any]) -> tuple[int, bytes]:
        """Return the status and the body, which is limited in size."""
        async with self._http.stream("POST", "chat/completions", json=body) as response:
            read = bytearray()
            with contextlib.suppress(httpx.StreamClosed):
                async for piece in response.aiter_bytes():
                    read += piece
                    if len(read) > MAX_RESPONSE_BYTES:
                        raise ModelFailed(
                            EnrichmentNotice.MODEL_NOT_UNDERSTOOD, "the response is too long"
                        )
            return response.status_code, bytes(read)


def _parse_content(body: bytes) -> str:
    try:
        content = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as exc:
        raise ModelFailed(EnrichmentNotice.MODEL_NOT_UNDERSTOOD, "not a chat completion") from exc
    if not isinstance(content, str):
        raise ModelFailed(EnrichmentNotice.MODEL_NOT_UNDERSTOOD, "no text in the response")
    return content


def _build_proposal(
    description: ModelDescription, background: UserBackground
) -> EnrichmentProposal:
    """Use the user's own names for tags, and leave out those they have rejected."""
    tags: dict[str, SuggestedTag] = {}
    for tag in description.tags:
        name = background.aliases.get(personal_key(tag), tag)
        key = personal_key(name)
        if key in background.unwanted or key in tags:
            continue
        known = key in background.vocabulary
        confidence = KNOWN_TAG_CONFIDENCE if known else NEW_TAG_CONFIDENCE
        reason = AI_KNOWN_REASON if known else AI_NEW_REASON
        tags[key] = SuggestedTag(
            background.vocabulary.get(key, name), confidence, reason, SuggestionSource.AI
        )
    return EnrichmentProposal(
        description.title, description.summary, list(tags.values()), Enrichment.AI
    )


def _format_reason(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(
            f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors()[:5]
        )
    return str(error)
