"""What a file says of a link, before anything is made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from refract.core.errors import Invalid

LONGEST_TITLE = 200
LONGEST_NOTES = 2000


class UnreadableFile(Invalid):
    """{problem}"""


class BadRow(Exception):
    """Why a record cannot become a link; the message is for people."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A link as a file describes it: `given` has the fields of a new link, unchecked."""

    where: str
    given: Mapping[str, Any]
    number: int | None = None
    """The id it had, in a file of ours."""
    code: str | None = None
    """The random code it had, likewise."""
    disabled: bool = False
    remarks: Sequence[str] = ()
    """What of the record has no place here."""

    @property
    def text(self) -> str:
        return str(self.given.get("destination", ""))

    @property
    def names(self) -> Sequence[str]:
        names = self.given.get("names", ())
        return [str(name) for name in names] if isinstance(names, list | tuple) else [str(names)]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that is none, and why."""

    where: str
    why: str
    text: str = ""
    names: Sequence[str] = ()


Row = Candidate | Unreadable


@dataclass(slots=True)
class Reading:
    """The fields of one record on their way to a candidate, with remarks about what was left behind."""

    given: dict[str, Any] = field(default_factory=dict)
    number: int | None = None
    code: str | None = None
    disabled: bool = False
    remarks: list[str] = field(default_factory=list)

    def words(self, name: str, value: Any, most: int) -> None:
        """A title or notes of another system, cut where ours are shorter."""
        text = plain(value).strip()
        if len(text) > most:
            self.remarks.append(f"{name} cut to {most} characters")
        if text:
            self.given[name] = text[:most]


def plain(value: Any) -> str:
    """A value of a record as text. JSON may hold numbers where text is meant, such as a code `123`."""
    if value is None:
        return ""
    if isinstance(value, bool | Mapping | list):
        problem = f"There is something else where text is expected: {str(value)[:40]}."
        raise BadRow(problem)
    return str(value)


def moment(value: Any, name: str) -> datetime | None:
    """A moment as systems write it: RFC 3339, or a plain date and time, which is taken as UTC."""
    text = plain(value).strip()
    if not text or text.startswith("0000-00-00"):
        return None
    try:
        read = datetime.fromisoformat(text)
        return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as wrong:
        problem = f'{name}: "{text[:40]}" is not a moment such as 2026-12-31T18:00:00Z.'
        raise BadRow(problem) from wrong


def refuse_bad_text(values: Any) -> None:
    """U+0000 and bytes that were no text are refused wherever they stand."""
    if isinstance(values, str):
        if "\0" in values:
            problem = "It contains the character U+0000."
            raise BadRow(problem)
        try:
            values.encode()
        except UnicodeEncodeError as wrong:
            problem = "It is not valid text in the encoding of the file: save the file as UTF-8, or name its encoding."
            raise BadRow(problem) from wrong
    elif isinstance(values, Mapping):
        for key, value in values.items():
            refuse_bad_text(key)
            refuse_bad_text(value)
    elif isinstance(values, list):
        for value in values:
            refuse_bad_text(value)
