"""Types shared by all request and response schemas."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
)

from refract.core.errors import FieldError
from refract.core.ids import MAX_ID


def parse_id(value: Any) -> int:
    """Parse a Snowflake from its text; raise `ValueError` for anything else."""
    text = str(value)
    if isinstance(value, bool) or not (
        text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= MAX_ID
    ):
        problem = "An id is a whole number, written as text."
        raise ValueError(problem)
    return int(text)


Id = Annotated[
    int,
    BeforeValidator(parse_id),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,19}$", "examples": ["361890234523648"]}),
]
"""A Snowflake: a number in Python, decimal text in JSON, since JavaScript cannot represent it."""


_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _check_rfc3339(value: Any) -> Any:
    """Require text with an offset: a bare number could mean seconds or milliseconds."""
    if isinstance(value, datetime) or (
        isinstance(value, str) and _RFC_3339.fullmatch(value.strip())
    ):
        return value
    problem = "Write the time as RFC 3339 with its offset, such as 2030-01-31T12:00:00Z."
    raise ValueError(problem)


def _to_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as exc:
        problem = "This moment is beyond every calendar."
        raise ValueError(problem) from exc


Timestamp = Annotated[
    AwareDatetime,
    BeforeValidator(_check_rfc3339),
    AfterValidator(_to_utc),
    Field(examples=["2030-01-31T12:00:00Z"]),
]
"""A moment, converted to UTC."""


class InputSchema(BaseModel):
    """A request body. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


class OutputSchema(BaseModel):
    """A response, readable from a row."""

    model_config = ConfigDict(from_attributes=True, defer_build=True)


def list_schema_errors(error: ValidationError) -> list[FieldError]:
    """Return one message per invalid field."""
    return [
        FieldError(
            ".".join(map(str, detail["loc"])), _format_message(detail["type"], detail["msg"])
        )
        for detail in error.errors()
    ]


def _format_message(kind: str, message: str) -> str:
    if kind in ("missing", "extra_forbidden"):
        return "This field is needed." if kind == "missing" else "There is no such field."
    return f"{message.removeprefix('Value error, ').rstrip('.')}."
