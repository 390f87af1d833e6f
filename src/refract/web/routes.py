"""The route class of the API: strict JSON at the door, busy databases tried again, POSTs that can be repeated."""

import asyncio
import json
import random
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from refract.core.errors import StoreBusy
from refract.web.idempotency import answer_once
from refract.web.problems import MalformedBody

_TRIES = 3
_DEEPEST = 32

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class StrictRequest(Request):
    """JSON as RFC 8259 has it: UTF-8, no NaN, no NUL, no lone surrogates, not deeper than we ever need."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = parse_json(await self.body())
        return self._json


def parse_json(body: bytes) -> Any:
    """The value, or `MalformedBody` with the reason."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as wrong:
        raise MalformedBody(why="it is not UTF-8.") from wrong
    except RecursionError as wrong:
        raise MalformedBody(why=f"it is nested deeper than {_DEEPEST} levels.") from wrong
    except json.JSONDecodeError as wrong:
        raise MalformedBody(why=f"{wrong.msg} at line {wrong.lineno}, column {wrong.colno}.") from wrong
    except ValueError as wrong:
        raise MalformedBody(why=str(wrong)) from wrong
    _inspect(value, 0)
    return value


def _refuse_constant(name: str) -> None:
    problem = f"{name} is not a JSON value."
    raise ValueError(problem)


def _inspect(value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        raise MalformedBody(why=f"it is nested deeper than {_DEEPEST} levels.")
    if isinstance(value, str):
        if not clean_text(value):
            raise MalformedBody(why="it contains U+0000 or half of a surrogate pair.")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _inspect(name, depth + 1)
            _inspect(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _inspect(inner, depth + 1)


def clean_text(text: str) -> bool:
    """Whether every database can keep this text as it is."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


class ApiRoute(APIRoute):
    """Every route of the API. An endpoint opens its transaction with `rt.db.write()` and knows nothing of this."""

    def get_route_handler(self) -> Handler:
        endpoint = super().get_route_handler()
        secret_fields = frozenset((self.openapi_extra or {}).get("x-secret-fields", ()))

        async def handle(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            for attempt in range(1, _TRIES + 1):
                try:
                    if request.method == "POST" and "idempotency-key" in request.headers:
                        return await answer_once(strict, endpoint, secret_fields)
                    return await endpoint(strict)
                except StoreBusy:
                    if attempt == _TRIES:
                        raise
                    await asyncio.sleep(random.uniform(0.01, 0.05) * attempt)  # noqa: S311 - jitter, not a secret
            raise AssertionError

        return handle
