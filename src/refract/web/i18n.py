"""Interface languages: choosing the language of a request, and translating messages.

English source strings are the message ids, so English needs no catalogue. `gettext` and its
relatives use the language of the current request: pages are translated, the API and the command
line stay English. Placeholders are written `{name}`.

Catalogues are the .po files that translators edit. There is no compilation step; a change takes
effect after a restart. Reading one takes about 50 ms and 4 MB once in a process, in a thread before
the first page in its language. Babel is imported in functions, because only pages need it.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from refract.core.errors import RefractError
from refract.core.phrases import CountPhrase, Phrase

if TYPE_CHECKING:
    from babel import Locale as CldrLocale
    from babel.messages.catalog import Catalog

LOCALES: Final = Path(__file__).parents[1] / "locales"
DOMAIN: Final = "refract"
MAX_ACCEPT_LANGUAGE: Final = 200
"""Characters of an Accept-Language header that are parsed."""
LanguageTag = Literal["en", "de", "zh-Hans"]


@dataclass(frozen=True)
class Locale:
    """A language of the pages."""

    tag: str
    """The BCP 47 tag: `zh-Hans`."""
    name: str
    """Its name in the language itself."""
    direction: Literal["ltr", "rtl"] = "ltr"

    @property
    def folder(self) -> str:
        """The name for CLDR and of the folder: `zh_Hans`."""
        return self.tag.replace("-", "_")

    @property
    def is_loaded(self) -> bool:
        """Whether its messages are in memory."""
        return True

    @cached_property
    def translations(self) -> NullTranslations:
        """The catalogue, read on first use."""
        return NullTranslations()

    @cached_property
    def javascript(self) -> dict[str, Any]:
        """The messages of scripts, in the form that i18n.js reads. Empty for English."""
        return {}


class TranslatedLocale(Locale):
    """A language with a catalogue."""

    @property
    def is_loaded(self) -> bool:
        return "_messages" in self.__dict__

    @cached_property
    def translations(self) -> NullTranslations:
        return self._messages[0]

    @cached_property
    def javascript(self) -> dict[str, Any]:
        return self._messages[1]

    @cached_property
    def _messages(self) -> tuple[GNUTranslations, dict[str, Any]]:
        """Both of the above, so that the catalogue is read once and not kept: it takes 2 MB."""
        catalogue = read_catalogue(self.folder)
        translations = build_translations(catalogue)
        return translations, build_javascript_messages(catalogue, self.folder, translations)


ENGLISH: Final = Locale("en", "English")
_ALL: Final = (ENGLISH, TranslatedLocale("de", "Deutsch"), TranslatedLocale("zh-Hans", "简体中文"))
LANGUAGES: Final[dict[str, Locale]] = {locale.tag: locale for locale in _ALL}
_BY_PRIMARY: Final = {locale.tag.partition("-")[0]: locale for locale in _ALL}
_TRADITIONAL: Final = frozenset({"hant", "tw", "hk", "mo"})
_SAMPLES: Final = (*range(201), 1_000, 1_000_000)
"""Whole numbers that cover every plural category of CLDR."""
_current: ContextVar[Locale] = ContextVar("locale", default=ENGLISH)


# -- which language


def negotiate(accept_language: str) -> Locale:
    """Return the supported language that an Accept-Language header prefers, or English."""
    return _negotiate(accept_language[:MAX_ACCEPT_LANGUAGE])


@lru_cache(maxsize=512)
def _negotiate(accept_language: str) -> Locale:
    wanted = []
    for place, part in enumerate(accept_language.split(",")):
        tag, _, parameters = part.partition(";")
        quality = _parse_quality(parameters)
        if quality > 0:
            wanted.append((-quality, place, tag.strip().lower()))
    matches = (_match_tag(tag) for _, _, tag in sorted(wanted))
    return next((locale for locale in matches if locale is not None), ENGLISH)


def _parse_quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return min(float(value), 1.0)
    except ValueError:
        return 0.0


def _match_tag(tag: str) -> Locale | None:
    primary, *subtags = tag.split("-")
    if primary == "zh" and "hans" not in subtags and _TRADITIONAL.intersection(subtags):
        return None  # Traditional Chinese isn't supported: the next choice may suit better
    return _BY_PRIMARY.get(primary)


def choose_locale(preference: str | None, accept_language: str) -> Locale:
    """Return the language of a page: the user's preference, then the browser's, then English."""
    return LANGUAGES.get(preference or "") or negotiate(accept_language)


def current_locale() -> Locale:
    return _current.get()


def set_locale(locale: Locale) -> None:
    """Change the language for the rest of a `use_locale` block, once the user is known."""
    _current.set(locale)


@contextmanager
def use_locale(locale: Locale) -> Iterator[None]:
    """Use a language inside the block."""
    token = _current.set(locale)
    try:
        yield
    finally:
        _current.reset(token)


# -- catalogues


def read_catalogue(folder: str) -> "Catalog":
    """Read the catalogue of a language."""
    from babel.messages.pofile import read_po  # noqa: PLC0415 - only pages need it

    with (LOCALES / folder / "LC_MESSAGES" / f"{DOMAIN}.po").open("rb") as file:
        return read_po(file, locale=folder)


def build_translations(catalogue: "Catalog") -> GNUTranslations:
    """Return the translations of a catalogue, for lookups."""
    from babel.messages.mofile import write_mo  # noqa: PLC0415 - only pages need it

    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return GNUTranslations(compiled)


def build_javascript_messages(
    catalogue: "Catalog", folder: str, translations: GNUTranslations
) -> dict[str, Any]:
    """Return the messages that scripts use, and the plural form of each category of `Intl`."""
    messages: dict[str, Any] = {}
    for message in catalogue:
        if any(path.endswith(".js") for path, _ in message.locations):
            key = message.id if isinstance(message.id, str) else message.id[0]
            messages[key] = message.string
    category_of = load_cldr(folder).plural_form
    form_of = translations.plural  # type: ignore[attr-defined]  # set by _parse
    plurals = {category_of(number): form_of(number) for number in reversed(_SAMPLES)}
    return {"messages": messages, "plurals": plurals}


# -- words


@cache
def load_cldr(folder: str) -> "CldrLocale":
    """Return the CLDR formats of a language."""
    from babel import Locale as CldrLocale  # noqa: PLC0415 - only pages need it

    return CldrLocale.parse(folder)


def format_number(number: float) -> str:
    """Format a number: 1284 → 1,284 (English), 1.284 (German)."""
    return _format_decimal(number, _current.get().folder)


@lru_cache(maxsize=4_096, typed=True)
def _format_decimal(number: float, folder: str) -> str:
    """Format a number. A page has a hundred, mostly small ones, and each takes 20 µs."""
    from babel.numbers import format_decimal  # noqa: PLC0415 - only pages need it

    return format_decimal(number, locale=load_cldr(folder))


def gettext(message: str, /, **values: object) -> str:
    """Return a message in the current language, with `{placeholders}` filled in.

    Without values, braces are plain text.
    """
    translated = _current.get().translations.gettext(message)
    return translated.format(**values) if values else translated


def ngettext(singular: str, plural: str, n: int, /, **values: object) -> str:
    """Return the plural form of a message for a number. `{n}` is that number, formatted."""
    translated = _current.get().translations.ngettext(singular, plural, n)
    return translated.format(n=format_number(n), **values)


def pgettext(context: str, message: str, /, **values: object) -> str:
    """Translate a message that has several meanings. The context tells translators which."""
    translated = _current.get().translations.pgettext(context, message)
    return translated.format(**values) if values else translated


def translate(text: str) -> str:
    """Return a phrase in the current language, and any other text unchanged."""
    if not isinstance(text, Phrase) or _current.get() is ENGLISH:
        return text
    values = {
        name: translate(value) if isinstance(value, Phrase) else value
        for name, value in text.values.items()
    }
    if isinstance(text, CountPhrase):
        return ngettext(text.singular, text.template, text.number, **values)
    template = _current.get().translations.gettext(text.template)
    return template.format_map(values) if values else template


def translate_error(error: RefractError) -> str:
    """Return the message of an error in the current language. `error.message` itself is English."""
    return translate(error.message)


def translate_filled(text: str, templates: Sequence[str]) -> str:
    """Return a stored English sentence in the current language.

    `templates` are the messages that such sentences are made of. The first match is translated and
    filled with the values found in the text, which may be such sentences themselves. Text that
    matches none is returned unchanged.
    """
    for template in templates:
        match = _compile_template(template).fullmatch(text)
        if match is not None:
            values = {
                name: translate_filled(value, templates)
                for name, value in match.groupdict().items()
            }
            return gettext(template, **values)
    return text


def translate_stored_error(code: str, message: str) -> str:
    """Return the message of an error that was stored with its code, in the current language.

    The message of an error that isn't ours is returned unchanged.
    """
    templates = [
        error.template for error in _iter_error_classes(RefractError) if error.code == code
    ]
    translated = translate_filled(message, templates)
    return gettext(message) if translated == message and message else translated


def _iter_error_classes(error: type[RefractError]) -> Iterator[type[RefractError]]:
    yield error
    for subclass in error.__subclasses__():
        yield from _iter_error_classes(subclass)


@cache
def _compile_template(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    literals, names = parts[::2], parts[1::2]
    pattern = re.escape(literals[0])
    for name, literal in zip(names, literals[1:], strict=True):
        pattern += f"(?P<{name}>.+){re.escape(literal)}"
    return re.compile(pattern, re.DOTALL)


def mark(message: str) -> str:
    """Return the message unchanged, but extract it for a later `gettext` of a variable."""
    return message


@dataclass(frozen=True)
class LazyText:
    """A message of a constant, which is translated when it is rendered."""

    message: str

    def __str__(self) -> str:
        return gettext(self.message)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def lazy_gettext(message: str) -> LazyText:
    """Mark a message of a constant for translation. Templates and `str` translate it."""
    return LazyText(message)
