"""Messages about invalid fields are ours and in the catalogue, so that forms can translate them."""

from typing import Any

import pytest
from pydantic import ValidationError

import refract.app  # noqa: F401 - imports the schemas of every feature
from refract.core.phrases import Phrase
from refract.core.schemas import InputSchema
from refract.web.i18n import LANGUAGES, translate, use_locale
from refract.web.problems import list_field_errors
from tests.pseudo import OPENING, PSEUDO

WRONG: list[Any] = [
    None,
    "",
    "x",
    " ",
    "x" * 100_000,
    -1,
    1.5,
    10**30,
    True,
    [],
    [[]],
    {},
    object(),
]


def _iter_subclasses(schema: type[InputSchema]) -> list[type[InputSchema]]:
    found = [inner for subclass in schema.__subclasses__() for inner in _iter_subclasses(subclass)]
    return [schema, *found]


SCHEMAS = sorted(
    (schema for schema in _iter_subclasses(InputSchema) if schema.__module__.startswith("refract")),
    key=lambda schema: (schema.__module__, schema.__name__),
)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.__name__)
def test_every_message_about_a_field_is_translated(schema: type[InputSchema]) -> None:
    inputs: list[dict[str, Any]] = [{}, {"unknown": 1}]
    inputs += [{name: value} for name in schema.model_fields for value in WRONG]
    untranslated = set()
    for given in inputs:
        try:
            schema.model_validate(given)
        except ValidationError as exc:
            for error in list_field_errors(exc.errors()):
                with use_locale(PSEUDO):
                    if not translate(error.message).startswith(OPENING):
                        untranslated.add(f"{error.field}: {error.message}")

    assert untranslated == set()


def test_choices_are_listed_without_an_english_word() -> None:
    from refract.links.schemas import LinkPatch  # noqa: PLC0415

    with pytest.raises(ValidationError) as caught:
        LinkPatch.model_validate({"visibility": "nonsense"})
    (error,) = list_field_errors(caught.value.errors())

    assert isinstance(error.message, Phrase)
    assert " or " not in error.message
    with use_locale(LANGUAGES["de"]):
        assert translate(error.message) != error.message
