"""Hosts that imitate others.

The finding: `pаypal.com` with a Cyrillic letter was shown in its own script, without a warning.
"""

from pathlib import Path

import pytest

from refract.core.lookalikes import is_lookalike, to_ascii_url
from refract.core.urls import parse_web_url
from tools.scripts import TARGET, render


@pytest.mark.parametrize(
    "host",
    [
        "pаypal.com",  # Cyrillic а among Latin
        "xn--pypal-4ve.com",
        "login.pаypal.com",
        "gοοgle.com",  # Greek omicrons
        "аррӏе.com",  # only Cyrillic, all of it like Latin
        "хn.раураӏ.com",
        "ѕһор.example",
        "աрр.com",  # Armenian and Cyrillic
    ],
)
def test_what_imitates_is_found(host: str) -> None:
    assert is_lookalike(parse_web_url(f"https://{host}/").host)


@pytest.mark.parametrize(
    "host",
    [
        "paypal.com",
        "münchen.de",
        "sœur.fr",
        "пример.рф",
        "правда.com",  # not every letter looks like Latin
        "аррӏе.рф",  # a zone in the same script
        "παράδειγμα.gr",
        "日本語.jp",
        "東京abcアイ.jp",  # Latin, Han and Katakana: ordinary Japanese
        "한국abc.kr",
        "漢字ㄅ.tw",
        "中文-123.cn",
        "مثال.إختبار",
        "דוגמה.co.il",
        "ไทย.th",
        "उदाहरण.in",
        "example-1.com",
        "127.0.0.1",
        "[::1]",
        "xn--a.example",  # not punycode of anything
    ],
)
def test_what_is_ordinary_is_not(host: str) -> None:
    assert not is_lookalike(
        host if host.startswith(("xn--", "[")) else parse_web_url(f"https://{host}/").host
    )


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("https://example.com/ä?q=ö", "https://example.com/ä?q=ö"),
        ("HTTPS://Example.com:443/a", "HTTPS://Example.com:443/a"),
        ("https://pаypal.com/login", "https://xn--pypal-4ve.com/login"),
        ("https://p%D0%B0ypal.com/login", "https://xn--pypal-4ve.com/login"),
        ("https://münchen.de:8443/{1}?ü", "https://xn--mnchen-3ya.de:8443/{1}?ü"),
        ("https://ａｂ\u202e.example/", "https://%EF%BD%81%EF%BD%82%E2%80%AE.example/"),
        ("not an address", "not an address"),
    ],
)
def test_an_address_is_shown_with_its_ascii_host(typed: str, shown: str) -> None:
    assert to_ascii_url(typed) == shown


def test_the_table_is_what_its_generator_writes() -> None:
    assert Path(TARGET).read_text() == render()
