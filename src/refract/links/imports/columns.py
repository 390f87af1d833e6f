"""Tables of no system that we know: which heading means which of our fields. Pure."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from refract.links.imports.rows import MAX_NOTES, MAX_TITLE, LinkFields
from refract.links.imports.systems import (
    apply_creation,
    apply_tags,
    parse_short_url,
    split_values,
    start_foreign_record,
)
from refract.records.errors import UnreadableFile
from refract.records.reader import Fields
from refract.records.values import guess_moment, to_plain_text

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "destination": (
        *("destination", "destination url", "long url", "original url", "target url", "target"),
        *("full url", "redirect url", "redirect to", "redirect", "long link", "original link"),
        *("url", "link", "website", "address"),
    ),
    "code": (
        *("slug", "keyword", "short code", "code", "key", "alias", "back half", "custom back half"),
        *("custom slug", "path", "name", "short url", "short link", "shortlink", "short", "from"),
    ),
    "title": ("title", "link title", "page title", "label"),
    "notes": ("notes", "note", "description", "comment", "comments"),
    "tags": ("tags", "tag", "labels", "categories", "category"),
    "created_at": ("created at", "created", "date created", "creation date", "timestamp", "date"),
    "expires_at": ("expires at", "expires", "expiration date", "expiry", "expire in"),
}
"""Our fields, and the headings that they are guessed from, surest first."""
_SEPARATORS = re.compile(r"[\s_./-]+")


def parse_mapping(texts: Sequence[str]) -> dict[str, str]:
    """Return the heading of each field from texts like `title=Label`. Raises `UnreadableFile`."""
    found: dict[str, str] = {}
    for text in texts:
        field, _, heading = text.partition("=")
        if field.strip() not in FIELDS or not heading.strip():
            problem = (
                f'"{text[:80]}" is not FIELD=HEADING, where FIELD is one of {", ".join(FIELDS)}.'
            )
            raise UnreadableFile(problem=problem)
        found[field.strip()] = heading.strip()
    return found


def guess_mapping(headings: Sequence[str]) -> dict[str, str]:
    """Return the heading of each field that can be guessed. A heading means one field."""
    by_words: dict[str, str] = {}
    for name in headings:
        by_words.setdefault(_SEPARATORS.sub(" ", _split_camel(name)).strip(), name)
    found: dict[str, str] = {}
    for field, aliases in FIELDS.items():
        free = (by_words[alias] for alias in aliases if alias in by_words)
        guess = next((name for name in free if name not in found.values()), None)
        if guess is not None:
            found[field] = guess
    return found


def _split_camel(heading: str) -> str:
    """Return a heading in lower case with its usual compounds divided."""
    return re.sub(r"(url|link|at|code|date)\b", r" \1", heading.lower())


def read_columns(fields: Fields, _now: datetime) -> LinkFields:
    """Read a record by our fields. A code may also be a whole short URL."""
    code = to_plain_text(fields.get("code")).strip()
    host: str | None = None
    if code.lower().startswith(("http://", "https://")):
        host, code = parse_short_url(code)
    link = start_foreign_record(fields.get("destination"), code.strip("/"))
    link.host = host
    link.set_text("title", fields.get("title"), MAX_TITLE)
    link.set_text("notes", fields.get("notes"), MAX_NOTES)
    apply_tags(link, split_values(to_plain_text(fields.get("tags"))))
    apply_creation(link, fields.get("created_at"))
    link.given["expires_at"] = guess_moment(fields.get("expires_at"))
    return link
