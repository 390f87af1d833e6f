"""What a link was at each version, and how two versions differ."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from refract.core.text import fold
from refract.links.models import Link, LinkChange, Visibility
from refract.names.grammar import name_key


class Action(StrEnum):
    """What was done to a link."""

    CREATED = "created"
    EDITED = "edited"
    REVERTED = "reverted"
    DISABLED = "disabled"
    ENABLED = "enabled"
    RENEWED = "renewed"
    DELETED = "deleted"
    UNDONE = "undone"
    NAMED = "named"
    NAME_RELEASED = "name_released"
    OWNER_ADDED = "owner_added"
    OWNER_REMOVED = "owner_removed"
    TRANSFERRED = "transferred"
    SHARED = "shared"
    UNSHARED = "unshared"


UNDOABLE = frozenset({Action.EDITED, Action.REVERTED, Action.DISABLED, Action.DELETED})

EDITABLE = ("destination", "title", "notes", "redirect_status", "visibility", "forward_query", "expires_at")
_STORED = ("audience",)
"""Read together with `visibility`; versions of older code lack it."""
_DESTINATION = ("href", "href_digest", "destination_host", "has_placeholders", "flagged", "flag_reason")
_LIFE = ("status", "disabled_by_admin", "deleted_at")
_TOLD = (*EDITABLE, "status", "tags", "names")


def snapshot(link: Link, names: Sequence[str], tags: Mapping[int, str]) -> dict[str, Any]:
    """Everything that a version is made of, as JSON. Tags are kept by id, so that a later renaming does no harm."""
    fields = {field: _plain(getattr(link, field)) for field in (*EDITABLE, *_STORED, *_DESTINATION, *_LIFE)}
    return {**fields, "names": list(names), "tags": {str(tag_id): name for tag_id, name in sorted(tags.items())}}


def first_version(link: Link, names: Sequence[str], tags: Mapping[int, str], creator_id: int | None) -> LinkChange:
    """The version that a link began with, made of a link that has not changed since."""
    return LinkChange(
        link_id=link.id,
        version=1,
        at=link.created_at,
        actor_id=creator_id,
        as_admin=False,
        action=Action.CREATED.value,
        changes={},
        snapshot=snapshot(link, names, tags),
    )


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What changed between two snapshots, in the words of the API."""
    return {
        field: {"from": _shown(field, before), "to": _shown(field, after)}
        for field in _TOLD
        if _shown(field, before) != _shown(field, after)
    }  # fmt: skip


def restore(link: Link, kept: Mapping[str, Any], *, life: bool) -> None:
    """Give a link the fields of an earlier version; its state too when `life` is set. Names and people stay as they are.

    What is known about a destination that did not change is newer than the version, and stays too.
    """
    moved = _DESTINATION if kept["destination"] != link.destination else ()
    link.audience = kept.get("audience")
    for field in (*EDITABLE, *moved, *(_LIFE if life else ())):
        value = kept.get(field) if field == "flag_reason" else kept[field]  # versions from before 0025 have none
        setattr(link, field, datetime.fromisoformat(value) if field.endswith("_at") and value is not None else value)


def searchable(link: Link, names: Sequence[str]) -> str:
    """The folded text that a search looks through. A name is found however its `-` and `_` are typed."""
    spelled = {form for name in names for form in (fold(name), name_key(name))}
    return "\n".join([*sorted(spelled), *(fold(text) for text in (link.title, link.notes, link.destination) if text)])


def _shown(field: str, kept: Mapping[str, Any]) -> Any:
    if field == "visibility":
        return Visibility.read(kept["visibility"], kept.get("audience")).value
    return sorted(kept["tags"].values()) if field == "tags" else kept[field]


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
