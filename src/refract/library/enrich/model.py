"""The model tier: any endpoint that speaks OpenAI's chat completions. Whatever it does, an item is described in the end."""

import asyncio
import contextlib
import json
from typing import Any

import httpx
import structlog
from pydantic import ValidationError

from refract.core.runtime import Runtime
from refract.library.enrich.material import Background, Material, Proposal, Suggested
from refract.library.enrich.prompt import ANSWER_SHAPE, Described, messages, read_answer, repair
from refract.library.models import Enrichment, SuggestionSource
from refract.library.notes import Note
from refract.tags.grammar import personal_key

MOST_ANSWER = 256 * 1024
MOST_TOKENS = 500
KNOWN_CONFIDENCE = 0.75
NEW_CONFIDENCE = 0.55
_NO_SCHEMA = (400, 404, 415, 422, 500, 501)


class ModelFailed(Exception):
    """The model gave nothing of use; `note` says how, and the offline tier's word stands."""

    def __init__(self, note: Note, detail: str = "") -> None:
        super().__init__(detail)
        self.note = note


class Model:
    """The client. One per process, with so many questions at a time as the operator allows."""

    def __init__(self, rt: Runtime) -> None:
        settings = rt.settings
        key = settings.model_key.get_secret_value() if settings.model_key else None
        self._http = httpx.AsyncClient(
            base_url=f"{settings.model_url}/",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=settings.model_timeout_seconds,
            follow_redirects=False,
            trust_env=False,
        )
        self._name = settings.model_name
        self._seconds = settings.model_timeout_seconds
        self._places = asyncio.Semaphore(settings.model_concurrency)
        self._structured = True
        self._log = structlog.get_logger("refract.library")

    @property
    def busy(self) -> bool:
        """Whether whoever asks now would have to wait for a place."""
        return self._places.locked()

    async def close(self) -> None:
        await self._http.aclose()

    async def describe(self, material: Material, background: Background) -> Proposal:
        """A better proposal than the offline one, or `ModelFailed`. Waiting for a place does not count against the time."""
        async with self._places:
            try:
                async with asyncio.timeout(self._seconds):
                    answer = await self._described(messages(material, background))
            except (TimeoutError, httpx.TimeoutException) as slow:
                raise ModelFailed(Note.MODEL_TOO_SLOW, type(slow).__name__) from slow
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as down:
                raise ModelFailed(Note.MODEL_UNAVAILABLE, f"{type(down).__name__}: {down}"[:300]) from down
        return _proposal(answer, background)

    async def _described(self, asked: list[dict[str, str]]) -> Described:
        said = await self._say(asked)
        try:
            return read_answer(said)
        except ValueError as wrong:
            why = _why(wrong)
        try:
            return read_answer(await self._say(repair(asked, said, why)))
        except ValueError as wrong:
            raise ModelFailed(Note.MODEL_NOT_UNDERSTOOD, _why(wrong)) from wrong

    async def _say(self, asked: list[dict[str, str]]) -> str:
        """One turn. An endpoint that does not know structured answers is asked without them from then on."""
        body: dict[str, Any] = {"model": self._name, "messages": asked, "temperature": 0.2, "max_tokens": MOST_TOKENS, "stream": False}
        shape = {"type": "json_schema", "json_schema": {"name": "description", "schema": ANSWER_SHAPE, "strict": True}}
        if self._structured:
            status, content = await self._post({**body, "response_format": shape})
            if status < 300:
                return _content(content)
            if status not in _NO_SCHEMA:
                raise ModelFailed(Note.MODEL_UNAVAILABLE, f"status {status}")
        status, content = await self._post(body)
        if status >= 300:
            raise ModelFailed(Note.MODEL_UNAVAILABLE, f"status {status}")
        self._structured = False
        return _content(content)

    async def _post(self, body: dict[str, Any]) -> tuple[int, bytes]:
        """Status and body, of which no more is read than an answer can have."""
        async with self._http.stream("POST", "chat/completions", json=body) as response:
            read = bytearray()
            with contextlib.suppress(httpx.StreamClosed):
                async for piece in response.aiter_bytes():
                    read += piece
                    if len(read) > MOST_ANSWER:
                        raise ModelFailed(Note.MODEL_NOT_UNDERSTOOD, "the answer never ends")
            return response.status_code, bytes(read)


def _content(body: bytes) -> str:
    try:
        said = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as wrong:
        raise ModelFailed(Note.MODEL_NOT_UNDERSTOOD, "not a chat completion") from wrong
    if not isinstance(said, str):
        raise ModelFailed(Note.MODEL_NOT_UNDERSTOOD, "no text in the answer")
    return said


def _proposal(answer: Described, background: Background) -> Proposal:
    """Tags by the names they have here; what the person has refused is left out."""
    tags: dict[str, Suggested] = {}
    for said in answer.tags:
        name = background.aliases.get(personal_key(said), said)
        key = personal_key(name)
        if key in background.unwanted or key in tags:
            continue
        known = key in background.vocabulary
        confidence = KNOWN_CONFIDENCE if known else NEW_CONFIDENCE
        reason = "the model chose it from your tags" if known else "proposed by the model"
        tags[key] = Suggested(background.vocabulary.get(key, name), confidence, reason, SuggestionSource.AI)
    return Proposal(answer.title, answer.summary, list(tags.values()), Enrichment.AI)


def _why(wrong: ValueError) -> str:
    if isinstance(wrong, ValidationError):
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in wrong.errors()[:5])
    return str(wrong)
