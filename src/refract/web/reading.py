"""The OpenAPI document as people read it: chapters, operations, fields in words, an example for the terminal."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from refract.web.examples import example_of, resolved
from refract.web.problems import MEDIA_TYPE

Json = dict[str, Any]
_IN_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "null": "null",
}


@dataclass(frozen=True)
class Field:
    """A parameter, or a member of a body."""

    name: str
    place: str
    kind: str
    required: bool
    description: str


@dataclass(frozen=True)
class Refusal:
    """An error that an operation may answer."""

    status: str
    code: str
    sentence: str


@dataclass(frozen=True)
class Operation:
    """One thing the API does."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    scope: str | None
    fields: list[Field]
    answers: list[tuple[str, str, str]]
    refusals: list[Refusal]
    curl: str


@dataclass(frozen=True)
class Chapter:
    """What belongs to one tag."""

    name: str
    description: str
    operations: list[Operation]


def chapters(document: Json) -> list[Chapter]:
    """The whole document, in the order of its tags."""
    found = {tag["name"]: Chapter(tag["name"], tag["description"], []) for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found[operation["tags"][0]].operations.append(_operation(document, path, method.upper(), operation))
    return list(found.values())


def _operation(document: Json, path: str, method: str, operation: Json) -> Operation:
    schemas = document["components"]["schemas"]
    description = operation.get("description", "")
    ways = [way for way in operation.get("security", ()) if way]
    return Operation(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description="" if description.rstrip(".") == operation["summary"] else description,
        scope=next((scope for way in ways for scopes in way.values() for scope in scopes), None),
        fields=[*_parameters(operation, schemas), *_members(operation, schemas)],
        answers=[
            (status, response["description"], _shown(response.get("content", {}).get("application/json", {}).get("example")))
            for status, response in operation["responses"].items()
            if status < "400"
        ],
        refusals=list(_refusals(operation)),
        curl=_curl(document["servers"][0]["url"], path, method, operation, schemas),
    )


def _parameters(operation: Json, schemas: Json) -> Iterator[Field]:
    for one in operation.get("parameters", ()):
        schema = one["schema"]
        described = one.get("description") or schema.get("description", "")
        yield Field(one["name"], one["in"], in_words(schema, schemas), one.get("required", False), described)


def _members(operation: Json, schemas: Json) -> Iterator[Field]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        schema = resolved(body["schema"], schemas)
        for name, inner in schema.get("properties", {}).items():
            described = resolved(inner, schemas).get("description", "") if "$ref" not in inner else ""
            yield Field(name, "body", in_words(inner, schemas), name in schema.get("required", ()), described)


def _refusals(operation: Json) -> Iterator[Refusal]:
    for status, response in operation["responses"].items():
        for code, example in response.get("content", {}).get(MEDIA_TYPE, {}).get("examples", {}).items():
            yield Refusal(status, code, without_facts(example["summary"]))


def without_facts(template: str) -> str:
    """An error's sentence where nothing has gone wrong yet, so there is nothing to fill in."""
    return re.sub(r"{\w+}", "…", template)


def in_words(schema: Json, schemas: Json) -> str:
    """What a value may be, for somebody who does not read JSON schemas."""
    real = resolved(schema, schemas)
    nullable = any(one.get("type") == "null" for one in schema.get("anyOf", ()))
    return _kind(real, schemas) + (" or null" if nullable else "")


def _kind(schema: Json, schemas: Json) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    if schema.get("type") == "array":
        return f"list of {in_words(schema.get('items', {}), schemas)}{_bounds(schema, 'minItems', 'maxItems', '')}"
    if schema.get("format") == "date-time":
        return "date and time"
    if schema.get("type") == "string":
        return "text" + _bounds(schema, "minLength", "maxLength", " characters")
    return _IN_WORDS.get(schema.get("type", ""), "any value") + _bounds(schema, "minimum", "maximum", "")


def _bounds(schema: Json, least: str, most: str, unit: str) -> str:
    low, high = schema.get(least), schema.get(most)
    if low is not None and high is not None:
        return f", {low} to {high}{unit}"
    if high is not None:
        return f", at most {high}{unit}"
    return f", at least {low}{unit}" if low else ""


def _curl(base: str, path: str, method: str, operation: Json, schemas: Json) -> str:
    """A command to paste into a terminal; the key comes from the environment."""
    for one in operation.get("parameters", ()):
        if one["in"] == "path":
            path = path.replace("{" + one["name"] + "}", str(example_of(one["schema"], schemas)))
    words = ["curl"] if method == "GET" else ["curl", "-X", method]
    if operation.get("security"):
        words += ["-H", '"X-API-Key: $API_KEY"']
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        words += ["-H", "'Content-Type: application/json'", "-d", shlex.quote(json.dumps(body["example"], ensure_ascii=False))]
    return " ".join([*words, shlex.quote(base + path)])


def _shown(example: Any) -> str:
    return "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
