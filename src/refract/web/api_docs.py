"""The OpenAPI document as a page: sections, operations, described fields, a curl example."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from refract.web.problems import MEDIA_TYPE
from refract.web.schema_examples import make_example, resolve_schema

DocumentJson = dict[str, Any]
_TYPE_NAMES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "null": "null",
}


@dataclass(frozen=True)
class ApiField:
    """A parameter, or a member of a body."""

    name: str
    place: str
    kind: str
    required: bool
    description: str


@dataclass(frozen=True)
class ApiError:
    """An error that an operation can respond with."""

    status: str
    code: str
    sentence: str


@dataclass(frozen=True)
class ApiOperation:
    """An operation of the API."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    scope: str | None
    is_open: bool
    fields: list[ApiField]
    answers: list[tuple[str, str, str]]
    refusals: list[ApiError]
    curl: str


@dataclass(frozen=True)
class ApiSection:
    """The operations of a tag."""

    name: str
    description: str
    operations: list[ApiOperation]


def build_sections(document: DocumentJson) -> list[ApiSection]:
    """Return the sections of the document, in the order of its tags."""
    found = {
        tag["name"]: ApiSection(tag["name"], tag["description"], []) for tag in document["tags"]
    }
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found[operation["tags"][0]].operations.append(
                _build_operation(document, path, method.upper(), operation)
            )
    return list(found.values())


def _build_operation(
    document: DocumentJson, path: str, method: str, operation: DocumentJson
) -> ApiOperation:
    schemas = document["components"]["schemas"]
    description = operation.get("description", "")
    ways = [way for way in operation.get("security", ()) if way]
    return ApiOperation(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description="" if description.rstrip(".") == operation["summary"] else description,
        scope=next((scope for way in ways for scopes in way.values() for scope in scopes), None),
        is_open=not ways or {} in operation["security"],
        fields=[*_iter_parameters(operation, schemas), *_iter_members(operation, schemas)],
        answers=[
            (
                status,
                response["description"],
                _format_example(
                    response.get("content", {}).get("application/json", {}).get("example")
                ),
            )
            for status, response in operation["responses"].items()
            if status < "400"
        ],
        refusals=list(_iter_errors(operation, document["components"]["examples"])),
        curl=_build_curl(document["servers"][0]["url"], path, method, operation, schemas),
    )


def _iter_parameters(operation: DocumentJson, schemas: DocumentJson) -> Iterator[ApiField]:
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        described = parameter.get("description") or schema.get("description", "")
        yield ApiField(
            parameter["name"],
            parameter["in"],
            describe_schema(schema, schemas),
            parameter.get("required", False),
            described,
        )


def _iter_members(operation: DocumentJson, schemas: DocumentJson) -> Iterator[ApiField]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        schema = resolve_schema(body["schema"], schemas)
        for name, inner in schema.get("properties", {}).items():
            described = (
                resolve_schema(inner, schemas).get("description", "") if "$ref" not in inner else ""
            )
            yield ApiField(
                name,
                "body",
                describe_schema(inner, schemas),
                name in schema.get("required", ()),
                described,
            )


def _iter_errors(operation: DocumentJson, examples: DocumentJson) -> Iterator[ApiError]:
    for status, response in operation["responses"].items():
        for code in response.get("content", {}).get(MEDIA_TYPE, {}).get("examples", {}):
            yield ApiError(status, code, strip_placeholders(examples[code]["summary"]))


def strip_placeholders(template: str) -> str:
    """Return an error's template with `…` for its placeholders."""
    return re.sub(r"{\w+}", "…", template)


def describe_schema(schema: DocumentJson, schemas: DocumentJson) -> str:
    """Describe the values that a JSON schema allows, in words."""
    real = resolve_schema(schema, schemas)
    nullable = any(option.get("type") == "null" for option in schema.get("anyOf", ()))
    return _describe_type(real, schemas) + (" or null" if nullable else "")


def _describe_type(schema: DocumentJson, schemas: DocumentJson) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    if schema.get("type") == "array":
        return (
            "list of"
            f" {describe_schema(schema.get('items', {}), schemas)}"
            f"{_describe_bounds(schema, 'minItems', 'maxItems', '')}"
        )
    if schema.get("format") == "date-time":
        return "date and time"
    if schema.get("type") == "string":
        return "text" + _describe_bounds(schema, "minLength", "maxLength", " characters")
    return _TYPE_NAMES.get(schema.get("type", ""), "any value") + _describe_bounds(
        schema, "minimum", "maximum", ""
    )


def _describe_bounds(schema: DocumentJson, min_key: str, max_key: str, unit: str) -> str:
    low, high = schema.get(min_key), schema.get(max_key)
    if low is not None and high is not None:
        return f", {low} to {high}{unit}"
    if high is not None:
        return f", at most {high}{unit}"
    return f", at least {low}{unit}" if low else ""


def _build_curl(
    base: str, path: str, method: str, operation: DocumentJson, schemas: DocumentJson
) -> str:
    """Return a curl command. The API key is read from the environment."""
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            example = make_example(parameter["schema"], schemas)
            path = path.replace("{" + parameter["name"] + "}", str(example))
    words = ["curl"] if method == "GET" else ["curl", "-X", method]
    if operation.get("security"):
        words += ["-H", '"X-API-Key: $API_KEY"']
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        words += [
            "-H",
            "'Content-Type: application/json'",
            "-d",
            shlex.quote(json.dumps(body["example"], ensure_ascii=False)),
        ]
    return " ".join([*words, shlex.quote(base + path)])


def _format_example(example: Any) -> str:
    return "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
