"""The route classes: strict bodies at the door, busy databases tried again, and for the API POSTs that can be repeated."""

import asyncio
import json
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from fastapi import params
from fastapi.routing import APIRoute
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, compile_path
from starlette.types import Scope

from refract.core.errors import StoreBusy
from refract.web.idempotency import answer_once
from refract.web.problems import MalformedBody, UnsupportedMedia

_TRIES = 3
_DEEPEST = 32
_UNCLEAN = "it contains U+0000 or half of a surrogate pair."

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class StrictRequest(Request):
    """JSON as RFC 8259 has it: UTF-8, no NaN, no NUL, no lone surrogates, not deeper than we ever need. Forms likewise."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = parse_json(await self.body())
        return self._json

    async def _get_form(self, **limits: Any) -> FormData:
        form = await super()._get_form(**limits)
        if not all(clean_text(text) for pair in form.multi_items() for text in pair if isinstance(text, str)):
            raise MalformedBody(why=_UNCLEAN)
        return form

    def has_json(self) -> bool:
        """Whether the body claims to be JSON, in any of the spellings of that."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


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
        raise MalformedBody(why="a number in it has too many digits.") from wrong
    _inspect(value, 0)
    return value


def _refuse_constant(name: str) -> None:
    raise MalformedBody(why=f"{name} is not a JSON value.")


def _inspect(value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        raise MalformedBody(why=f"it is nested deeper than {_DEEPEST} levels.")
    if isinstance(value, str):
        if not clean_text(value):
            raise MalformedBody(why=_UNCLEAN)
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


class PageRoute(APIRoute):
    """Every route that people's browsers use. An endpoint opens its transaction with `rt.db.write()` and knows nothing of this.

    The framework analyses a route when somebody first asks for it: to analyse all of them takes a quarter of a start.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        words = given | {"operation_id": given.get("operation_id") or endpoint.__name__}
        self.path, self.endpoint = path, endpoint
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.methods = {method.upper() for method in given.get("methods") or ("GET",)}
        self._analyse = partial(super().__init__, path, endpoint, **words)

    def __getattr__(self, name: str) -> Any:
        """Asked for whatever only the analysis knows, of a route that is not analysed yet."""
        if name.startswith("__") or self.__dict__.get("_analyse") is None:
            raise AttributeError(name)
        self.__dict__.pop("_analyse")()
        return getattr(self, name)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """An address that is written out (`/links/bulk`) is never a parameter's value (`/links/{link_id}`), whatever the method."""
        if self.param_convertors and scope["path"] in getattr(scope["app"].state, "literal_paths", ()):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Handler:
        answer = self.answer_with(super().get_route_handler())

        async def handle(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            for attempt in range(1, _TRIES + 1):
                try:
                    return await answer(strict)
                except StoreBusy:
                    if attempt == _TRIES:
                        raise
                    await asyncio.sleep(random.uniform(0.01, 0.05) * attempt)  # noqa: S311 - jitter, not a secret
            raise AssertionError

        return handle

    def answer_with(self, endpoint: Handler) -> Callable[[StrictRequest], Coroutine[Any, Any, Response]]:
        return endpoint


class ApiRoute(PageRoute):
    """Every route of the API: bodies are JSON, and a POST with an Idempotency-Key is done once."""

    def answer_with(self, endpoint: Handler) -> Callable[[StrictRequest], Coroutine[Any, Any, Response]]:
        secret_fields = frozenset((self.openapi_extra or {}).get("x-secret-fields", ()))
        wants_json = self.body_field is not None and not isinstance(self.body_field.field_info, params.Form)

        async def answer(request: StrictRequest) -> Response:
            if wants_json and not request.has_json() and await request.body():
                raise UnsupportedMedia
            if request.method == "POST" and "idempotency-key" in request.headers:
                return await answer_once(request, endpoint, secret_fields)
            return await endpoint(request)

        return answer
