"""Clicks by language: from the header of a request to the page, the API and files."""

import csv
import io
from collections import Counter
from datetime import timedelta

import httpx
import pytest

from refract.clicks.ingest.ingester import Ingester
from refract.clicks.languages import normalize_language
from refract.clicks.rollups import compaction
from refract.clicks.spool.languages import (
    MAX_HEADER_BYTES,
    encode_language,
    extract_language,
)
from refract.clicks.stats.panels import translate_value
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.web.i18n import LANGUAGES, use_locale
from tests import make
from tests.clicks.counting import FIREFOX
from tests.client import by_cookie
from tests.people import Headers, ada, as_ada
from tests.redirect.nodes import open_place

__all__ = ["ada", "as_ada"]
VISITS = (
    ("de-CH,fr;q=0.9", "de"),
    ("de", "de"),
    ("zh-Hant-TW,zh;q=0.9,en;q=0.8", "zh"),
    ("iw", "he"),
    ("", "und"),
    ("qqq", "und"),
    ("*", "und"),
)
"""Headers of visitors, and the languages by which they are counted."""


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (b"de", "de"),
        (b"DE-ch", "de"),
        (b"fil-PH,en;q=0.9", "fil"),
        (b"en;q=0.5, fr ; q=0.7", "fr"),
        (b"en;q=0.5,fr", "fr"),
        (b"en,fr;q=1.0", "en"),
        (b"en;q=0", None),
        (b"en;q=2", None),
        (b"*, *;q=0.5", None),
        (b"x-klingon, i-navajo", None),
        (b"english", None),
        (b"de_DE", None),
        (b"\xff\xfe, en", "en"),
        (b"en;q=0.1," + b"," * 100 + b"de", "en"),
        (b"en;q=0.1," + b" " * (MAX_HEADER_BYTES - 11) + b"fil", "en"),
        (b"", None),
    ],
)
def test_the_preferred_language_is_found(header: bytes, language: str | None) -> None:
    assert extract_language(encode_language(header)) == language


def test_a_query_cannot_name_a_language() -> None:
    assert extract_language(b"utm_source=x&language=de") is None
    assert extract_language(b"utm_source=language=de") is None


@pytest.mark.parametrize(("code", "counted"), [("iw", "he"), ("und", None), ("abq", None)])
def test_only_languages_that_have_a_name_are_counted(code: str, counted: str | None) -> None:
    assert normalize_language(code) == counted


async def follow(rt: Runtime, name: str) -> None:
    async with open_place(rt) as place:
        for header, _ in VISITS:
            headers = {"User-Agent": FIREFOX, **({"Accept-Language": header} if header else {})}
            answer = await place.get(f"/{name}?language=fr&utm_campaign=x", headers=headers)
            assert answer.status_code == 302
        private = {"User-Agent": FIREFOX, "Accept-Language": "ja", "DNT": "1"}
        await place.get(f"/{name}", headers=private)
    await Ingester(rt).apply_all()


async def test_clicks_are_counted_by_language(
    rt: Runtime, clock: ManualClock, client: httpx.AsyncClient, ada: User, as_ada: Headers
) -> None:
    async with rt.db.write() as session:
        link = (await make.link(session, rt, ada, name="trip")).id
    await follow(rt, "trip")
    wanted = Counter(language for _, language in VISITS)

    for age in (0, 3 * 3600):  # open, then folded into packs
        clock.advance(timedelta(seconds=age).total_seconds())
        await compaction.close_hours(rt)
        for path in ("stats", f"links/{link}/stats"):
            url = f"/api/v1/{path}/languages"
            found = (await client.get(url, headers=as_ada)).raise_for_status().json()
            assert {item["value"]: item["clicks"] for item in found["items"]} == wanted
            assert found["total"] == wanted.total()
            labels = {item["value"]: item["label"] for item in found["items"]}
            assert labels["de"] == "German"
            assert labels["und"] == "Unknown"

    for language, clicks in wanted.items():
        url = f"/api/v1/stats/languages?language={language.upper()}"
        found = (await client.get(url, headers=as_ada)).raise_for_status().json()
        assert {item["value"]: item["clicks"] for item in found["items"]} == {language: clicks}
    exported = await client.get(f"/api/v1/links/{link}/stats/export", headers=as_ada)
    rows = [row for row in csv.DictReader(io.StringIO(exported.text)) if row["private"] == "false"]
    assert Counter(row["language"] or "und" for row in rows) == wanted
    assert "ja" not in Counter(
        row["language"] for row in csv.DictReader(io.StringIO(exported.text))
    )


async def test_the_page_has_a_panel_of_languages(
    rt: Runtime, client: httpx.AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="trip")
        cookie = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}
    assert "panel-languages" not in (await client.get("/app/analytics", headers=cookie)).text
    await follow(rt, "trip")

    page = (await client.get("/app/analytics", headers=cookie)).text

    assert 'href="/app/analytics?language=de"' in page
    assert "<bdi>Chinese</bdi>" in page
    filtered = (
        await client.get("/app/analytics?language=und", headers=cookie | {"Accept-Language": "de"})
    ).text
    assert "Unbekannt" in filtered
    file = (await client.get("/app/analytics/export.csv", headers=cookie)).text
    assert "languages,he,Hebrew,1,," in file.splitlines()


@pytest.mark.parametrize(
    ("locale", "name"), [("en", "German"), ("de", "Deutsch"), ("zh-Hans", "德语")]
)
def test_languages_are_named_in_the_language_of_the_page(locale: str, name: str) -> None:
    with use_locale(LANGUAGES[locale]):
        assert translate_value("languages", "de") == name
