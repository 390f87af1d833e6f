"""Message catalogues, read from the .po files that translators edit.

There is no compilation step; a change takes effect after a restart. Reading a catalogue takes
about 50 ms once in a process, in a thread before the first page.
"""

from functools import cache
from gettext import GNUTranslations
from io import BytesIO
from typing import Any

from babel import Locale as CldrLocale
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from refract.web.i18n import LOCALES

DOMAIN = "refract"
_SAMPLES = (*range(201), 1_000, 1_000_000)
"""Whole numbers that cover every plural category of CLDR."""


@cache
def read_catalogue(folder: str) -> Catalog:
    """Read the catalogue of a language."""
    with (LOCALES / folder / "LC_MESSAGES" / f"{DOMAIN}.po").open("rb") as file:
        return read_po(file, locale=folder)


def read_translations(folder: str) -> GNUTranslations:
    """Return the translations of a catalogue, for lookups."""
    compiled = BytesIO()
    write_mo(compiled, read_catalogue(folder))
    compiled.seek(0)
    return GNUTranslations(compiled)


def read_javascript_messages(folder: str) -> dict[str, Any]:
    """Return the messages that scripts use, and the plural form of each category of `Intl`."""
    messages: dict[str, Any] = {}
    for message in read_catalogue(folder):
        if any(path.endswith(".js") for path, _ in message.locations):
            key = message.id if isinstance(message.id, str) else message.id[0]
            messages[key] = message.string
    return {"messages": messages, "plurals": plural_indexes(folder)}


def plural_indexes(folder: str) -> dict[str, int]:
    """Return the index of the catalogue's plural form for each plural category of CLDR."""
    category_of = CldrLocale.parse(folder).plural_form
    form_of = read_translations(folder).plural  # type: ignore[attr-defined]  # set by _parse
    return {category_of(number): form_of(number) for number in reversed(_SAMPLES)}
