"""Error codes: the words of a class name, as a client developer would guess them."""

import pytest

from refract.core.errors import RefractError


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SlugTaken", "SLUG_TAKEN"),
        ("NotABackup", "NOT_A_BACKUP"),
        ("InvalidEtag", "INVALID_ETAG"),
        ("InvalidUrl", "INVALID_URL"),
    ],
)
def test_code_is_the_words_of_the_class_name(name: str, code: str) -> None:
    made: type[RefractError] = type(name, (RefractError,), {})

    assert made.code == code
