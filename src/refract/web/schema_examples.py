"""Examples of operations: recorded from a run, or made from the examples of a schema's fields."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

EXAMPLES_FILE: Final = Path(__file__).with_name("api_examples.json")
SchemaJson = dict[str, Any]
_PLAIN: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "null": None,
}
_FORMATS = {
    "date-time": "2026-06-01T12:00:00Z",
    "date": "2026-06-01",
    "uri": "https://example.com/",
}


@cache
def load_examples() -> dict[str, SchemaJson]:
    """Return the recorded call of each operation: path, request, status and response."""
    found: dict[str, SchemaJson] = json.loads(EXAMPLES_FILE.read_bytes())
    return found


def make_example(schema: SchemaJson, schemas: SchemaJson) -> Any:
    """Return the schema's example, its default, or one made from its parts.

    Optional fields without an example are left out.
    """
    schema = resolve_schema(schema, schemas)
    if schema.get("examples"):
        return schema["examples"][0]
    for member in ("example", "const", "default"):
        if schema.get(member) is not None:
            return schema[member]
    if schema.get("enum"):
        return schema["enum"][0]
    if "properties" in schema:
        return _make_object_example(schema, schemas)
    if schema.get("type") == "array":
        return [make_example(schema.get("items", {}), schemas)]
    return _FORMATS.get(schema.get("format", ""), _PLAIN.get(schema.get("type", ""), {}))


def resolve_schema(schema: SchemaJson, schemas: SchemaJson) -> SchemaJson:
    """Return the schema behind references and "or null", with the keywords beside them."""
    for member in ("anyOf", "oneOf", "allOf"):
        if real := [option for option in schema.get(member, ()) if option.get("type") != "null"]:
            beside = {
                name: value
                for name, value in schema.items()
                if name not in (member, "title", "default")
            }
            return {**resolve_schema(real[0], schemas), **beside}
    if reference := schema.get("$ref"):
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        return {**resolve_schema(schemas[reference.rsplit("/", 1)[1]], schemas), **beside}
    return schema


def _make_object_example(schema: SchemaJson, schemas: SchemaJson) -> SchemaJson:
    required = schema.get("required", ())
    shown = {
        name: inner
        for name, inner in schema["properties"].items()
        if name in required or resolve_schema(inner, schemas).get("examples")
    }
    return {
        name: make_example(inner, schemas)
        for name, inner in (shown or schema["properties"]).items()
    }
