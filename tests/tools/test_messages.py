"""Catalogues hold every message, translated, with the same placeholders and tags."""

import pytest
from babel import Locale as CldrLocale
from babel.messages.catalog import Catalog

from refract.web.i18n import LANGUAGES
from tools import messages


def test_the_template_is_what_extraction_gives() -> None:
    extracted = messages.to_text(messages.extract_messages())

    assert messages.TEMPLATE.read_text(encoding="utf-8") == extracted, "run `make messages`"


@pytest.mark.parametrize("folder", messages.catalogue_folders())
def test_a_catalogue_is_up_to_date(folder: str) -> None:
    updated = messages.update_catalogue(messages.extract_messages(), folder)

    assert messages.catalogue_path(folder).read_text(encoding="utf-8") == messages.to_text(
        updated
    ), "run `make messages`"


@pytest.mark.parametrize("folder", messages.catalogue_folders())
def test_every_message_is_translated_with_its_placeholders_and_tags(folder: str) -> None:
    catalogue = messages.update_catalogue(messages.extract_messages(), folder)

    assert [
        problem
        for message in catalogue
        if message.id
        for problem in messages.find_problems(message, catalogue.num_plurals)
    ] == []


@pytest.mark.parametrize(
    ("message", "translation", "problem"),
    [
        ("Undo", "", "not translated"),
        (("{n} click", "{n} clicks"), ("{n} Klick", ""), "not translated"),
        (("{n} click", "{n} clicks"), ("{n} Klick",), "1 forms instead of 2"),
        ("Copy {name}", "{nam} kopieren", "placeholders"),
        ("Copy {name}", "Kopieren", "placeholders"),
        ("See the <a href='/api'>docs</a>.", "Siehe die Dokumentation.", "tags"),
        ("Saved ", "Gespeichert", "spaces"),
        ("One\nTwo", "Eins\nZwei", "one line"),
    ],
)
def test_what_is_wrong_with_a_translation_is_found(
    message: str | tuple[str, str], translation: str | tuple[str, ...], problem: str
) -> None:
    catalogue = Catalog("de")
    added = catalogue.add(message, translation)
    added.string = translation

    assert any(problem in found for found in messages.find_problems(added, 2))


def test_a_plural_may_leave_out_the_number_where_the_language_says_it_in_words() -> None:
    message = Catalog("de").add(("{n} click", "{n} clicks"), ("Ein Klick", "{n} Klicks"))

    assert list(messages.find_problems(message, 2)) == []


def test_an_update_keeps_translations_drops_what_is_gone_and_guesses_nothing() -> None:
    template = Catalog()
    for message in ("Undo", "Undone", "Copy"):
        template.add(message)
    known = _german({"Undo": "Rückgängig machen", "Gone": "Weg", "Copy": "Kopie"})
    known["Copy"].flags.add("fuzzy")

    updated = messages.update_catalogue(template, "de", known=known)

    assert {message.id: message.string for message in updated if message.id} == {
        "Undo": "Rückgängig machen",
        "Undone": "",
        "Copy": "",
    }
    assert not any(message.fuzzy for message in updated if message.id)


def _german(translations: dict[str, str]) -> Catalog:
    catalogue = Catalog("de")
    for message, translation in translations.items():
        catalogue.add(message, translation)
    return catalogue


def test_every_language_has_a_catalogue_and_every_catalogue_is_offered() -> None:
    translated = [locale for locale in LANGUAGES.values() if locale.tag != "en"]

    assert sorted(locale.folder for locale in translated) == messages.catalogue_folders()
    for locale in translated:
        assert locale.direction == CldrLocale.parse(locale.folder).text_direction


def test_messages_are_found_in_templates_python_and_javascript() -> None:
    places = {
        path.rpartition(".")[2]
        for message in messages.extract_messages()
        for path, _ in message.locations
    }

    assert places == {"html", "js", "py"}
