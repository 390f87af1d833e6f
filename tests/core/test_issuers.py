"""Identity providers in the environment and in a file; invalid ones are named."""

from pathlib import Path

import pytest

from refract.core.errors import ConfigurationError
from refract.core.settings.loader import load_settings

GOOD = {"URL": "https://id.example.com", "CLIENT_ID": "12345"}
FILE = """
port = 9000

[issuers.work]
url = "https://file.example.com"
client_id = "from the file"
admins = ["ada@example.com"]
"""


def _write(monkeypatch: pytest.MonkeyPatch, name: str = "WORK", **members: str) -> None:
    for member, value in (GOOD | members).items():
        monkeypatch.setenv(f"REFRACT_ISSUERS__{name}__{member}", value)


def test_several_issuers_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    _write(monkeypatch, AUDIENCES="99, api", ADMINS="ada@example.com,bob@example.com")
    _write(monkeypatch, "HOME_2", URL="https://clerk.example.com", KIND="clerk", CLIENT_SECRET="s")
    issuers = load_settings().issuers

    assert list(issuers) == ["work", "home_2"]
    assert (issuers["work"].client_id, issuers["work"].audiences, issuers["work"].secret) == (
        "12345",
        ("99", "api"),
        None,
    )
    assert (issuers["home_2"].display_name, issuers["home_2"].secret) == ("Clerk", "s")
    assert issuers["work"].display_name == "id.example.com"


def test_a_file_is_read_and_the_environment_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "settings.toml").write_text(FILE)
    monkeypatch.setenv("REFRACT_SETTINGS_FILE", str(tmp_path / "settings.toml"))
    monkeypatch.setenv("REFRACT_ISSUERS__WORK__CLIENT_ID", "from the environment")
    settings = load_settings()

    assert (settings.port, settings.issuers["work"].url, settings.issuers["work"].client_id) == (
        9000,
        "https://file.example.com",
        "from the environment",
    )
    assert settings.issuers["work"].admins == ("ada@example.com",)
    assert load_settings(port=1).port == 1


@pytest.mark.parametrize(
    ("text", "says"), [("prot = 1", '"prot"'), ("= 1", "cannot be read"), (None, "No such file")]
)
def test_a_file_that_does_not_fit_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, says: str
) -> None:
    file = tmp_path / "settings.toml"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("REFRACT_SETTINGS_FILE", str(file))

    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert str(file) in caught.value.message
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"URL": "http://id.example.com"}, "plain http is for this machine alone"),
        ({"URL": "https://user:canary@id.example.com"}, "REFRACT_ISSUERS__WORK__URL"),
        ({"KIND": "okta"}, "REFRACT_ISSUERS__WORK__KIND"),
        ({"CLIENT_ID": ""}, "REFRACT_ISSUERS__WORK__CLIENT_ID"),
        ({"CLIENT_SECRET": "canary", "CLIENT_SECRET_FILE": "x"}, "not both"),
        ({"CLIENT_SECRET_FILE": "/no/such/file"}, "there is no file"),
        ({"ALGORITHMS": "HS256"}, "REFRACT_ISSUERS__WORK__ALGORITHMS"),
        ({"COLOUR": "red"}, "REFRACT_ISSUERS__WORK__COLOUR"),
    ],
)
def test_a_member_that_does_not_fit_is_named_and_no_secret_repeated(
    monkeypatch: pytest.MonkeyPatch, members: dict[str, str], says: str
) -> None:
    _write(monkeypatch, **members)

    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert says in caught.value.message
    assert "canary" not in caught.value.message
    assert "\n" not in caught.value.message


def test_two_issuers_of_one_address_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONE", "TWO"):
        _write(monkeypatch, name)

    with pytest.raises(ConfigurationError, match="the same url"):
        load_settings()
