"""Jinja functions and filters for messages, numbers and dates."""

from jinja2 import Environment
from markupsafe import Markup

from refract.core.phrases import Phrase
from refract.web.formats import (
    format_date,
    format_datetime,
    format_list,
    format_percent,
    format_relative,
    format_time,
)
from refract.web.i18n import (
    LANGUAGES,
    current_locale,
    format_number,
    gettext,
    ngettext,
    pgettext,
    translate,
    use_locale,
)


def html_gettext(message: str, /, **values: object) -> Markup:
    """Translate a message that contains tags. Values are escaped, the message is trusted."""
    return Markup(gettext(message)).format(**values)  # noqa: S704 - from the catalogue


def html_ngettext(singular: str, plural: str, n: int, /, **values: object) -> Markup:
    """Translate a plural message that contains tags."""
    message = current_locale().translations.ngettext(singular, plural, n)
    return Markup(message).format(n=format_number(n), **values)  # noqa: S704 - from the catalogue


def _finalize(value: object) -> object:
    """Translate a phrase that a template outputs, such as the message of an error."""
    return translate(value) if isinstance(value, Phrase) else value


FUNCTIONS = {
    "_": gettext,
    "_html": html_gettext,
    "ngettext": ngettext,
    "ngettext_html": html_ngettext,
    "pgettext": pgettext,
    "locale": current_locale,
}
FILTERS = {
    "number": format_number,
    "percent": format_percent,
    "date": format_date,
    "time": format_time,
    "datetime": format_datetime,
    "relative": format_relative,
    "conjunction": format_list,
}


def install_i18n(environment: Environment) -> None:
    """Give an environment the functions and filters that CONTRIBUTING.md describes."""
    environment.globals.update(FUNCTIONS)
    environment.filters.update(FILTERS)
    environment.finalize = _finalize


def load_languages() -> None:
    """Read every catalogue and its formats before the first page. Slow: call it in a thread."""
    for locale in LANGUAGES.values():
        with use_locale(locale):
            _ = (
                locale.translations,
                locale.javascript,
                format_number(0),
                format_percent(0),
                format_list([]),
            )
