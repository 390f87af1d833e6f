"""Languages that clicks are counted by, and their names."""

from functools import cache
from typing import Final

from refract.web.i18n import load_cldr

UNKNOWN_LANGUAGE: Final = "und"
"""The value of clicks without a language, which are stored without one."""
_NO_LANGUAGES: Final = frozenset({"mul", "mis", "und", "zxx"})


@cache
def load_language_names(folder: str) -> dict[str, str]:
    """Return the names of all languages that are counted, by code, in a language of pages."""
    names: dict[str, str] = {
        code: name
        for code, name in load_cldr(folder).languages.items()
        if code.isalpha() and len(code) <= 3 and code not in _NO_LANGUAGES
    }
    return names


@cache
def _load_aliases() -> dict[str, str]:
    from babel.core import get_global  # noqa: PLC0415 - only who needs names loads it

    return {old: new.partition("_")[0] for old, new in get_global("language_aliases").items()}


def normalize_language(code: str | None) -> str | None:
    """Return the code by which a language is counted; None if there is no such language."""
    if code is None:
        return None
    code = _load_aliases().get(code, code)
    return code if code in load_language_names("en") else None
