"""Types shared by all request and response schemas."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from refract.core.errors import FieldError
from refract.core.ids import MAX_ID
from refract.core.phrases import Phrase


def parse_id(value: Any) -> int:
    """Parse a Snowflake from its text; raise `ValueError` for anything else."""
    text = str(value)
    if isinstance(value, bool) or not (
        text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= MAX_ID
    ):
        raise ValueError(Phrase("Enter an id: a whole number, written as text."))
    return int(text)


def parse_ids(texts: Iterable[str], limit: int) -> list[int]:
    """Parse the ids of selected rows, each once and at most `limit`. None is valid if one isn't."""
    try:
        return list(dict.fromkeys(parse_id(text) for text in texts))[:limit]
    except ValueError:
        return []


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
    raise ValueError(
        Phrase("Write the time as RFC 3339 with its offset, like 2030-01-31T12:00:00Z.")
    )


def _to_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as exc:
        raise ValueError(Phrase("This date is out of range.")) from exc


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


def explain_errors(sentence: Phrase) -> WrapValidator:
    """Return a validator that says this about every value that the type refuses."""

    def validate(value: Any, parse: ValidatorFunctionWrapHandler) -> Any:
        try:
            return parse(value)
        except ValidationError as exc:
            raise ValueError(sentence) from exc

    return WrapValidator(validate)


def list_schema_errors(error: ValidationError) -> list[FieldError]:
    """Return what is wrong with a model's values, field by field."""
    return [
        FieldError(".".join(map(str, detail["loc"])), describe_validation_error(detail))
        for detail in error.errors()
    ]


def describe_validation_error(detail: Mapping[str, Any]) -> str:
    """Return the sentence for an entry of pydantic's `errors()`: ours where there is one."""
    context = detail.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, ValueError) and cause.args and isinstance(cause.args[0], Phrase):
        return cause.args[0]
    if detail["type"] == "string_too_short" and context.get("min_length") == 1:
        return _VALIDATION_PHRASES["missing"]
    if (phrase := _VALIDATION_PHRASES.get(detail["type"])) is not None:
        if "expected" in context:  # 'a', 'b' or 'c'
            context = {"expected": ", ".join(_QUOTED.findall(context["expected"]))}
        return Phrase(phrase.template, **context)
    return f"{str(detail['msg']).removeprefix('Value error, ').rstrip('.')}."


_QUOTED: Final = re.compile(r"'[^']*'|[^\s',]+(?=,|$)")
_WHOLE_NUMBER: Final = Phrase("Enter a whole number.")
_LIST: Final = Phrase("Send a list.")
_OBJECT: Final = Phrase("Send an object.")
_DATE: Final = Phrase("Enter a date, like 2030-01-31.")
_TIME: Final = Phrase("Write the time as RFC 3339 with its offset, like 2030-01-31T12:00:00Z.")
_VALIDATION_PHRASES: Final = {
    "missing": Phrase("This field is required."),
    "extra_forbidden": Phrase("This field is unknown. Remove it."),
    "string_type": Phrase("Enter text."),
    "string_too_long": Phrase("Enter at most {max_length} characters."),
    "string_too_short": Phrase("Enter at least {min_length} characters."),
    "too_long": Phrase("Enter at most {max_length} values."),
    "too_short": Phrase("Enter at least {min_length} values."),
    "list_type": _LIST,
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "date_type": _DATE,
    "date_parsing": _DATE,
    "date_from_datetime_parsing": _DATE,
    "date_from_datetime_inexact": _DATE,
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "int_type": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_from_float": _WHOLE_NUMBER,
    "int_parsing_size": _WHOLE_NUMBER,
    "float_type": Phrase("Enter a number."),
    "float_parsing": Phrase("Enter a number."),
    "bool_type": Phrase("Use true or false."),
    "bool_parsing": Phrase("Use true or false."),
    "greater_than": Phrase("Enter more than {gt}."),
    "greater_than_equal": Phrase("Enter {ge} or more."),
    "less_than": Phrase("Enter less than {lt}."),
    "less_than_equal": Phrase("Enter {le} or less."),
    "literal_error": Phrase("Use one of {expected}."),
    "enum": Phrase("Use one of {expected}."),
    "timezone_aware": Phrase("Add the time zone, like 2030-01-31T12:00:00Z."),
}
"""Our sentences for pydantic's own error types, filled in with the context of the error."""
