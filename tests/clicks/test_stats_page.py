"""The words and dates of the statistics page, in the language of the page."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from refract.clicks.stats.calendar import Granularity
from refract.clicks.stats.charts import format_point
from refract.clicks.stats.panels import translate_value
from refract.web.i18n import LANGUAGES, use_locale

AT = datetime(2026, 8, 20, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("language", "countries", "devices"),
    [
        ("en", ["Germany", "Unknown"], ["Mobile", "watch"]),
        ("de", ["Deutschland", "Unbekannt"], ["Smartphone", "watch"]),
        ("zh-Hans", ["德国", "未知"], ["手机", "watch"]),
    ],
)
def test_labels_are_translated(language: str, countries: list[str], devices: list[str]) -> None:
    with use_locale(LANGUAGES[language]):
        assert [translate_value("countries", code) for code in ("DE", "XX")] == countries
        assert [translate_value("devices", kind) for kind in ("mobile", "watch")] == devices


@pytest.mark.parametrize(
    ("granularity", "english", "german"),
    [
        (Granularity.HOUR, "Aug 20, 2026, 5:00\u202fPM", "20.08.2026, 17:00"),
        (Granularity.DAY, "Aug 20, 2026", "20.08.2026"),
        (Granularity.WEEK, "Aug 20, 2026", "20.08.2026"),
        (Granularity.MONTH, "Aug 2026", "Aug. 2026"),
    ],
)
def test_points_are_dated_in_the_language_and_zone(
    granularity: Granularity, english: str, german: str
) -> None:
    local = AT.astimezone(ZoneInfo("Europe/Berlin"))

    assert format_point(local, granularity) == english
    with use_locale(LANGUAGES["de"]):
        assert format_point(local, granularity) == german
