"""A link as a file describes it, before it is created."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from refract.records.reader import UnreadableRow
from refract.records.values import clip_text, to_plain_text

MAX_TITLE = 200
MAX_NOTES = 2000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A link as a file describes it. `given` has the fields of a new link, not validated."""

    where: str
    given: Mapping[str, Any]
    number: int | None = None
    """Its id, in our own files."""
    code: str | None = None
    """Its random code, in our own files."""
    disabled: bool = False
    remarks: Sequence[str] = ()
    """Parts of the record that cannot be imported."""
    codes: Sequence[str] = ()
    """Its codes in another system, whose addresses are to lead where they did: each becomes a name,
    or is kept as it is if it can't be one."""
    other_names: Sequence[str] = ()
    """Its names on other domains, after their hosts, in our own files."""
    created_at: datetime | None = None
    clicks_left: int | None = None
    """What is left of its click limit."""
    keeps_codes: bool = False
    """Whether none of its codes becomes a name: in our own files."""
    host: str | None = None
    """The domain that its codes belong to in another system."""

    @property
    def text(self) -> str:
        return str(self.given.get("destination", ""))

    @property
    def names(self) -> Sequence[str]:
        names = self.given.get("names", ())
        given = [str(name) for name in names] if isinstance(names, list | tuple) else [str(names)]
        return [*given, *self.codes]


LinkRow = Candidate | UnreadableRow


@dataclass(slots=True)
class LinkFields:
    """The fields of a record while it becomes a candidate, with remarks about the rest."""

    given: dict[str, Any] = field(default_factory=dict)
    number: int | None = None
    code: str | None = None
    disabled: bool = False
    remarks: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    other_names: list[str] = field(default_factory=list)
    keeps_codes: bool = False
    created_at: datetime | None = None
    host: str | None = None
    clicks_left: int | None = None

    def set_text(self, name: str, value: Any, limit: int) -> None:
        """Set a title or notes from another system, shortened to our limits."""
        if text := to_plain_text(value).strip():
            self.given[name] = clip_text(name, text, limit, self.remarks)
