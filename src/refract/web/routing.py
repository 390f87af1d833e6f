"""Route classes: bounded, strictly parsed bodies, read after authorization; idempotent POSTs."""

import asyncio
import json
import random
import re
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Final, TypeVar

from fastapi import params
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, compile_path
from starlette.types import Message, Scope

from refract.core.errors import FieldError, StoreBusy
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.core.threads import WorkThreadPool
from refract.limits.shared_limits import SharedLimit
from refract.web.cached_document import revalidate
from refract.web.csrf import SAFE_METHODS
from refract.web.formats import prepare_language
from refract.web.i18n import ENGLISH, Locale, negotiate, use_locale
from refract.web.idempotency import run_once
from refract.web.networks import client_network
from refract.web.problems import BodyTooLarge, MalformedBody, UnsupportedMediaType, ValidationFailed

_MAX_TRIES = 3
_MAX_DEPTH = 32
_UNCLEAN_MESSAGE = "it contains U+0000 or half of a surrogate pair."
_LARGE: Final = "_has_large_body"
_LARGE_RESPONSE: Final = "_has_large_response"
_READ_ONLY: Final = "_is_read_only"
MAX_MEMBERS: Final = 1000
"""Members of all objects in an ordinary body: each unknown one would become an error."""
MAX_LARGE_MEMBERS: Final = 20_000
"""The same for a large body of up to 1,000 rows. Validation runs on the event loop."""

RouteHandler = Callable[[Request], Coroutine[Any, Any, Response]]
EndpointT = TypeVar("EndpointT", bound=Callable[..., Any])


def large_body(endpoint: EndpointT) -> EndpointT:
    """Mark an endpoint that takes bodies up to `max_body_bytes`, for signed-in callers."""
    setattr(endpoint, _LARGE, True)
    return endpoint


def large_response(endpoint: EndpointT) -> EndpointT:
    """Mark an endpoint whose response may be too long to store for an Idempotency-Key."""
    setattr(endpoint, _LARGE_RESPONSE, True)
    return endpoint


def read_only(endpoint: EndpointT) -> EndpointT:
    """Mark a POST endpoint that changes nothing and takes no Idempotency-Key."""
    setattr(endpoint, _READ_ONLY, True)
    return endpoint


def iter_dependency_calls(dependant: Dependant) -> Iterator[Callable[..., Any]]:
    """Yield every function that an endpoint depends on, recursively."""
    for inner in dependant.dependencies:
        if inner.call is not None:
            yield inner.call
        yield from iter_dependency_calls(inner)


class RouteBody:
    """The body of a request, limited by its route and its caller."""

    def __init__(self, request: Request, *, large: bool) -> None:
        self._request = request
        self._receive = request.receive
        self._large = large
        self._read = 0

    @property
    def limit(self) -> int:
        settings = self._request.app.state.rt.settings
        known = "actor" in self._request.scope["state"]
        return int(settings.max_body_bytes if self._large and known else settings.max_json_bytes)

    def check_length(self) -> None:
        """Reject a body whose Content-Length is too large, before reading it."""
        announced = self._request.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > self.limit:
            raise BodyTooLarge(limit=self.limit)

    async def __call__(self) -> Message:
        message = await self._receive()
        self._read += len(message.get("body", b""))
        if self._read > self.limit:
            raise BodyTooLarge(limit=self.limit)
        return message


class StrictRequest(Request):
    """A request with strict JSON (RFC 8259): UTF-8, no NaN, NUL or lone surrogates, limited depth.

    Forms are checked likewise.
    """

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            body, rt = await self.body(), _get_runtime(self)
            large = len(body) > rt.settings.max_json_bytes
            self._json = (
                await rt.singleton(WorkThreadPool).run(parse_json, body, MAX_LARGE_MEMBERS)
                if large
                else parse_json(body, MAX_MEMBERS)
            )
        return self._json

    async def _get_form(self, **limits: Any) -> FormData:
        form = await super()._get_form(**limits)
        if not all(
            is_clean_text(text)
            for pair in form.multi_items()
            for text in pair
            if isinstance(text, str)
        ):
            raise MalformedBody(why=_UNCLEAN_MESSAGE)
        return form

    def has_json(self) -> bool:
        """Return whether Content-Type is any spelling of JSON."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return kind == "application/json" or (
            kind.startswith("application/") and kind.endswith("+json")
        )


def parse_json(body: bytes, max_members: int | None = None) -> Any:
    """Return the parsed value. Raises `MalformedBody` with the reason."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as exc:
        raise MalformedBody(why="it isn't UTF-8.") from exc
    except RecursionError as exc:
        raise MalformedBody(why=f"it is nested deeper than {_MAX_DEPTH} levels.") from exc
    except json.JSONDecodeError as exc:
        raise MalformedBody(why=f"{exc.msg} at line {exc.lineno}, column {exc.colno}.") from exc
    except ValueError as exc:
        raise MalformedBody(why="a number in it has too many digits.") from exc
    # Unclean text needs escapes, levels need brackets and members colons: most bodies have too few
    # of them to be inspected.
    many = max_members is not None and body.count(b":") > max_members
    if many or b"\\u" in body or body.count(b"[") + body.count(b"{") > _MAX_DEPTH:
        _JsonInspector(max_members).inspect(value, 0)
    return value


def _refuse_constant(name: str) -> None:
    raise MalformedBody(why=f"{name} isn't a JSON value.")


class _JsonInspector:
    """Checks the depth, the number of members and the texts of a parsed body."""

    def __init__(self, max_members: int | None) -> None:
        self._max_members = max_members
        self._members = 0

    def inspect(self, value: Any, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise MalformedBody(why=f"it is nested deeper than {_MAX_DEPTH} levels.")
        if isinstance(value, str):
            if not is_clean_text(value):
                raise MalformedBody(why=_UNCLEAN_MESSAGE)
        elif isinstance(value, dict):
            self._members += len(value)
            if self._max_members is not None and self._members > self._max_members:
                raise MalformedBody(why=f"it has more than {self._max_members} members.")
            for name, inner in value.items():
                self.inspect(name, depth + 1)
                self.inspect(inner, depth + 1)
        elif isinstance(value, list):
            for inner in value:
                self.inspect(inner, depth + 1)


_unclean = re.compile("[\x00\ud800-\udfff]").search


def is_clean_text(text: str) -> bool:
    """Return whether every database can store a text unchanged."""
    return _unclean(text) is None


class PageRoute(APIRoute):
    """A route of pages and forms. An endpoint opens its transaction with `rt.db.write()`.

    A route is analysed on its first request: analysing all of them takes a quarter of a start.
    """

    translated = True
    """Whether responses are in the user's language."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        words = given | {"operation_id": given.get("operation_id") or endpoint.__name__}
        self.path, self.endpoint = path, endpoint
        self.large_body = getattr(endpoint, _LARGE, False)
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self._path_head = path.partition("{")[0]
        self.methods = {method.upper() for method in given.get("methods") or ("GET",)}
        self._analyse = partial(super().__init__, path, endpoint, **words)

    def __getattr__(self, name: str) -> Any:
        """Analyse the route when an attribute of the analysis is first read."""
        if name.startswith("__") or self.__dict__.get("_analyse") is None:
            raise AttributeError(name)
        self.__dict__.pop("_analyse")()
        return getattr(self, name)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a path. A literal one (`/links/bulk`) is never a parameter (`/links/{link_id}`)."""
        path: str = scope["path"]
        if not path.startswith(self._path_head):  # most routes, without their regular expression
            return Match.NONE, {}
        if self.param_convertors and path in getattr(scope["app"].state, "literal_paths", ()):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> RouteHandler:
        answer = self.wrap_handler(super().get_route_handler())
        calls = frozenset(iter_dependency_calls(self.dependant))

        async def handle(request: Request) -> Response:
            body = RouteBody(request, large=self.large_body)
            strict = StrictRequest(request.scope, body)
            request.scope.setdefault("state", {})["translated"] = self.translated
            try:
                with use_locale(await self._negotiate_language(request)):
                    if request.method not in SAFE_METHODS:
                        await _authorize_before_body(strict, calls)
                        body.check_length()
                    return await retry_when_busy(partial(answer, strict))
            finally:
                await (
                    strict.close()
                )  # files of a form, which may have been read for its CSRF token only

        return handle

    async def _negotiate_language(self, request: Request) -> Locale:
        if not self.translated:
            return ENGLISH
        locale = negotiate(request.headers.get("accept-language", ""))
        await prepare_language(locale, _get_runtime(request))
        return locale

    def wrap_handler(
        self, endpoint: RouteHandler
    ) -> Callable[[StrictRequest], Coroutine[Any, Any, Response]]:
        return endpoint


async def retry_when_busy(attempt: Callable[[], Coroutine[Any, Any, Response]]) -> Response:
    """Retry a few times while the database is busy."""
    for number in range(1, _MAX_TRIES):
        try:
            return await attempt()
        except StoreBusy:
            await asyncio.sleep(random.uniform(0.01, 0.05) * number)  # noqa: S311 - jitter
    return await attempt()


async def _authorize_before_body(request: Request, calls: frozenset[Callable[..., Any]]) -> None:
    """Reject a caller before reading the body. Anonymous bodies count for their network's limit."""
    rt = _get_runtime(request)
    known = await request.app.state.admit(request, rt, calls)
    has_body = (
        request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    )
    if has_body and not known:
        await rt.singleton(create_anonymous_body_limit).charge(client_network(request, rt))


def create_anonymous_body_limit(rt: Runtime) -> SharedLimit:
    """Return the limit of bodies that clients without an account may send from one network."""
    return SharedLimit(
        rt,
        "stranger-body",
        rt.settings.stranger_bodies_per_minute,
        per=Phrase("per minute and network"),
    )


def _get_runtime(request: Request) -> Runtime:
    rt: Runtime = request.app.state.rt
    return rt


class ApiRoute(PageRoute):
    """A route of the API: bodies are JSON, and a POST with an Idempotency-Key is run once."""

    translated = False

    @property
    def takes_json(self) -> bool:
        return self.body_field is not None and not isinstance(
            self.body_field.field_info, params.Form
        )

    @property
    def large_response(self) -> bool:
        return getattr(self.endpoint, _LARGE_RESPONSE, False)

    @property
    def repeatable_methods(self) -> frozenset[str]:
        """Return the methods for which an Idempotency-Key works."""
        return frozenset() if getattr(self.endpoint, _READ_ONLY, False) else frozenset({"POST"})

    def wrap_handler(
        self, endpoint: RouteHandler
    ) -> Callable[[StrictRequest], Coroutine[Any, Any, Response]]:
        secret_fields = frozenset((self.openapi_extra or {}).get("x-secret-fields", ()))
        takes_json, repeatable = self.takes_json, self.repeatable_methods
        known = {
            field.alias
            for field in get_flat_params(self.dependant)
            if isinstance(field.field_info, params.Query)
        }

        async def respond(request: Request) -> Response:
            return revalidate(request, await endpoint(request))

        async def answer(request: StrictRequest) -> Response:
            if unknown := [name for name in request.query_params if name not in known]:
                raise ValidationFailed(
                    errors=[
                        FieldError(name[:100], Phrase("This parameter is unknown. Remove it."))
                        for name in unknown
                    ]
                )
            if takes_json and not request.has_json() and await request.body():
                raise UnsupportedMediaType
            if request.method in repeatable and "idempotency-key" in request.headers:
                return await run_once(request, respond, secret_fields)
            return await respond(request)

        return answer
