"""The shapes that every body and answer share."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema

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


class Input(BaseModel):
    """A body. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Output(BaseModel):
    """An answer, readable from a row."""

    model_config = ConfigDict(from_attributes=True)
