"""Sources of settings.

Findings: misspelt variables were ignored, only one secret could be read from a file, `postgres://`
was refused, and `REFRACT_ENVIRONMENT=production` refused next to nothing.
"""

from pathlib import Path

import pytest

from refract.core.errors import ConfigurationError
from refract.core.settings.env_file import load_env_file, parse_env_file
from refract.core.settings.loader import load_settings

HTTPS = {"REFRACT_ENVIRONMENT": "production", "REFRACT_BASE_URL": "https://go.example.com"}


def _refused(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    return caught.value.message


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("REFRACT_BASEURL", "REFRACT_BASE_URL"),
        ("REFRACT_ENVIROMENT", "REFRACT_ENVIRONMENT"),
        ("REFRACT_SECRET_KEY_FIEL", "REFRACT_SECRET_KEY_FILE"),
    ],
)
def test_a_misspelt_variable_is_refused_and_the_nearest_is_named(
    variable: str, nearest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = _refused(monkeypatch, **{variable: "x"})

    assert variable in said
    assert f"{nearest}?" in said


def test_every_misspelt_variable_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding: only the first was named, so that two of them took two starts."""
    said = _refused(monkeypatch, REFRACT_BASEURL="x", REFRACT_ENVIROMENT="x")

    assert said.startswith(
        "REFRACT_BASEURL is not a setting. Did you mean REFRACT_BASE_URL? REFRACT_ENVIROMENT is"
        " not a setting."
    )
    assert said.endswith("Correct or remove them, or set REFRACT_UNKNOWN_SETTINGS=warn.")


def test_settings_that_do_not_fit_together_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Finding: the sentence began with "The settings does not fit:"."""
    said = _refused(monkeypatch, REFRACT_ENVIRONMENT="production")

    assert said.startswith(
        "These settings do not fit together: REFRACT_ENVIRONMENT=production needs"
        " REFRACT_BASE_URL, "
    )


def test_for_an_upgrade_an_unknown_variable_is_only_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFRACT_OF_YESTERDAY", "x")
    monkeypatch.setenv("REFRACT_UNKNOWN_SETTINGS", "warn")

    assert load_settings().unknown_settings == "warn"


def test_variables_of_container_platforms_and_of_tests_are_not_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    links = {
        "REFRACT_PORT": "tcp://10.0.0.7:8000",
        "REFRACT_PORT_8000_TCP": "tcp://10.0.0.7:8000",
        "REFRACT_PORT_8000_TCP_ADDR": "10.0.0.7",
        "REFRACT_SERVICE_HOST": "10.0.0.7",
        "REFRACT_WEB_SERVICE_PORT_HTTP": "8000",
        "REFRACT_WEB_PORT": "tcp://10.0.0.7:8000",
        "REFRACT_TEST_ANYTHING": "1",
        "REFRACT_ENV_FILE": "/nowhere",
        "REFRACT_ISSUERS__WORK__URL": "https://id.example.com",
        "REFRACT_ISSUERS__WORK__CLIENT_ID": "refract",
    }
    for name, value in links.items():
        monkeypatch.setenv(name, value)

    settings = load_settings()

    assert (settings.port, list(settings.issuers)) == (8000, ["work"])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("secret_key", "s" * 40),
        ("database_url", "postgresql://me:pw@db/refract"),
        ("redis_url", "redis://:pw@cache/0"),
        ("metrics_token", "t" * 20),
        ("model_key", "k" * 20),
        ("safe_browsing_key", "k" * 20),
    ],
)
def test_every_secret_may_lie_in_a_file(
    field: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text(f"{value}\n")
    monkeypatch.setenv(f"REFRACT_{field.upper()}_FILE", str(tmp_path / "secret"))

    found = getattr(load_settings(), field)

    assert (found.get_secret_value() if hasattr(found, "get_secret_value") else found) == value


def test_a_secret_is_given_once_and_its_file_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("s" * 40)
    both = _refused(
        monkeypatch, REFRACT_SECRET_KEY="s" * 40, REFRACT_SECRET_KEY_FILE=str(tmp_path / "key")
    )
    monkeypatch.delenv("REFRACT_SECRET_KEY")
    absent = _refused(monkeypatch, REFRACT_SECRET_KEY_FILE=str(tmp_path / "none"))

    assert "REFRACT_SECRET_KEY and REFRACT_SECRET_KEY_FILE are both set" in both
    assert str(tmp_path / "none") in absent


def test_a_database_url_as_platforms_spell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFRACT_DATABASE_URL", "postgres://me:pw@db/refract")

    assert load_settings().database_url == "postgresql://me:pw@db/refract"


@pytest.mark.parametrize("password", ["hunter#2", "hunter@2", "hunter/@2"])
def test_a_password_with_special_characters_is_explained(
    password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = _refused(monkeypatch, REFRACT_DATABASE_URL=f"postgresql://me:{password}@db/refract")

    assert "percent-encoded" in said
    assert "hunter" not in said


def test_an_error_names_the_option_that_was_given() -> None:
    with pytest.raises(ConfigurationError, match=r"^--to is invalid"):
        load_settings({"database_url": "--to"}, database_url="oracle://x")
    with pytest.raises(ConfigurationError, match=r"^--port"):
        load_settings(port=99999)


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"REFRACT_ENVIRONMENT": "production"}, ["REFRACT_BASE_URL", "https://go.example.com"]),
        (
            {
                "REFRACT_ENVIRONMENT": "production",
                "REFRACT_HOST": "0.0.0.0",  # noqa: S104 - not bound
            },
            ["REFRACT_BASE_URL"],
        ),
        ({**HTTPS, "REFRACT_BASE_URL": "http://go.example.com"}, ["https://", "TLS"]),
        ({**HTTPS, "REFRACT_TRUSTED_PROXIES": "0.0.0.0/0"}, ["0.0.0.0/0", "proxies"]),
        ({**HTTPS, "REFRACT_TRUSTED_PROXIES": "10.0.0.0/8,::/0"}, ["::/0"]),
    ],
)
def test_production_refuses_what_is_only_safe_at_home(
    variables: dict[str, str], says: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = _refused(monkeypatch, **variables)

    for part in says:
        assert part in said


@pytest.mark.parametrize(
    "base_url",
    [
        "https://go.example.com",
        "http://127.0.0.1:8000",
        "http://localhost:8000",
        "http://[::1]:8000",
    ],
)
def test_production_starts_when_it_is_well_set_up(
    base_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFRACT_ENVIRONMENT", "production")
    monkeypatch.setenv("REFRACT_BASE_URL", base_url)
    monkeypatch.setenv("REFRACT_TRUSTED_PROXIES", "10.0.0.0/8")

    assert load_settings().public_url == base_url


def test_an_environment_file_as_systemd_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "refract.env"
    file.write_text(
        "# a comment\n; another\n\nREFRACT_PORT=81\nREFRACT_BASE_URL = 'https://go.test'\n"
        'REFRACT_OWNER_EMAIL="a \\"b\\" c"\nREFRACT_LOG_LEVEL=in\\\nfo\nREFRACT_PORT=82\n'
    )
    environment = {"REFRACT_LOG_LEVEL": "debug"}

    load_env_file(file, environment)

    assert environment == {
        "REFRACT_LOG_LEVEL": "debug",  # existing variables stay
        "REFRACT_PORT": "82",
        "REFRACT_BASE_URL": "https://go.test",
        "REFRACT_OWNER_EMAIL": 'a "b" c',
    }
    with pytest.raises(ConfigurationError, match="Line 1"):
        parse_env_file("REFRACT_PORT 81")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_env_file(tmp_path / "none", environment)
