"""Abuse limits as settings: a number from 1, or `unlimited`.

The finding: `0` meant "no limit" for every abuse limit, so an operator who wrote 0 to close a door
had opened it (security review, finding 2).
"""

import pytest

from refract.core.errors import ConfigurationError
from refract.core.settings.loader import load_settings

LIMITS = (
    "CREATES_PER_HOUR",
    "KEY_REQUESTS_PER_HOUR",
    "MISSES_PER_MINUTE",
    "SIGN_INS_PER_MINUTE",
    "REPORTS_PER_HOUR",
)
ANONYMOUS = ("ANONYMOUS_LISTS_PER_HOUR", "ANONYMOUS_ENTRIES_PER_HOUR")


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", ["0", "-1", "none", "", "1.5"])
def test_a_limit_is_a_number_from_one_or_unlimited(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"REFRACT_{name}", value)

    with pytest.raises(ConfigurationError) as refused:
        load_settings()

    assert f"REFRACT_{name}" in refused.value.message
    assert "a whole number from 1, or unlimited" in refused.value.message


@pytest.mark.parametrize("name", [*LIMITS, *ANONYMOUS])
def test_a_limit_may_be_unlimited(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"REFRACT_{name}", "unlimited")

    assert getattr(load_settings(), name.lower()) is None


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_may_be_one(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"REFRACT_{name}", "1")

    assert getattr(load_settings(), name.lower()) == 1


@pytest.mark.parametrize("name", ANONYMOUS)
def test_zero_of_what_strangers_may_do_is_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"REFRACT_{name}", "0")

    settings = load_settings()

    assert getattr(settings, name.lower()) == 0
    assert settings.effective_anonymous_lists == "off"


@pytest.mark.parametrize(
    ("host", "base_url", "expected"),
    [
        ("127.0.0.1", None, "publish"),
        ("127.0.0.5", "http://localhost:8000", "publish"),
        ("::1", "http://[::1]:8000", "publish"),
        ("localhost", "http://refract.localhost", "publish"),
        ("0.0.0.0", None, "off"),  # noqa: S104 - compared, never bound
        ("0.0.0.0", "http://localhost:8000", "off"),  # noqa: S104 - the same
        ("", None, "off"),
        ("127.0.0.1", "https://go.example.com", "off"),
        ("127.0.0.1", "https://localhost.example.com", "off"),
        ("10.0.0.7", None, "off"),
    ],
)
def test_strangers_make_lists_by_default_on_ones_own_machine_only(
    monkeypatch: pytest.MonkeyPatch, host: str, base_url: str | None, expected: str
) -> None:
    monkeypatch.setenv("REFRACT_HOST", host)
    if base_url:
        monkeypatch.setenv("REFRACT_BASE_URL", base_url)

    assert load_settings().effective_anonymous_lists == expected


@pytest.mark.parametrize("mode", ["off", "draft", "publish"])
def test_the_operator_decides_otherwise(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("REFRACT_HOST", "0.0.0.0")  # noqa: S104 - compared, never bound
    monkeypatch.setenv("REFRACT_ANONYMOUS_LISTS", mode)

    assert load_settings().effective_anonymous_lists == mode
