"""The OpenAPI document: FastAPI's, completed by what applies to every operation.

An endpoint names its own errors with `problems(…)`. All others follow from what its route is: the
method, the body, the parameters, the flags and the dependencies. They are derived here and nowhere
else, so no endpoint repeats or forgets one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from fastapi import FastAPI
from fastapi.dependencies.utils import get_flat_params
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts

from refract.core.errors import (
    RefractError,
    StoreAccessDenied,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreOverloaded,
    StoreUnavailable,
    VersionMismatch,
)
from refract.core.ids import ClockMovedBackwards, WorkerIdLost
from refract.core.pagination import InvalidCursor
from refract.limits.errors import TooManyOpenRequests
from refract.web.csrf import SAFE_METHODS
from refract.web.dependencies import InvalidEtag, get_runtime
from refract.web.hosts import EXEMPT_PATHS, InvalidHost, MisdirectedRequest
from refract.web.idempotency import (
    IdempotencyKeyReused,
    InvalidIdempotencyKey,
    RequestInProgress,
    ResponseTooLong,
)
from refract.web.problems import (
    MEDIA_TYPE,
    BodyTooLarge,
    MalformedBody,
    MalformedUrl,
    Problem,
    UnsupportedMediaType,
    ValidationFailed,
    problems,
)
from refract.web.routing import ApiRoute, iter_dependency_calls
from refract.web.schema_examples import load_examples, make_example

Json = dict[str, Any]
Errors = tuple[type[RefractError], ...]
Dependency = TypeVar("Dependency", bound=Callable[..., Any])

ANY_REQUEST: Final[Errors] = (MalformedUrl, InvalidHost, BodyTooLarge, TooManyOpenRequests)
"""Errors of the outermost layer: too large a body is rejected with any method."""
JSON_BODY: Final[Errors] = (MalformedBody, UnsupportedMediaType)
PARAMETERS: Final[dict[str, Errors]] = {
    "cursor": (InvalidCursor,),
    "If-Match": (InvalidEtag, VersionMismatch),
}
REPEATABLE: Final[Errors] = (InvalidIdempotencyKey, IdempotencyKeyReused, RequestInProgress)
DATABASE: Final[Errors] = (
    StoreUnavailable,
    StoreBusy,
    StoreOverloaded,
    StoreFull,
    StoreAccessDenied,
    StoreDamaged,
)
NEW_IDS: Final[Errors] = (ClockMovedBackwards, WorkerIdLost)
COMMON: Final[Errors] = (
    *ANY_REQUEST,
    MisdirectedRequest,
    ValidationFailed,
    *JSON_BODY,
    *(error for errors in PARAMETERS.values() for error in errors),
    *REPEATABLE,
    ResponseTooLong,
    *DATABASE,
    *NEW_IDS,
)
"""Errors that endpoints don't list, since they aren't their own."""
RESPONSES = {
    "200": "Success.",
    "201": "Created.",
    "202": "Accepted. The work is done in the background.",
    "204": "Success, without a body.",
}
METHODS = ("get", "put", "post", "patch", "delete")

HEADERS: Json = {
    "X-Request-Id": {
        "description": "Names this request in the logs.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds after which to try again.",
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    },
    "WWW-Authenticate": {
        "description": "How to prove who one is.",
        "required": True,
        "schema": {"type": "string"},
    },
}
_HEADERS_BY_STATUS = {"401": "WWW-Authenticate", "429": "Retry-After"}

IDEMPOTENCY_KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": (
        "Makes the call safe to repeat for 24 hours: the same key with the same request gets the"
        " same answer."
    ),
    "schema": {
        "type": "string",
        "pattern": "^[!-~]([ -~]{0,253}[!-~])?$",
        "examples": ["7f3c1e52"],
    },
}


@dataclass(frozen=True)
class Guard:
    """What a dependency requires of the caller, and the errors it raises."""

    scope: str | None = None
    required: bool = False
    """Whether callers without credentials are rejected."""
    errors: Errors = ()
    unsafe_errors: Errors = ()
    """Further errors of methods that change something."""
    anonymous_errors: Errors = ()
    """Further errors of callers without credentials, unless another guard rejects them."""
    tags: frozenset[str] = frozenset()
    untagged_errors: Errors = ()
    """Further errors of operations that have none of `tags`."""


_GUARD: Final = "_guard"


def guards(guard: Guard) -> Callable[[Dependency], Dependency]:
    """Attach requirements of the caller to a dependency."""

    def attach(dependency: Dependency) -> Dependency:
        setattr(dependency, _GUARD, guard)
        return dependency

    return attach


@dataclass(frozen=True)
class _Operation:
    """An operation of the document, with its route."""

    route: RouteContext
    method: str
    described: Json

    @property
    def api_route(self) -> ApiRoute | None:
        found = self.route.original_route
        return found if isinstance(found, ApiRoute) else None

    @property
    def is_repeatable(self) -> bool:
        return self.api_route is not None and self.method in self.api_route.repeatable_methods

    @property
    def guards(self) -> list[Guard]:
        found = (
            getattr(call, _GUARD, None) for call in iter_dependency_calls(self.route.dependant)
        )
        return [guard for guard in found if guard is not None]

    def common_errors(self) -> Iterator[type[RefractError]]:
        """Yield the errors of the operation that its endpoint doesn't list."""
        yield from ANY_REQUEST
        if self.route.path not in EXEMPT_PATHS:
            yield MisdirectedRequest
        if self.api_route is not None:
            yield ValidationFailed  # by unknown parameters, so with every operation
            yield from JSON_BODY if self.api_route.takes_json else ()
        for parameter in get_flat_params(self.route.dependant):
            yield from PARAMETERS.get(parameter.alias, ())
        if self.is_repeatable:
            yield from REPEATABLE
        if self.is_repeatable and self.api_route is not None and self.api_route.large_response:
            yield ResponseTooLong
        if get_runtime in iter_dependency_calls(self.route.dependant):
            yield from DATABASE
        yield from self._guard_errors()

    def _guard_errors(self) -> Iterator[type[RefractError]]:
        found = self.guards
        required = any(guard.required for guard in found)
        for guard in found:
            yield from guard.errors
            yield from guard.unsafe_errors if self.method not in SAFE_METHODS else ()
            yield from guard.anonymous_errors if not required else ()
            yield from guard.untagged_errors if guard.tags.isdisjoint(self.route.tags) else ()
        if found:
            yield from NEW_IDS  # a token may create its user, even with a GET

    def security(self) -> list[Json] | None:
        """Return the security schemes; None where no credential is read."""
        found = self.guards
        if not found:
            return None
        scopes = [guard.scope for guard in found if guard.scope][:1]
        anonymous: list[Json] = [] if any(guard.required for guard in found) else [{}]
        return [*anonymous, *({way: scopes} for way in ("api_key", "bearer", "session"))]


def describe(
    api: FastAPI, *, public_url: str, security_schemes: Json, tags: dict[str, str]
) -> Json:
    """Return the whole document."""
    document = get_openapi(
        title=api.title,
        version=api.version,
        openapi_version=api.openapi_version,
        summary=api.summary,
        description=api.description,
        routes=api.routes,
        servers=[{"url": public_url, "description": "This installation"}],
    )
    schemas: Json = document.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas.update(_problem_schemas())
    document["components"].update(securitySchemes=security_schemes, headers=HEADERS)
    for operation in _operations(api, document):
        _complete(operation)
        _add_examples(operation.described, schemas)
    document["components"]["examples"] = _hoist_examples(document)
    used = {
        tag
        for path in document["paths"].values()
        for operation in path.values()
        for tag in operation.get("tags", ())
    }
    document["tags"] = [
        {"name": name, "description": words} for name, words in tags.items() if name in used
    ]
    return document


def _problem_schemas() -> Json:
    schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs", {}), Problem.__name__: schema}


def _operations(api: FastAPI, document: Json) -> Iterator[_Operation]:
    for route in iter_route_contexts(api.routes):
        if isinstance(route.original_route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                yield _Operation(
                    route, method, document["paths"][route.path_format][method.lower()]
                )


def _complete(operation: _Operation) -> None:
    described = operation.described
    _reword(described)
    if operation.is_repeatable:
        described.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    if (ways := operation.security()) is not None:
        described["security"] = ways
    if "application/json" in described["responses"].get("422", {}).get("content", {}):
        del described["responses"]["422"]  # FastAPI's own schema, which is never sent
    _add_problems(described["responses"], list(operation.common_errors()))
    for status, response in described["responses"].items():
        # Errors have it in their body, too: said once, in the description of `Problem`.
        names = [] if status[0] in "45" else ["X-Request-Id"]
        if name := _HEADERS_BY_STATUS.get(status):
            names.append(name)
        for name in names:
            described_headers = response.setdefault("headers", {})
            described_headers[name] = {"$ref": f"#/components/headers/{name}"}
    described["responses"] = dict(sorted(described["responses"].items()))


def _reword(operation: Json) -> None:
    """Use the docstring's first sentence as summary, instead of the function's name."""
    text = " ".join(operation.get("description", "").split())
    first, dot, rest = text.partition(". ")
    operation["summary"] = first.removesuffix(".") or operation.get("summary", "")
    operation["description"] = rest if dot else text
    for status, response in operation["responses"].items():
        if response.get("description") == "Successful Response":
            response["description"] = RESPONSES.get(status, "Success.")


def _add_problems(responses: Json, errors: Sequence[type[RefractError]]) -> None:
    for number, described in problems(*errors).items():
        here = responses.setdefault(str(number), {"description": described["description"]})
        content = here.setdefault("content", {}).setdefault(
            MEDIA_TYPE, {**described["content"][MEDIA_TYPE], "examples": {}}
        )
        content["examples"] = {
            **content.get("examples", {}),
            **described["content"][MEDIA_TYPE]["examples"],
        }


def _hoist_examples(document: Json) -> Json:
    """Move the examples of errors to the components and return them."""
    found: Json = {}
    for path in document["paths"].values():
        for operation in path.values():
            for response in operation["responses"].values():
                content = response.get("content", {}).get(MEDIA_TYPE, {})
                found |= content.get("examples", {})
                if "examples" in content:
                    content["examples"] = {
                        code: {"$ref": f"#/components/examples/{code}"}
                        for code in content["examples"]
                    }
    return dict(sorted(found.items()))


def _add_examples(operation: Json, schemas: Json) -> None:
    """Add the recorded example of an operation, or one made from its schemas."""
    recorded = load_examples().get(operation["operationId"], {})
    good = [answer for status, answer in operation["responses"].items() if status < "300"]
    bodies = [
        (operation.get("requestBody", {}), recorded.get("request")),
        *((answer, recorded.get("response")) for answer in good),
    ]
    for body, example in bodies:
        content = body.get("content", {}).get("application/json", {})
        if "schema" in content and "example" not in content and "examples" not in content:
            made = make_example(content["schema"], schemas) if example is None else example
            content["example"] = made
