"""Versions of a link: snapshots and their differences."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from refract.core.text import fold_for_search, fold_text
from refract.links.enums import Visibility
from refract.links.models import Link, LinkChange
from refract.links.preview_cards import parse_card
from refract.links.qr_styles import parse_style
from refract.links.rules.document import parse_rules, restore_rules
from refract.names.grammar import name_key


class LinkChangeAction(StrEnum):
    """The actions that create a version."""

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


UNDOABLE_ACTIONS = frozenset(
    {
        LinkChangeAction.EDITED,
        LinkChangeAction.REVERTED,
        LinkChangeAction.DISABLED,
        LinkChangeAction.DELETED,
    }
)

EDITABLE_FIELDS = (
    "destination",
    "title",
    "notes",
    "redirect_status",
    "visibility",
    "forward_query",
    "expires_at",
    "expired_destination",
    "starts_at",
    "before_destination",
    "rules",
    "preview_card",
    "noindex",
    "click_limit",
    "limit_destination",
    "qr_style",
)
"""Versions written by older code lack the last nine."""
_STORED_FIELDS = ("audience", "password_hash")
"""Belong to `visibility`. Versions written by older code lack them."""
HIDDEN_VALUE = "hidden"
"""Stands for an old and a new password in the changes of a version."""
_DESTINATION_FIELDS = (
    "href",
    "href_digest",
    "destination_host",
    "has_placeholders",
    "flagged",
    "flag_reason",
)
_STATE_FIELDS = ("status", "disabled_by_admin", "deleted_at")
_REPORTED_FIELDS = (*EDITABLE_FIELDS, "status", "tags", "names")


def take_snapshot(link: Link, names: Sequence[str], tags: Mapping[int, str]) -> dict[str, Any]:
    """Return the fields of a version as JSON.

    Tags are stored by id, so that renaming one does not change old versions.
    """
    fields = {
        field: _to_json_value(getattr(link, field))
        for field in (*EDITABLE_FIELDS, *_STORED_FIELDS, *_DESTINATION_FIELDS, *_STATE_FIELDS)
    }
    return {
        **fields,
        "names": list(names),
        "tags": {str(tag_id): name for tag_id, name in sorted(tags.items())},
    }


def build_first_version(
    link: Link, names: Sequence[str], tags: Mapping[int, str], creator_id: int | None
) -> LinkChange:
    """Return the first version of a link that has not changed since."""
    return LinkChange(
        link_id=link.id,
        version=1,
        at=link.created_at,
        actor_id=creator_id,
        as_admin=False,
        action=LinkChangeAction.CREATED.value,
        changes={},
        snapshot=take_snapshot(link, names, tags),
    )


def diff_snapshots(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes between two snapshots, as values of the API."""
    changes = {
        field: {"from": _to_api_value(field, before), "to": _to_api_value(field, after)}
        for field in _REPORTED_FIELDS
        if _to_api_value(field, before) != _to_api_value(field, after)
    }
    old, new = before.get("password_hash"), after.get("password_hash")
    if old and new and old != new:
        changes["password"] = {"from": HIDDEN_VALUE, "to": HIDDEN_VALUE}
    return changes


def restore_fields(link: Link, snapshot: Mapping[str, Any], *, with_state: bool) -> None:
    """Give a link the fields of an earlier version, with its state if `with_state` is set.

    Names and people stay. So do the findings about an unchanged destination, because they are
    newer than the version.
    """
    moved = _DESTINATION_FIELDS if snapshot["destination"] != link.destination else ()
    for field in _STORED_FIELDS:
        setattr(link, field, snapshot.get(field))
    for field in (*EDITABLE_FIELDS, *moved, *(_STATE_FIELDS if with_state else ())):
        value = snapshot.get(field)  # older versions lack some
        if field == "rules":
            value = restore_rules(link.rules, value)
        setattr(
            link,
            field,
            datetime.fromisoformat(value) if field.endswith("_at") and value is not None else value,
        )


def build_search_text(link: Link, names: Sequence[str]) -> str:
    """Return the text that searches match, also without accents. Names match with `-` or `_`.

    The host is added where it is written differently, as in reports and blocklists.
    """
    spelled = {form for name in names for form in (fold_text(name), name_key(name))}
    texts = [fold_for_search(text) for text in (link.title, link.notes, link.destination) if text]
    if link.destination_host not in texts[-1]:
        texts.append(link.destination_host)
    return "\n".join([*sorted(spelled), *texts])


def _to_api_value(field: str, snapshot: Mapping[str, Any]) -> Any:
    if field == "visibility":
        return Visibility.from_columns(snapshot["visibility"], snapshot.get("audience")).value
    if field == "rules":
        return [rule.to_json() for rule in parse_rules(snapshot.get(field))] or None
    if field == "noindex":
        return bool(snapshot.get(field))
    if field == "preview_card":
        card = parse_card(snapshot.get(field))
        return card.to_json() if card is not None else None
    if field == "qr_style":
        style = parse_style(snapshot.get(field))
        return style.to_json() if style is not None else None
    return sorted(snapshot["tags"].values()) if field == "tags" else snapshot.get(field)


def _to_json_value(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
