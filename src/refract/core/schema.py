"""The shapes that every body and answer share."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from refract.core.ids import MAX_ID


def read_id(value: Any) -> int:
    """A Snowflake from its text; `ValueError` for anything else."""
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= MAX_ID):
        problem = "An id is a whole number, written as text."
        raise ValueError(problem)
    return int(text)


Id = Annotated[
    int,
    BeforeValidator(read_id),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,19}$", "examples": ["361890234523648"]}),
]
"""A Snowflake: a number in Python, decimal text in JSON, since JavaScript cannot hold it."""


def _written_out(value: Any) -> Any:
    if not isinstance(value, str | datetime) or (isinstance(value, str) and "T" not in value.upper()):
        problem = "Write a moment as RFC 3339 has it, with date, time and zone, such as 2030-12-31T18:00:00Z."
        raise ValueError(problem)
    return value


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as wrong:
        problem = "This moment is beyond every calendar."
        raise ValueError(problem) from wrong


When = Annotated[AwareDatetime, BeforeValidator(_written_out), AfterValidator(_in_utc), Field(examples=["2030-12-31T18:00:00Z"])]
"""A moment that somebody sends: RFC 3339 with a zone. Bare numbers, which could be anything, are refused."""


class Input(BaseModel):
    """A body. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Output(BaseModel):
    """An answer, readable from a row."""

    model_config = ConfigDict(from_attributes=True)
