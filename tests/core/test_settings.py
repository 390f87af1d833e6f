"""An invalid setting stops the start with a message that says how to correct it."""

from pathlib import Path

import pytest

from refract.core.errors import ConfigurationError
from refract.core.settings.loader import load_settings, prepare_data_dir
from refract.core.settings.model import Settings


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("REFRACT_PORT", "eighty", "REFRACT_PORT"),
        ("REFRACT_PORT", "70000", "65535"),
        ("REFRACT_WORKERS", "0", "REFRACT_WORKERS"),
        ("REFRACT_ROLE", "king", "'all', 'web', 'redirect', 'worker' or 'ingest'"),
        ("REFRACT_BASE_URL", "go.example.com", "https://go.example.com"),
        ("REFRACT_BASE_URL", "https://go.example.com/path", "scheme and host alone"),
        ("REFRACT_DATABASE_URL", "oracle://x", "sqlite://, postgresql:// or mysql://"),
        ("REFRACT_REDIS_URL", "http://x", "redis://"),
        ("REFRACT_SECRET_KEY", "short", "32 characters"),
        ("REFRACT_TRUSTED_PROXIES", "10.0.0.0/33", "10.0.0.0/8"),
        ("REFRACT_DEAD_LINK_STATUS", "500", "404"),
    ],
)
def test_a_bad_value_is_named_with_its_remedy(
    variable: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(ConfigurationError) as caught:
        load_settings()

    assert variable in caught.value.message
    assert says in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("variable", "value"),
    [("REFRACT_SECRET_KEY", "tooshort-canary"), ("REFRACT_DATABASE_URL", "oracle://u:canary@h/d")],
)
def test_a_bad_secret_is_not_repeated(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(ConfigurationError) as caught:
        load_settings()

    assert "canary" not in caught.value.message


@pytest.mark.parametrize(
    ("name", "default"),
    [
        (name, field.default)
        for name, field in Settings.model_fields.items()
        if isinstance(field.default, str | int | float)
    ],
)
def test_the_environment_can_set_every_default(
    name: str, default: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"REFRACT_{name.upper()}", str(default).lower())

    assert getattr(load_settings(), name) == default


def test_expired_links_can_be_404_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFRACT_DEAD_LINK_STATUS", "404")

    assert load_settings().dead_link_status == 404


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().port = 1  # type: ignore[misc]


def test_the_public_address_follows_host_and_port_unless_it_is_given() -> None:
    settings = Settings(host="0.0.0.0", port=81)  # noqa: S104 - not bound
    assert settings.public_url == "http://127.0.0.1:81"
    assert Settings(host="::1", port=81).public_url == "http://[::1]:81"
    assert Settings(base_url="https://Go.Example.com/").public_url == "https://go.example.com"


def test_the_data_directory_is_private(tmp_path: Path) -> None:
    made = prepare_data_dir(tmp_path / "a" / "b")

    assert made.stat().st_mode & 0o077 == 0
    with pytest.raises(ConfigurationError, match="is a file"):
        (tmp_path / "file").touch()
        prepare_data_dir(tmp_path / "file")
