"""Requests of foreign clients: their caller, parameters, and bodies read by what they are."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import TypeAdapter, ValidationError

from refract.compat.schemas import ForeignFields
from refract.core.errors import FieldError
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.core.schemas import Timestamp, list_schema_errors
from refract.identity.authentication import Caller
from refract.links.access import LinkCaller
from refract.web.problems import MalformedBody, ValidationFailed
from refract.web.routing import MAX_MEMBERS, StrictRequest, is_clean_text, parse_json

FieldsT = TypeVar("FieldsT", bound="ForeignFields")
MAX_PARAMETERS = 1_000
_FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
_TIMESTAMP = TypeAdapter[datetime](Timestamp)


class DialectRequest(StrictRequest):
    """A request of a foreign client."""

    path = "/"
    """The path within the dialect, without a trailing slash."""
    _caller: Caller | None = None
    _fields: dict[str, Any] | None = None

    @property
    def rt(self) -> Runtime:
        runtime: Runtime = self.app.state.rt
        return runtime

    @property
    def caller(self) -> Caller:
        """Return the caller of an operation that needs a key."""
        if self._caller is None:
            raise LookupError("the operation needs no key")
        return self._caller

    @caller.setter
    def caller(self, caller: Caller) -> None:
        self._caller = caller

    @property
    def link_caller(self) -> LinkCaller:
        return LinkCaller(self.caller.user.id, self.caller.is_admin)

    async def read_fields(self) -> dict[str, Any]:
        """Return the members of the body: a form, or else JSON for every other Content-Type.

        An empty body has none. Raises `MalformedBody`.
        """
        if self._fields is None:
            self._fields = await self._read_fields()
        return self._fields

    async def _read_fields(self) -> dict[str, Any]:
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == _FORM_TYPES[1]:
            form = await self.form(max_files=0, max_fields=MAX_PARAMETERS)
            return collect_parameters([(name, str(text)) for name, text in form.multi_items()])
        body = await self.body()
        if not body.strip():
            return {}
        if kind == _FORM_TYPES[0] and body.lstrip()[:1] != b"{":
            return collect_parameters(_parse_form(body))
        fields = parse_json(body, MAX_MEMBERS)
        if not isinstance(fields, dict):
            raise MalformedBody(why="it isn't an object.")
        return fields

    async def parse_fields(self, model: type[FieldsT]) -> FieldsT:
        """Return the body as a model. Raises `ValidationFailed`."""
        return validate_fields(model, await self.read_fields())

    def get_int(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number of the query; the nearest allowed one if it is out of range."""
        text = self.query_params.get(name) or str(default)
        try:
            number = int(text) if len(text) <= 20 else high
        except ValueError as exc:
            raise _build_error(name, Phrase("Enter a whole number.")) from exc
        return min(max(number, low), high)

    def get_time(self, name: str) -> datetime | None:
        """Return a time of the query. A space stands for the `+` of an offset."""
        text = self.query_params.get(name)
        return parse_time(name, text) if text else None

    def list_values(self, name: str) -> list[str]:
        """Return the values of `name[]`, however they are numbered."""
        found = [
            text
            for key, text in self.query_params.multi_items()
            if key.partition("[")[0] == name and text
        ]
        return found[:MAX_PARAMETERS]


def validate_fields(model: type[FieldsT], fields: Mapping[str, Any]) -> FieldsT:
    try:
        return model.model_validate(fields)
    except ValidationError as exc:
        raise ValidationFailed(errors=list_schema_errors(exc)) from exc


def parse_time(name: str, text: str) -> datetime:
    """Return a time as foreign clients write it. Raises `ValidationFailed`."""
    if " " in text[19:]:
        text = f"{text[:19]}{text[19:].replace(' ', '+')}"
    if len(text) == 10:
        text += "T00:00:00"
    if len(text) == 19:
        text += "Z"
    try:
        return _TIMESTAMP.validate_python(text)
    except ValidationError as exc:
        raise _build_error(name, list_schema_errors(exc)[0].message) from exc


def _build_error(name: str, message: str) -> ValidationFailed:
    return ValidationFailed(errors=[FieldError(name, message)])


def collect_parameters(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return parameters by name: `tags[]` and `tags[0]` are lists, else the last one counts."""
    found: dict[str, Any] = {}
    for name, text in pairs:
        bare, bracket, _ = name.partition("[")
        if bracket:
            values = found.setdefault(bare, [])
            if isinstance(values, list):
                values.append(text)
        else:
            found[name] = text
    return found


def _parse_form(body: bytes) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_PARAMETERS
        )
    except (UnicodeDecodeError, ValueError) as exc:
        raise MalformedBody(why="it isn't a form.") from exc
    if not all(is_clean_text(text) for pair in pairs for text in pair):
        raise MalformedBody(why="it contains U+0000.")
    return pairs
