"""The OpenAPI document: what FastAPI derives from the code, completed by what holds for every call.

A feature names its own errors with `problems(…)`. Signing in, unreadable bodies, limits, Idempotency-Key and a database that is away
are the same everywhere and are added here, so no endpoint repeats or forgets them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts

from refract.core.errors import RefractError, StoreBusy, StoreCrowded, StoreFull, StoreUnavailable
from refract.web.idempotency import AnswerTooLong, IdempotencyKeyReused, InvalidIdempotencyKey, StillRunning
from refract.web.problems import (
    MEDIA_TYPE,
    BodyTooLarge,
    MalformedAddress,
    MalformedBody,
    Problem,
    UnsupportedMedia,
    ValidationFailed,
    problems,
)
from refract.web.routing import ApiRoute, iter_dependency_calls
from refract.web.schema_examples import make_example

Json = dict[str, Any]
Errors = tuple[type[RefractError], ...]
OF_BODIES: Errors = (MalformedBody, BodyTooLarge, UnsupportedMedia)
OF_REPEATING: Errors = (InvalidIdempotencyKey, IdempotencyKeyReused, StillRunning, AnswerTooLong)
OF_STORES: Errors = (StoreUnavailable, StoreBusy, StoreCrowded, StoreFull)
EVERYWHERE: Errors = (MalformedAddress, ValidationFailed, *OF_BODIES, *OF_REPEATING, *OF_STORES)
"""Errors that no endpoint names, since they are not its own."""
ANSWERS = {
    "200": "The answer",
    "201": "Made; the answer holds it",
    "202": "Accepted; it is done soon",
    "204": "Done; there is nothing to say",
}
METHODS = ("get", "put", "post", "patch", "delete")

HEADERS: Json = {
    "X-Request-Id": {"description": "Names this request in the logs.", "required": True, "schema": {"type": "string"}},
    "Retry-After": {"description": "Seconds after which to try again.", "schema": {"type": "string", "pattern": "^[0-9]+$"}},
    "WWW-Authenticate": {"description": "How to prove who one is.", "required": True, "schema": {"type": "string"}},
}
_HEADERS_BY_STATUS = {"401": "WWW-Authenticate", "429": "Retry-After"}

IDEMPOTENCY_KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Makes the call safe to repeat for 24 hours: the same key with the same request gets the same answer.",
    "schema": {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$", "examples": ["7f3c1e52"]},
}


@dataclass(frozen=True)
class Guard:
    """What an endpoint asks of its caller: the scope (None: nothing in particular), and the errors that follow from asking."""

    scope: str | None
    optional: bool
    errors: Errors


GuardOf = Callable[[Iterable[Callable[..., Any]], str], Guard | None]
"""From the dependencies of an endpoint and its method to its guard; identity knows."""


def describe(api: FastAPI, *, public_url: str, guard_of: GuardOf, security_schemes: Json, tags: dict[str, str]) -> Json:
    """The whole document."""
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
    for route, method, operation in _operations(api, document):
        _complete(operation, route, guard_of(iter_dependency_calls(route.dependant), method), method)
        _give_examples(operation, schemas)
    used = {tag for path in document["paths"].values() for operation in path.values() for tag in operation.get("tags", ())}
    document["tags"] = [{"name": name, "description": words} for name, words in tags.items() if name in used]
    return document


def _problem_schemas() -> Json:
    schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs", {}), Problem.__name__: schema}


def _operations(api: FastAPI, document: Json) -> Iterator[tuple[RouteContext, str, Json]]:
    for route in iter_route_contexts(api.routes):
        if isinstance(route.original_route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                yield route, method, document["paths"][route.path_format][method.lower()]


def _complete(operation: Json, route: RouteContext, guard: Guard | None, method: str) -> None:
    _reword(operation)
    strict = isinstance(route.original_route, ApiRoute)
    repeatable = method == "POST" and strict
    if repeatable and not any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", ())):
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    if guard is not None:
        ways = [{way: [guard.scope] if guard.scope else []} for way in ("api_key", "bearer", "session")]
        operation["security"] = [*([{}] if guard.optional else []), *ways]
    if "application/json" in operation["responses"].get("422", {}).get("content", {}):
        del operation["responses"]["422"]  # FastAPI's own shape, which nobody ever gets
    _add_problems(operation["responses"], [*_common(operation, strict=strict, repeatable=repeatable), *(guard.errors if guard else ())])
    for status, response in operation["responses"].items():
        response.setdefault("headers", {})["X-Request-Id"] = {"$ref": "#/components/headers/X-Request-Id"}
        if name := _HEADERS_BY_STATUS.get(status):
            response["headers"][name] = {"$ref": f"#/components/headers/{name}"}
    operation["responses"] = dict(sorted(operation["responses"].items()))


def _reword(operation: Json) -> None:
    """The docstring's first sentence is the summary; FastAPI would take the function's name."""
    text = " ".join(operation.get("description", "").split())
    first, dot, rest = text.partition(". ")
    operation["summary"] = first.removesuffix(".") or operation.get("summary", "")
    operation["description"] = rest if dot else text
    for status, response in operation["responses"].items():
        if response.get("description") == "Successful Response":
            response["description"] = ANSWERS.get(status, "The answer")


def _common(operation: Json, *, strict: bool, repeatable: bool) -> Iterator[type[RefractError]]:
    yield MalformedAddress
    if "requestBody" in operation:
        yield from OF_BODIES
    if strict or "requestBody" in operation or operation.get("parameters"):
        yield ValidationFailed
    if repeatable:
        yield from OF_REPEATING
    if "503" not in operation["responses"] and operation.get("security"):
        yield from OF_STORES


def _add_problems(responses: Json, errors: Sequence[type[RefractError]]) -> None:
    for number, described in problems(*errors).items():
        here = responses.setdefault(str(number), {"description": described["description"]})
        content = here.setdefault("content", {}).setdefault(MEDIA_TYPE, {**described["content"][MEDIA_TYPE], "examples": {}})
        content["examples"] = {**content.get("examples", {}), **described["content"][MEDIA_TYPE]["examples"]}


def _give_examples(operation: Json, schemas: Json) -> None:
    bodies = [operation.get("requestBody", {}), *(response for status, response in operation["responses"].items() if status < "300")]
    for content in (body.get("content", {}).get("application/json", {}) for body in bodies):
        if "schema" in content and "example" not in content and "examples" not in content:
            content["example"] = make_example(content["schema"], schemas)
