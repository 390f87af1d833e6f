"""Message catalogues: extract what is marked for translation, and bring every language up to date.

    python -m tools.messages            write refract.pot, update every refract.po, list problems
    python -m tools.messages add fr     begin the catalogue of another language

A message that is gone is dropped, one that is new is added without a translation. Nothing is
guessed: there are no fuzzy messages.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po

from refract.core.errors import KINDS
from refract.core.net.errors import FetchError
from refract.core.net.metadata import UnreadablePage
from refract.web.i18n import DOMAIN, LOCALES
from tools.docs import error_classes

SOURCE = LOCALES.parent
TEMPLATE = LOCALES / f"{DOMAIN}.pot"
COMMENT = "Translators:"
"""Begins a comment that is for translators."""
Keywords = dict[str, tuple[int | tuple[int, str], ...] | None]
KEYWORDS: dict[str, Keywords] = {
    "python": {
        "gettext": None,
        "lazy_gettext": None,
        "mark": None,
        "Phrase": None,
        "CountPhrase": (1, 2),
        "ngettext": (1, 2),
        "pgettext": ((1, "c"), 2),
    },
    "jinja2": {
        "_": None,
        "_html": None,
        "ngettext": (1, 2),
        "ngettext_html": (1, 2),
        "pgettext": ((1, "c"), 2),
    },
    "javascript": {"t": None, "tn": (1, 2)},
}
METHODS = {".py": "python", ".html": "jinja2", ".js": "javascript"}
OPTIONS: dict[str, dict[str, Any]] = {
    "jinja2": {"trim_blocks": "true", "lstrip_blocks": "true", "silent": "false"}
}
_PYTHON_CALLS = (b"gettext(", b"mark(", b"Phrase(")
_WITHOUT_PAGES = (
    "refract.cli.",
    "refract.core.db.schema_state",
    "refract.migrations.",
    "refract.server.",
    "refract.transfer.",
)
"""Modules whose errors only an operator sees, in English."""
_WITH_PAGES = "refract.server.node"
"""The exception: the admin page shows what is wrong with a node."""
_PLACEHOLDER = re.compile(r"\{\w*\}")
_LETTER = re.compile(r"[A-Za-z]")
_TAG = re.compile(r"</?\w+")
_NOTE = "# Messages of Refract. Written by `make messages`; translations are edited by hand."


def source_files() -> Iterator[Path]:
    """Every file that may contain messages, in a stable order."""
    for path in sorted(SOURCE.rglob("*")):
        if (
            path.suffix in METHODS
            and not path.name.endswith(".min.js")
            and "migrations" not in path.parts
        ):
            yield path


def extract_messages() -> Catalog:
    """Return what is marked in templates, Python and JavaScript, with the files it comes from."""
    catalogue = Catalog(domain=DOMAIN)
    for path in source_files():
        method = METHODS[path.suffix]
        content = path.read_bytes()
        if method == "python" and not any(name in content for name in _PYTHON_CALLS):
            continue  # the tokenizer is slow, and few modules have words for people
        found = extract(
            method,
            BytesIO(content),
            KEYWORDS[method],
            [COMMENT],
            OPTIONS.get(method, {}),
            strip_comment_tags=True,
        )
        place = str(path.relative_to(SOURCE))
        for _, text, comments, context in found:
            catalogue.add(text, locations=[(place, 0)], auto_comments=comments, context=context)
    for error, template in _iter_error_messages():
        place = f"{error.__module__.removeprefix('refract.').replace('.', '/')}.py"
        catalogue.add(template, locations=[(place, 0)])
    for message in catalogue:
        message.locations = sorted(set(message.locations))
        message.flags.clear()  # placeholders are the same everywhere and checked by our own test
    return catalogue


def _iter_error_messages() -> Iterator[tuple[type[Exception], str]]:
    """Yield the errors that a page can show, with their messages: the docstrings of the classes."""
    for error in (*KINDS, *error_classes()):
        shown = error.__module__ == _WITH_PAGES or not error.__module__.startswith(_WITHOUT_PAGES)
        if shown and _LETTER.search(_PLACEHOLDER.sub("", error.template)):
            yield error, error.template
    failures: set[type[Exception]] = {FetchError, UnreadablePage, *_iter_subclasses(FetchError)}
    for failure in failures:
        yield failure, " ".join((failure.__doc__ or "").split())


def _iter_subclasses(error: type[FetchError]) -> Iterator[type[FetchError]]:
    """Yield the errors of fetches: their docstrings are stored with items and shown on pages."""
    for subclass in error.__subclasses__():
        yield subclass
        yield from _iter_subclasses(subclass)


def update_catalogue(template: Catalog, folder: str, known: Catalog | None = None) -> Catalog:
    """Return the catalogue of a language with exactly the messages of the template, and its
    translations of them.
    """
    known = known or read_po(BytesIO(catalogue_path(folder).read_bytes()), locale=folder)
    updated = Catalog(folder, domain=DOMAIN)
    for message in template:
        if not message.id:
            continue
        old = known.get(message.id, message.context)
        string = old.string if old is not None and _is_usable(old, message) else ""
        updated.add(
            message.id,
            string,
            locations=message.locations,
            auto_comments=message.auto_comments,
            user_comments=old.user_comments if old is not None else (),
            context=message.context,
        )
    for message in updated:
        message.flags.clear()
    return updated


def _is_usable(old: Message, new: Message) -> bool:
    """A translation that an editor only guessed (fuzzy), or of another shape, is none."""
    return not old.fuzzy and old.pluralizable == new.pluralizable


def catalogue_path(folder: str) -> Path:
    return LOCALES / folder / "LC_MESSAGES" / f"{DOMAIN}.po"


def catalogue_folders() -> list[str]:
    return sorted(path.parents[1].name for path in LOCALES.glob(f"*/LC_MESSAGES/{DOMAIN}.po"))


def find_problems(message: Message, plural_forms: int) -> Iterator[str]:
    """Say what is wrong with a translation.

    Missing words, placeholders or tags that differ from the message's.
    """
    originals, strings = _forms(message.id), _forms(message.string)
    if not all(strings):
        yield f"{originals[0]!r} is not translated"
        return
    if message.pluralizable and len(strings) != plural_forms:
        yield f"{originals[0]!r} has {len(strings)} forms instead of {plural_forms}"
    wanted = set(_PLACEHOLDER.findall(originals[-1]))
    for string in strings:
        spoken = (
            {"{n}"} if message.pluralizable else set()
        )  # a language may say the number in words
        if not wanted - spoken <= set(_PLACEHOLDER.findall(string)) <= wanted:
            yield f"{string!r} has other placeholders than {originals[-1]!r}"
        if sorted(_TAG.findall(string)) != sorted(_TAG.findall(originals[-1])):
            yield f"{string!r} has other tags than {originals[-1]!r}"
    if any("\n" in text for text in (*originals, *strings)):
        yield f"{originals[0]!r} is more than one line"
    if any(text != text.strip() for text in (*originals, *strings)):
        yield f"{originals[0]!r} or its translation begins or ends with spaces"


def _forms(text: str | Sequence[str] | None) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text or ("",))


def to_text(catalogue: Catalog) -> str:
    """Return a catalogue as its file holds it.

    By message, one line each, so that branches merge.
    """
    head = [
        _NOTE,
        'msgid ""',
        'msgstr ""',
        *(f'"{name}: {value}\\n"' for name, value in _headers(catalogue)),
    ]
    out = BytesIO()
    write_po(out, catalogue, width=0, sort_output=True, include_lineno=False, omit_header=True)
    return "\n".join(head) + "\n\n" + out.getvalue().decode()


def _headers(catalogue: Catalog) -> Iterator[tuple[str, str]]:
    """Only what readers of the file need.

    A date, or the version of a tool, would be a conflict in every merge.
    """
    if catalogue.locale is not None:
        yield "Language", str(catalogue.locale)
        yield "Plural-Forms", catalogue.plural_forms
    yield "MIME-Version", "1.0"
    yield "Content-Type", "text/plain; charset=utf-8"
    yield "Content-Transfer-Encoding", "8bit"


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["add"]:
        catalogue_path(arguments[1]).parent.mkdir(parents=True, exist_ok=True)
        catalogue_path(arguments[1]).write_text(
            to_text(Catalog(arguments[1], domain=DOMAIN)), encoding="utf-8"
        )
    template = extract_messages()
    TEMPLATE.write_text(to_text(template), encoding="utf-8")
    for folder in catalogue_folders():
        updated = update_catalogue(template, folder)
        catalogue_path(folder).write_text(to_text(updated), encoding="utf-8")
        problems = [
            problem
            for message in updated
            if message.id
            for problem in find_problems(message, updated.num_plurals)
        ]
        print(f"{folder}: {len(updated)} messages, {len(problems)} to put right")
        for problem in problems:
            print(f"  {problem}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
