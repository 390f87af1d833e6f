"""What a file says of a bookmark, before anything is made of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from refract.links.importing.rows import BadRow, Unreadable, plain
from refract.tags.errors import InvalidTag
from refract.tags.grammar import check_color, check_personal, personal_key

LONGEST_TEXT = 10_000
LONGEST_TITLE = 255
LONGEST_SUMMARY = 2_000
MOST_TAGS = 50
_DAWN = datetime(1970, 1, 1, tzinfo=UTC)
_WHITE = re.compile(r"[^\S\n]+")

__all__ = ["BadRow", "Bookmark", "Reading", "Row", "TagRow", "Unreadable", "moment", "plain"]


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An item as a file describes it: an address, or the text of a note."""

    where: str
    text: str
    title: str | None = None
    summary: str | None = None
    tags: Sequence[str] = ()
    created_at: datetime | None = None
    confirmed_at: datetime | None = None
    own: bool = False
    """In a file of ours, which is taken at its word."""
    waiting: bool = False
    """It was not confirmed yet, in a file of ours."""
    page: Mapping[str, Any] | None = None
    """The saved page, in a file of ours."""
    remarks: Sequence[str] = ()
    """What of the record has no place here."""


@dataclass(frozen=True, slots=True)
class TagRow:
    """A tag with its colour and the names that mean it, in a file of ours."""

    where: str
    name: str
    color: str
    aliases: Sequence[str] = ()

    @property
    def text(self) -> str:
        return f"#{self.name}"


Row = Bookmark | TagRow | Unreadable


@dataclass(slots=True)
class Reading:
    """The fields of one record on their way to a bookmark, with remarks about what was left behind."""

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

    def titled(self, value: Any) -> None:
        """A title in one line, cut where ours are shorter. Many systems repeat the address where they know none."""
        title = " ".join(plain(value).split())
        if title and (self.own or title != self.text):
            self.title = self._cut("title", title, LONGEST_TITLE)

    def summed_up(self, *values: Any) -> None:
        """What there is to read about it, apart by empty lines."""
        texts = list(dict.fromkeys(plain(value).strip() for value in values))
        summary = "\n\n".join(text for text in texts if text)
        self.summary = self._cut("summary", summary, LONGEST_SUMMARY) if summary else None

    def noted(self, value: Any) -> None:
        self.text = self._cut("text", plain(value).strip(), LONGEST_TEXT)

    def tagged(self, names: Iterable[Any]) -> None:
        """Tags that can be tags here, each once."""
        known = {personal_key(name) for name in self.tags}
        for name in names:
            typed = _WHITE.sub(" ", plain(name)).strip()
            if not typed:
                continue
            try:
                clean = check_personal(typed)
            except InvalidTag:
                self.remarks.append(f'tag left out: "{typed[:60]}"')
                continue
            if personal_key(clean) not in known and len(self.tags) < MOST_TAGS:
                known.add(personal_key(clean))
                self.tags.append(clean)

    def _cut(self, name: str, text: str, most: int) -> str:
        if len(text) > most:
            self.remarks.append(f"{name} cut to {most} characters")
        return text[:most].rstrip()

    def bookmark(self, where: str) -> Bookmark:
        if not self.text.strip():
            problem = "It has neither an address nor a text."
            raise BadRow(problem)
        return Bookmark(where, self.text, self.title, self.summary, tuple(self.tags), self.created_at, self.confirmed_at, self.own,
                        self.waiting, self.page, tuple(self.remarks))  # fmt: skip


def tag_row(where: str, record: Mapping[str, Any]) -> TagRow:
    try:
        name, color = check_personal(plain(record.get("name"))), check_color(plain(record.get("color")))
        aliases = record.get("aliases") or []
        return TagRow(where, name, color, [check_personal(plain(alias)) for alias in aliases] if isinstance(aliases, list) else [])
    except InvalidTag as wrong:
        raise BadRow(wrong.message) from wrong


def moment(value: Any) -> datetime | None:
    """A moment as systems write it: RFC 3339, or seconds, milli- or microseconds since 1970. What is none of these is no moment."""
    text = plain(value).strip()
    if not text:
        return None
    try:
        if re.fullmatch(r"\d{1,17}(\.\d{1,9})?", text):
            seconds = float(text)
            while seconds > 1e11:  # the year 5138: it must have been in smaller units
                seconds /= 1000
            return datetime.fromtimestamp(seconds, UTC) if seconds else None
        read = datetime.fromisoformat(text)
        found = read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return found if found >= _DAWN else None
