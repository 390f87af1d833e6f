"""Every template is rendered in a pseudo-locale; text that is not bracketed is untranslated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from refract.web.i18n import ENGLISH, use_locale
from tests.browser.gallery import environment
from tests.browser.samples import PAGES
from tests.pseudo import CLOSING, OPENING, PSEUDO

SOURCE = Path(__file__).parents[2] / "src/refract"
SPOKEN = {"aria-label", "aria-description", "title", "placeholder", "alt", "label"}
"""Attributes that are read by people or screen readers."""
SILENT = {"script", "style", "code", "kbd", "time"}
"""Elements without messages: code, keys, and times that filters have formatted."""
VOID = {
    "area",
    "base",
    "br",
    "col",
    "embed",
    "hr",
    "img",
    "input",
    "link",
    "meta",
    "source",
    "track",
    "wbr",
    "path",
    "rect",
    "use",
}
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_NAMES = re.compile(r"\w+://\S+|xn--\S+|\bRefract\b")
"""URLs, hosts in ASCII, and our own name."""


class Reader(HTMLParser):
    """Collects the texts of a page that are outside of brackets."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.outside: list[str] = []
        self._depth = 0
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in VOID and (self._silent or tag in SILENT or given.get("translate") == "no"):
            self._silent.append(tag)
        spoken = [value or "" for name, value in attrs if name in SPOKEN]
        if tag == "meta" and given.get("name") == "description":
            spoken.append(given.get("content") or "")
        if tag == "input" and given.get("type") in {"submit", "button"}:
            spoken.append(given.get("value") or "")
        self.outside += [
            _strip_brackets(text)[0] for text in spoken if not self._silent or tag in SILENT
        ]

    def handle_endtag(self, tag: str) -> None:
        if self._silent and tag == self._silent[-1]:
            self._silent.pop()

    def handle_data(self, data: str) -> None:
        if not self._silent:
            text, self._depth = _strip_brackets(data, self._depth)
            self.outside.append(text)


def _strip_brackets(text: str, depth: int = 0) -> tuple[str, int]:
    """Return the text outside of brackets, and the depth at its end."""
    kept = []
    for character in text:
        depth += (character == OPENING) - (character == CLOSING)
        if depth == 0 and character != CLOSING:
            kept.append(character)
    return "".join(kept), depth


def _texts_in(value: Any) -> Iterator[str]:
    """Yield every text in the data of a sample, recursively."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts_in(key)
            yield from _texts_in(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _texts_in(inner)
    elif isinstance(value, BaseModel):
        yield from _texts_in(value.model_dump())
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts_in(getattr(value, field.name))
    elif hasattr(value, "__dict__") and not isinstance(value, type | Enum):
        yield from _texts_in(
            {name: inner for name, inner in vars(value).items() if not name.startswith("_")}
        )


def find_untranslated(name: str) -> list[str]:
    """Return the texts of a sample page that come neither from a catalogue nor from its data."""
    page = PAGES[name]
    with use_locale(PSEUDO):
        reader = Reader()
        reader.feed(environment().get_template(page.template).render(page.context))
    given = list(_texts_in(page.context))
    given += [_NAMES.sub("", text) for text in given]
    data = "\n".join(" ".join(text.split()) for text in given).casefold()
    texts = [
        " ".join(_NAMES.sub("", text).split()).strip(" ·,.:;/+()“”…→") for text in reader.outside
    ]
    return sorted({text for text in texts if _LETTERS.search(text) and text.casefold() not in data})


@pytest.mark.parametrize("name", PAGES)
def test_no_words_outside_the_catalogues(name: str) -> None:
    if not PAGES[name].template.startswith("gallery_"):
        assert find_untranslated(name) == []


def test_a_page_in_english_after_one_in_another_language_is_english() -> None:
    """An imported template is evaluated once: top-level messages would keep a language."""
    env = environment()
    for page in PAGES.values():
        with use_locale(PSEUDO):
            env.get_template(page.template).render(page.context)
    for name, page in PAGES.items():
        with use_locale(ENGLISH):
            assert OPENING not in env.get_template(page.template).render(page.context), name


def _english_arguments(module: Path) -> Iterator[str]:
    """Yield literals that a module passes to a page as its title, or as a flash message."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        titles = [keyword.value for keyword in node.keywords if keyword.arg == "page_title"]
        said = node.args[2:3] if ast.unparse(node.func) == "flash.add" else []
        for value in [*titles, *said]:
            parts = value.values if isinstance(value, ast.JoinedStr) else [value]
            if any(
                isinstance(part, ast.Constant) and _LETTERS.search(_NAMES.sub("", str(part.value)))
                for part in parts
            ):
                yield ast.unparse(value)


def test_titles_and_messages_of_pages_are_translated() -> None:
    found = {
        str(path.relative_to(SOURCE)): list(_english_arguments(path))
        for path in SOURCE.rglob("*.py")
    }

    assert {module: literals for module, literals in found.items() if literals} == {}
