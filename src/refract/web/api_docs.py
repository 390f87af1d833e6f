"""The OpenAPI document as a page: sections, operations, described fields, calls in languages."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from refract.web.api_snippets import ApiCall
from refract.web.problems import MEDIA_TYPE
from refract.web.schema_examples import load_examples, make_example, resolve_schema

DocumentJson = dict[str, Any]
_PLACE_ORDER = ("path", "query", "body", "header")
_METHOD_ORDER = ("POST", "GET", "PUT", "PATCH", "DELETE")
_PLURALS = {
    "text": "texts",
    "whole number": "whole numbers",
    "number": "numbers",
    "object": "objects",
    "date and time": "times",
}
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
    """Errors that only some operations have."""
    snippets: dict[str, str]

    @property
    def search_text(self) -> str:
        """Return the text in which a search looks."""
        fields = " ".join(field.name for field in self.fields)
        words = (self.id, self.method, self.path, self.summary, self.description, fields)
        return " ".join(words).casefold()


@dataclass(frozen=True)
class ApiSection:
    """The operations of a tag."""

    name: str
    description: str
    operations: list[ApiOperation]


@dataclass(frozen=True)
class ApiReference:
    """What the pages show of the OpenAPI document."""

    lead: str
    base_url: str
    sections: list[ApiSection]
    common_errors: list[ApiError]
    """Those that are not repeated with every operation."""


def build_reference(document: DocumentJson) -> ApiReference:
    """Return what the pages show of the document."""
    return ApiReference(
        document["info"]["description"].partition("\n")[0],
        document["servers"][0]["url"],
        build_sections(document),
        find_common_errors(document),
    )


def build_sections(document: DocumentJson) -> list[ApiSection]:
    """Return the sections of the document, in the order of its tags.

    Errors that most operations share are not repeated: `find_common_errors` returns them.
    """
    common = {error.code for error in find_common_errors(document)}
    found = {
        tag["name"]: ApiSection(tag["name"], tag["description"], []) for tag in document["tags"]
    }
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            built = _build_operation(document, path, method.upper(), operation)
            own = [error for error in built.refusals if error.code not in common]
            found[operation["tags"][0]].operations.append(replace(built, refusals=own))
    for section in found.values():
        section.operations.sort(key=partial(_get_rank, section.name))
    return list(found.values())


def find_common_errors(document: DocumentJson) -> list[ApiError]:
    """Return the errors that at least a third of all operations share."""
    operations = [
        operation for methods in document["paths"].values() for operation in methods.values()
    ]
    examples = document["components"]["examples"]
    counted = Counter(
        error for operation in operations for error in _iter_errors(operation, examples)
    )
    return sorted(
        (error for error, number in counted.items() if number * 3 >= len(operations)),
        key=lambda error: (error.status, error.code),
    )


def select_sections(sections: Sequence[ApiSection], q: str) -> list[ApiSection]:
    """Return the operations that contain all words of a search."""
    words = q.casefold().split()
    found = [
        replace(
            section,
            operations=[
                operation
                for operation in section.operations
                if all(word in operation.search_text for word in words)
            ],
        )
        for section in sections
    ]
    return [section for section in found if section.operations]


def _get_rank(section: str, operation: ApiOperation) -> tuple[int, int]:
    """Order a section: the collection, one object, its parts, then everything beside it.

    Within one path, creating comes first.
    """
    parts = operation.path.removeprefix("/api/v1/").split("/")
    beside = parts[0] != section or (len(parts) > 1 and not parts[1].startswith("{"))
    return (len(parts) if not beside else 9, _METHOD_ORDER.index(operation.method))


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
        fields=sorted(
            [*_iter_parameters(operation, schemas), *_iter_members(operation, schemas)],
            key=lambda field: _PLACE_ORDER.index(field.place),
        ),
        answers=list(_iter_answers(operation)),
        refusals=list(_iter_errors(operation, document["components"]["examples"])),
        snippets=_build_call(document, path, method, operation).to_snippets(),
    )


def _iter_answers(operation: DocumentJson) -> Iterator[tuple[str, str, str]]:
    """Yield successful statuses: the usual one with its example, then the others."""
    good = [(code, answer) for code, answer in operation["responses"].items() if code < "400"]
    usual = str(load_examples().get(operation["operationId"], {}).get("status", good[0][0]))
    for status, answer in sorted(good, key=lambda pair: pair[0] != usual):
        content = answer.get("content", {}).get("application/json", {})
        example = content.get("example") if status == usual else None
        yield status, answer["description"], _format_example(example)


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
        inner = describe_schema(schema.get("items", {}), schemas)
        kind, comma, bounds = inner.partition(",")
        bound = _describe_bounds(schema, "minItems", "maxItems", "")
        each = f" of{bounds}" if comma and kind in _PLURALS else f"{comma}{bounds}"
        return f"list of {_PLURALS.get(kind, kind)}{each}{bound}"
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


def _build_call(document: DocumentJson, path: str, method: str, operation: DocumentJson) -> ApiCall:
    """Return the call of an operation's example, recorded or made from its schemas."""
    schemas = document["components"]["schemas"]
    recorded = load_examples().get(operation["operationId"])
    if recorded is None:
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path":
                example = make_example(parameter["schema"], schemas)
                path = path.replace("{" + parameter["name"] + "}", str(example))
    else:
        path = recorded["path"]
    content = operation.get("requestBody", {}).get("content", {})
    success = min(status for status in operation["responses"])
    return ApiCall(
        method,
        document["servers"][0]["url"] + path,
        needs_key=bool(operation.get("security")),
        body=content.get("application/json", {}).get("example"),
        upload="bookmarks.html" if content and "application/json" not in content else None,
        is_json="application/json" in operation["responses"][success].get("content", {}),
    )


def _format_example(example: Any) -> str:
    return "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
