"""Bookmarks and tags as files describe them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from refract.records.errors import BadRecord
from refract.records.reader import UnreadableRow
from refract.records.values import clip_text, to_plain_text
from refract.tags.errors import InvalidTag
from refract.tags.grammar import check_color, check_personal, personal_key

MAX_TEXT = 10_000
MAX_TITLE = 255
MAX_SUMMARY = 2_000
MAX_NOTES = 10_000
MAX_TAGS = 50
_WHITE = re.compile(r"[^\S\n]+")


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An item as a file describes it: a URL, or the text of a note."""

    where: str
    text: str
    title: str | None = None
    summary: str | None = None
    tags: Sequence[str] = ()
    created_at: datetime | None = None
    confirmed_at: datetime | None = None
    own: bool = False
    """From a file of Refract, whose values are used unchanged."""
    waiting: bool = False
    """Not confirmed yet, in a file of Refract."""
    page: Mapping[str, Any] | None = None
    """The saved page, in a file of Refract."""
    remarks: Sequence[str] = ()
    """Parts of the record that could not be imported."""
    notes: str | None = None
    unread: bool = False
    favorite: bool = False
    archived: bool = False


@dataclass(frozen=True, slots=True)
class TagRow:
    """A tag with its colour and aliases, in a file of Refract."""

    where: str
    name: str
    color: str
    aliases: Sequence[str] = ()

    @property
    def text(self) -> str:
        return f"#{self.name}"


BookmarkRow = Bookmark | TagRow | UnreadableRow


@dataclass(slots=True)
class BookmarkFields:
    """The fields of a record that becomes a bookmark, with remarks about the rest."""

    text: str = ""
    title: str | None = None
    summary: str | None = None
    tags: list[str] = field(default_factory=list)
    created_at: datetime | None = None
    confirmed_at: datetime | None = None
    own: bool = False
    waiting: bool = False
    page: Mapping[str, Any] | None = None
    remarks: list[str] = field(default_factory=list)
    notes: str | None = None
    unread: bool = False
    favorite: bool = False
    archived: bool = False

    def set_title(self, value: Any) -> None:
        """Set the title to one line, shortened.

        It is ignored if it repeats the URL, as many systems do for want of a title.
        """
        title = " ".join(to_plain_text(value).split())
        if title and (self.own or title != self.text):
            self.title = self._clip("title", title, MAX_TITLE)

    def set_summary(self, value: Any) -> None:
        summary = to_plain_text(value).strip()
        self.summary = self._clip("summary", summary, MAX_SUMMARY) if summary else None

    def set_notes(self, value: Any) -> None:
        """Set the user's own words about the item."""
        notes = to_plain_text(value).strip()
        self.notes = self._clip("notes", notes, MAX_NOTES) if notes else None

    def set_states(self, *, unread: Any = None, favorite: Any = None, archived: Any = None) -> None:
        """Set the reading states from values as systems write them: true, `1` or `yes`."""
        self.unread, self.favorite, self.archived = map(_is_yes, (unread, favorite, archived))

    def set_text(self, value: Any) -> None:
        """Set the text of a note."""
        self.text = self._clip("text", to_plain_text(value).strip(), MAX_TEXT)

    def add_tags(self, names: Iterable[Any]) -> None:
        """Add names that are valid tags, each once."""
        known = {personal_key(name) for name in self.tags}
        for name in names:
            typed = _WHITE.sub(" ", to_plain_text(name)).strip()
            if not typed:
                continue
            try:
                clean = check_personal(typed)
            except InvalidTag:
                self.remarks.append(f'skipped tag "{typed[:60]}"')
                continue
            if personal_key(clean) not in known and len(self.tags) < MAX_TAGS:
                known.add(personal_key(clean))
                self.tags.append(clean)

    def _clip(self, name: str, text: str, limit: int) -> str:
        return clip_text(name, text, limit, self.remarks).rstrip()

    def to_bookmark(self, where: str) -> Bookmark:
        if not self.text.strip():
            raise BadRecord("No URL or text.")
        return Bookmark(
            where,
            self.text,
            self.title,
            self.summary,
            tuple(self.tags),
            self.created_at,
            self.confirmed_at,
            self.own,
            self.waiting,
            self.page,
            tuple(self.remarks),
            self.notes,
            self.unread,
            self.favorite,
            self.archived,
        )


def _is_yes(value: Any) -> bool:
    return value is True or str(value).strip().lower() in {"1", "true", "yes"}


def read_tag(where: str, record: Mapping[str, Any]) -> TagRow:
    """Return a tag of a file of Refract. Raises `BadRecord`."""
    try:
        name, color = (
            check_personal(to_plain_text(record.get("name"))),
            check_color(to_plain_text(record.get("color"))),
        )
        aliases = record.get("aliases") or []
        return TagRow(
            where,
            name,
            color,
            (
                [check_personal(to_plain_text(alias)) for alias in aliases]
                if isinstance(aliases, list)
                else []
            ),
        )
    except InvalidTag as exc:
        raise BadRecord(exc.message) from exc
