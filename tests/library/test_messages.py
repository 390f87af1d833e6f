"""Stored sentences in the language of the page: reasons of suggestions, failures, rules."""

import pytest

from refract.core.net import FetchError
from refract.core.net.metadata import UnreadablePage
from refract.library.enrichment.offline import suggest_tags
from refract.library.enrichment.reasons import (
    AI_KNOWN_REASON,
    AI_NEW_REASON,
    REASON_SEPARATOR,
    format_similar_reason,
    translate_reason,
)
from refract.library.enrichment.rules import normalize_pattern, translate_invalid_rule
from refract.library.enrichment.types import (
    EnrichmentInput,
    ExtractedPage,
    TaggingRule,
    UserBackground,
)
from refract.library.errors import InvalidRule
from refract.web.i18n import LANGUAGES, gettext, use_locale
from tests.pseudo import CLOSING, OPENING, PSEUDO

PAGE = ExtractedPage(
    "https://example.com/engines",
    title="Engines of the harbour",
    text="The crane lifts steam engines. Steam is hot. A harbour crane needs steam.",
    keywords=("Industry",),
)
BACKGROUND = UserBackground(
    vocabulary={"engines": "Engines", "steam": "Steam", "industry": "Industry"},
    rules=[TaggingRule("example.com", ("samples",))],
)
OTHER_LANGUAGES = [tag for tag in LANGUAGES if tag != "en"]


def test_every_reason_of_the_offline_tier_is_translated() -> None:
    found = suggest_tags(EnrichmentInput("", PAGE.url, PAGE), BACKGROUND)
    reasons = {suggestion.reason for suggestion in found}

    assert reasons >= {
        "Your rule for example.com",
        "Keyword of the page",
        "In the title",
        "Mentioned 3 times in the text",
    }
    with use_locale(PSEUDO):
        for reason in reasons | {AI_KNOWN_REASON, AI_NEW_REASON, format_similar_reason(1)}:
            shown = translate_reason(reason)
            assert (shown[0], shown[-1]) == (OPENING, CLOSING), reason


def test_reasons_keep_their_number_and_both_parts() -> None:
    both = REASON_SEPARATOR.join([format_similar_reason(3), AI_KNOWN_REASON])

    assert translate_reason(both) == both == "On 3 similar items · Suggested by AI"
    with use_locale(LANGUAGES["de"]):
        assert translate_reason(format_similar_reason(1)) == "Bei 1 ähnlichen Eintrag"
        assert translate_reason(both) == "Bei 3 ähnlichen Einträgen · Von der KI vorgeschlagen"
        assert translate_reason("3 similar items, and in the title") == (
            "3 similar items, and in the title"
        ), "an older version's"


@pytest.mark.parametrize("tag", OTHER_LANGUAGES)
def test_every_failure_to_fetch_is_translated(tag: str) -> None:
    for error in {FetchError, UnreadablePage, *FetchError.__subclasses__()}:
        message = " ".join((error.__doc__ or "").split())
        with use_locale(LANGUAGES[tag]):
            assert gettext(message) != message, error


@pytest.mark.parametrize("tag", OTHER_LANGUAGES)
@pytest.mark.parametrize("pattern", ["nonsense", '"..."'])
def test_why_a_rule_is_invalid_is_translated(tag: str, pattern: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        normalize_pattern(pattern)
    with use_locale(LANGUAGES[tag]):
        assert str(caught.value.facts["why"]) not in translate_invalid_rule(caught.value)
