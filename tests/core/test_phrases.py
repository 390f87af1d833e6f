"""Phrases: English sentences that pages can translate."""

import json
import pickle

from refract.core.errors import Conflict
from refract.core.phrases import Phrase
from refract.web import i18n


class _Refused(Conflict):
    """The name "{name}" is already in use. Choose another."""


def test_a_phrase_is_english_text_wherever_text_is_expected() -> None:
    phrase = Phrase("it has more than {limit} characters", limit=50)

    assert phrase == "it has more than 50 characters"
    assert json.dumps([phrase]) == '["it has more than 50 characters"]'
    assert f"- {phrase}" == "- it has more than 50 characters"


def test_braces_without_values_are_text() -> None:
    assert Phrase("Add {1} or {*}") == "Add {1} or {*}"


def test_exceptions_and_processes_keep_it_translatable() -> None:
    phrase = Phrase("it has more than {limit} characters", limit=50)

    for same in (str(ValueError(phrase)), pickle.loads(pickle.dumps(phrase))):  # noqa: S301 - ours
        with i18n.use_locale(i18n.LANGUAGES["de"]):
            assert i18n.translate(same) == "er hat mehr als 50 Zeichen"


def test_values_are_translated_too_and_plain_text_is_left_alone() -> None:
    phrase = Phrase('The tag "{name}" is invalid: {why}.', name="{why}", why=Phrase("it's empty"))

    assert phrase == 'The tag "{why}" is invalid: it\'s empty.'
    with i18n.use_locale(i18n.LANGUAGES["de"]):
        assert i18n.translate(phrase) == "Der Tag „{why}“ ist ungültig: er ist leer."
        assert i18n.translate("The link") == "The link"


def test_an_error_is_english_until_a_page_shows_it() -> None:
    error = _Refused(name="roadmap")

    with i18n.use_locale(i18n.LANGUAGES["zh-Hans"]):
        assert error.message == 'The name "roadmap" is already in use. Choose another.'
        assert i18n.translate_error(error) == "名称“roadmap”已被使用。请换一个。"
