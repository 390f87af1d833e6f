"""Interface languages: negotiation, words and formats."""

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from jinja2 import Environment

from refract.core.errors import Limited
from refract.core.phrases import CountPhrase, Phrase
from refract.core.runtime import Runtime
from refract.library.errors import CaptureLimitReached
from refract.limits.errors import RateLimited, TooManyNetworkStreams, TooManyOpenRequests
from refract.web import formats, i18n
from refract.web.templating import install_i18n
from tests.pseudo import PSEUDO

AT = datetime(2026, 8, 20, 15, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "tag"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-CH, en;q=0.5", "de"),
        ("en;q=0.5, de;q=0.9", "de"),
        ("fr, de;q=0.3, en;q=0.7", "en"),
        ("fr", "en"),
        ("*", "en"),
        ("de;q=0, en;q=0.1", "en"),
        ("de;q=nonsense", "en"),
        ("DE", "de"),
        ("zh", "zh-Hans"),
        ("zh-CN", "zh-Hans"),
        ("zh-Hans-TW", "zh-Hans"),
        ("zh-TW", "en"),
        ("zh-Hant-CN, de;q=0.5", "de"),
        ("x" * 10_000 + ", de", "en"),
    ],
)
def test_a_browser_gets_the_language_that_it_likes_best(header: str, tag: str) -> None:
    assert i18n.negotiate(header).tag == tag


def test_a_preference_wins_over_the_browser() -> None:
    assert i18n.choose_locale("zh-Hans", "de").tag == "zh-Hans"
    assert i18n.choose_locale(None, "de").tag == "de"
    assert (
        i18n.choose_locale("kl", "de").tag == "de"
    )  # a language that was there in another version


def test_a_language_lasts_as_long_as_its_block() -> None:
    with i18n.use_locale(i18n.LANGUAGES["de"]):
        with i18n.use_locale(i18n.LANGUAGES["zh-Hans"]):
            assert i18n.current_locale().tag == "zh-Hans"
        i18n.set_locale(i18n.LANGUAGES["zh-Hans"])
        assert i18n.current_locale().tag == "zh-Hans"
    assert i18n.current_locale() is i18n.ENGLISH


def test_placeholders_are_braces_and_percent_signs_are_text() -> None:
    assert i18n.gettext("45% of {name}", name="{x}") == "45% of {x}"
    assert i18n.gettext("Add {1} or {*}") == "Add {1} or {*}"
    assert i18n.ngettext("{n} click", "{n} clicks", 1) == "1 click"
    assert (
        i18n.ngettext("{n} click on {name}", "{n} clicks on {name}", 1284, name="x")
        == "1,284 clicks on x"
    )
    assert i18n.pgettext("button", "Open {name}", name="x") == "Open x"


def test_a_phrase_has_the_plural_of_its_number() -> None:
    phrases = [CountPhrase("{n} second", "{n} seconds", n) for n in (1, 2, 1284)]

    assert phrases == ["1 second", "2 seconds", "1,284 seconds"]
    with i18n.use_locale(i18n.LANGUAGES["de"]):
        assert [i18n.translate(phrase) for phrase in phrases] == [
            "1 Sekunde",
            "2 Sekunden",
            "1.284 Sekunden",
        ]


@pytest.mark.parametrize(
    "error", [Limited, RateLimited, TooManyOpenRequests, TooManyNetworkStreams, CaptureLimitReached]
)
def test_the_time_to_wait_is_a_number_with_its_unit(error: type[Limited]) -> None:
    one, two = (error(retry_after=n, limit=5, per=Phrase("per minute")) for n in (1, 2))

    assert one.message.endswith("Try again in 1 second.")
    assert two.message.endswith("Try again in 2 seconds.")
    with i18n.use_locale(i18n.LANGUAGES["de"]):
        assert i18n.translate_error(one).endswith("In 1 Sekunde erneut versuchen.")
        assert i18n.translate_error(two).endswith("In 2 Sekunden erneut versuchen.")
    with i18n.use_locale(i18n.LANGUAGES["zh-Hans"]):
        assert i18n.translate_error(one).endswith("请在 1 秒后重试。")


def test_constants_wait_for_the_language() -> None:
    words = i18n.lazy_gettext("Skip to content")

    assert f"{words}" == "Skip to content"
    with i18n.use_locale(i18n.LANGUAGES["de"]):
        assert str(words) == "Zum Inhalt springen"


def test_a_message_with_tags_escapes_what_it_is_given() -> None:
    environment = Environment(autoescape=True)
    install_i18n(environment)
    evil = '"><script>'

    shown = environment.from_string(
        "{{ _('{a}', a=evil) }}|{{ _html('<b>{a}</b>', a=evil) }}|{{ ngettext_html('<b>{n}</b>"
        " {a}', '<b>{n}</b> {a}', 2000, a=evil) }}"
    ).render(evil=evil)

    safe = "&#34;&gt;&lt;script&gt;"
    assert shown == f"{safe}|<b>{safe}</b>|<b>2,000</b> {safe}"


FORMATS = {
    "en": [
        "12,345.5",
        "45%",
        "Aug 20, 2026",
        "Aug 20, 2026, 3:09\u202fPM UTC",
        "2 min. ago",
        "in 3 days",
        "a, b, and c",
    ],
    "de": [
        "12.345,5",
        "45\xa0%",
        "20.08.2026",
        "20.08.2026, 15:09 UTC",
        "vor 2 Min.",
        "in 3 Tagen",
        "a, b und c",
    ],
    "zh-Hans": [
        "12,345.5",
        "45%",
        "2026年8月20日",
        "2026年8月20日 15:09 UTC",
        "2分钟前",
        "3天后",
        "a、b和c",
    ],
}


@pytest.mark.parametrize("tag", FORMATS)
def test_formats_follow_cldr(tag: str) -> None:
    with i18n.use_locale(i18n.LANGUAGES[tag]):
        shown = [
            i18n.format_number(12345.5),
            formats.format_percent(0.45),
            formats.format_date(AT),
            formats.format_datetime(AT),
            formats.format_relative(AT, AT + timedelta(minutes=2)),
            formats.format_relative(AT, AT - timedelta(days=3)),
            formats.format_list(["a", "b", "c"]),
        ]
        assert shown == FORMATS[tag]
        assert formats.format_date(date(2026, 8, 20)) == shown[2]


def test_days_begin_where_the_reader_is() -> None:
    late = datetime(2026, 8, 20, 23, 30, tzinfo=UTC)

    assert formats.format_date(late, ZoneInfo("Europe/Berlin")) == "Aug 21, 2026"
    assert formats.format_datetime(late, ZoneInfo("Europe/Berlin")) == "Aug 21, 2026, 1:30\u202fAM"


def test_browsers_and_catalogues_agree_on_plurals() -> None:
    assert i18n.LANGUAGES["de"].javascript["plurals"] == {"one": 0, "other": 1}
    assert i18n.LANGUAGES["zh-Hans"].javascript["plurals"] == {"other": 0}


async def test_a_language_is_loaded_before_its_first_page_and_not_before(rt: Runtime) -> None:
    """All catalogues were read by every process, for 10 MB."""
    german = i18n.TranslatedLocale("de", "Deutsch")
    before = german.is_loaded

    await formats.prepare_language(german, rt)

    assert (before, german.is_loaded) == (False, True)
    assert german.translations.gettext("Settings") == "Einstellungen"


def test_scripts_get_their_messages_and_no_others() -> None:
    german = i18n.LANGUAGES["de"].javascript

    assert german["plurals"] == {"one": 0, "other": 1}
    assert "Skip to content" not in german["messages"]
    assert i18n.ENGLISH.javascript == {}


def test_english_pages_need_no_catalogue_and_the_module_no_babel() -> None:
    code = (
        "import sys; from refract.web import i18n, templating; i18n.gettext('x');"
        " sys.exit('babel' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_pseudo_locale_brackets_what_is_in_the_catalogue_and_nothing_else() -> None:
    with i18n.use_locale(PSEUDO):
        assert i18n.gettext("Skip to content") == "⟦Šķîþ ţö çöñţéñţ⟧"
        assert i18n.gettext("not in any catalogue") == "not in any catalogue"
