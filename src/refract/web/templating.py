"""Template rendering, with functions and filters for messages, numbers and dates.

Autoescaping is on and scripts are never inline.
"""

import contextlib
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    FileSystemBytecodeCache,
    FileSystemLoader,
    PrefixLoader,
    StrictUndefined,
    select_autoescape,
)
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from refract import __version__
from refract.core.lookalikes import to_ascii_url
from refract.core.phrases import Phrase
from refract.core.words import find_spans
from refract.web import template_compiler
from refract.web.api_guides import mark_code
from refract.web.formats import (
    format_bytes,
    format_date,
    format_datetime,
    format_list,
    format_percent,
    format_relative,
    format_time,
    load_language,
)
from refract.web.i18n import (
    ENGLISH,
    current_locale,
    format_number,
    gettext,
    ngettext,
    pgettext,
    translate,
)
from refract.web.static_files import list_imports, static
from refract.web.template_compiler import TemplateEnvironment, remember, remember_rows


def html_gettext(message: str, /, **values: object) -> Markup:
    """Translate a message that contains tags. Values are escaped, the message is trusted."""
    return Markup(gettext(message)).format(**values)  # noqa: S704 - from the catalogue


def html_ngettext(singular: str, plural: str, n: int, /, **values: object) -> Markup:
    """Translate a plural message that contains tags."""
    message = current_locale().translations.ngettext(singular, plural, n)
    return Markup(message).format(n=format_number(n), **values)  # noqa: S704 - from the catalogue


def mark_words(text: str, words: Sequence[str]) -> Markup:
    """Return a text in which the words of a search are marked."""
    parts, last = [], 0
    for start, end in find_spans(text, words):
        parts += [escape(text[last:start]), _MARKED.format(text[start:end])]
        last = end
    return Markup("").join([*parts, escape(text[last:])])


def _finalize(value: object) -> object:
    """Translate a phrase that a template outputs, such as the message of an error."""
    return translate(value) if isinstance(value, Phrase) else value


_MARKED = Markup("<mark>{}</mark>")
FUNCTIONS = {
    "_": gettext,
    "_html": html_gettext,
    "ngettext": ngettext,
    "ngettext_html": html_ngettext,
    "pgettext": pgettext,
    "locale": current_locale,
    "remember": remember,
    "remember_rows": remember_rows,
}
FILTERS = {
    "number": format_number,
    "percent": format_percent,
    "bytes": format_bytes,
    "date": format_date,
    "time": format_time,
    "datetime": format_datetime,
    "relative": format_relative,
    "conjunction": format_list,
    "marked": mark_words,
}


def install_i18n(environment: Environment) -> None:
    """Give an environment the functions and filters that CONTRIBUTING.md describes."""
    environment.globals.update(FUNCTIONS)
    environment.filters.update(FILTERS)
    environment.finalize = _finalize


WEB_DIR = Path(__file__).parent


class TemplateBytecodeCache(FileSystemBytecodeCache):
    """Compiled templates beside the package, as Python keeps its own.

    Without it every start compiles all templates again. Where the directory cannot be written,
    nothing is kept. A changed template, or a changed environment, is compiled again.
    """

    def __init__(self, directory: Path = WEB_DIR / "__pycache__") -> None:
        super().__init__(str(directory), "template-%s.bytecode")
        sources = Path(__file__), Path(template_compiler.__file__)
        code = b"".join(path.read_bytes() for path in sources)
        self._environment_digest = hashlib.sha256(code).hexdigest()

    def get_source_checksum(self, source: str) -> str:
        return super().get_source_checksum(self._environment_digest + source)

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except Exception:  # noqa: BLE001 - a damaged file, in any way: compile again
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):  # read-only, or full
                super().dump_bytecode(bucket)


def template_loader(*features: str) -> BaseLoader:
    """Return a loader of shared templates (`frame.html`) and of features (`links/detail.html`).

    A feature's templates are in its own package. The caller names the features.
    """
    folders: dict[str, BaseLoader] = {
        feature: FileSystemLoader(WEB_DIR.parent / feature / "templates") for feature in features
    }
    return ChoiceLoader([FileSystemLoader(WEB_DIR / "templates"), PrefixLoader(folders)])


class TemplateRenderer:
    """Renders the shared templates and those of the named features."""

    def __init__(self, public_url: str, *features: str) -> None:
        self.environment = TemplateEnvironment(
            loader=template_loader(*features),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            bytecode_cache=TemplateBytecodeCache(),
        )
        install_i18n(self.environment)
        self.environment.filters["ascii_address"] = to_ascii_url
        self.environment.filters["code_marked"] = mark_code
        self.environment.globals.update(
            static=static,
            list_imports=list_imports,
            version=__version__,
            base_url=public_url,
            home="",  # of a page on another domain: the base URL
        )

    def compile_templates(self) -> None:
        """Compile all templates and load the formats of English, so that no request waits."""
        for name in self.environment.list_templates(extensions=["html"]):
            self.environment.get_template(name)
        load_language(ENGLISH)

    def render(self, template: str, **context: Any) -> str:
        return self.environment.get_template(template).render(**context)
