"""The history of a link in words: who did what, and each field before and after."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from refract.core.lookalikes import to_ascii_url
from refract.identity.models import User
from refract.links.enums import FlagReason, LinkState, Visibility
from refract.links.history import LinkChangeAction
from refract.links.models import LinkChange
from refract.links.pages.editor import REDIRECT_LABELS, VISIBILITY_LABELS
from refract.links.service import SUBSTITUTES
from refract.web.formats import format_datetime
from refract.web.i18n import LazyText, format_number, gettext, lazy_gettext, ngettext

ACTION_LABELS: dict[str, LazyText] = {
    LinkChangeAction.CREATED: lazy_gettext("Link created"),
    LinkChangeAction.EDITED: lazy_gettext("Edited"),
    LinkChangeAction.REVERTED: lazy_gettext("Earlier version restored"),
    LinkChangeAction.DISABLED: lazy_gettext("Disabled"),
    LinkChangeAction.ENABLED: lazy_gettext("Enabled"),
    LinkChangeAction.RENEWED: lazy_gettext("Expiry removed"),
    LinkChangeAction.DELETED: lazy_gettext("Deleted"),
    LinkChangeAction.UNDONE: lazy_gettext("Reverted"),
    LinkChangeAction.NAMED: lazy_gettext("Name added"),
    LinkChangeAction.NAME_RELEASED: lazy_gettext("Name removed"),
    LinkChangeAction.OWNER_ADDED: lazy_gettext("Co-owner added"),
    LinkChangeAction.OWNER_REMOVED: lazy_gettext("Co-owner removed"),
    LinkChangeAction.TRANSFERRED: lazy_gettext("Transferred"),
    LinkChangeAction.SHARED: lazy_gettext("Viewer added"),
    LinkChangeAction.UNSHARED: lazy_gettext("Viewer removed"),
}
FIELD_LABELS: dict[str, LazyText] = {
    "destination": lazy_gettext("Destination"),
    "title": lazy_gettext("Title"),
    "notes": lazy_gettext("Notes"),
    "redirect_status": lazy_gettext("Redirect type"),
    "visibility": lazy_gettext("Visibility"),
    "forward_query": lazy_gettext("Forward query parameters"),
    "expires_at": lazy_gettext("Expires"),
    "expired_destination": lazy_gettext("After it expires, redirect to"),
    "starts_at": lazy_gettext("Starts"),
    "before_destination": lazy_gettext("Before it starts, redirect to"),
    "rules": lazy_gettext("Rules"),
    "preview_card": lazy_gettext("Preview card"),
    "noindex": lazy_gettext("Hide from search engines"),
    "click_limit": lazy_gettext("Click limit"),
    "limit_destination": lazy_gettext("Once the limit is reached, redirect to"),
    "qr_style": lazy_gettext("QR code"),
    "password": lazy_gettext("Password"),
    "status": lazy_gettext("Status"),
    "tags": lazy_gettext("Tags"),
    "names": lazy_gettext("Names"),
    "reason": lazy_gettext("Reason"),
}
STATE_LABELS: dict[str, LazyText] = {
    LinkState.ACTIVE: lazy_gettext("Active"),
    LinkState.DISABLED: lazy_gettext("Disabled"),
    LinkState.EXPIRED: lazy_gettext("Expired"),
    LinkState.DELETED: lazy_gettext("Deleted"),
    LinkState.ON_HOLD: lazy_gettext("On hold"),
}
REASON_LABELS: dict[str, LazyText] = {
    FlagReason.DANGEROUS: lazy_gettext("Dangerous destination"),
    FlagReason.BLOCKED: lazy_gettext("Blocked domain"),
}


def build_version(change: LinkChange, people: Mapping[int, User], newest: int) -> dict[str, Any]:
    """Return a version for the page, with each change as field, before and after."""
    person = people.get(change.actor_id) if change.actor_id is not None else None
    changes = [
        (
            FIELD_LABELS.get(field, field),
            _format_value(field, values.get("from")),
            _format_value(field, values.get("to")),
        )
        for field, values in change.changes.items()
        if isinstance(values, dict) and "to" in values
    ]
    return {
        "version": change.version,
        "action": ACTION_LABELS.get(change.action, change.action),
        "who": person.public_name if person else None,
        "at": change.at,
        "changes": changes,
        "may_revert": change.version < newest,
    }


def format_reason(value: str) -> str:
    """Return why a link was stopped. The service's own word for the threat stays: `(MALWARE)`."""
    reason, space, threat = value.partition(" ")
    return f"{REASON_LABELS.get(reason, reason)}{space}{threat}"


_FORMATTERS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("destination", *SUBSTITUTES), to_ascii_url),
    **dict.fromkeys(
        ("starts_at", "expires_at"), lambda value: format_datetime(datetime.fromisoformat(value))
    ),
    "click_limit": format_number,
    "password": lambda _hidden: "••••••",
    "visibility": lambda value: str(VISIBILITY_LABELS[Visibility(value)]),
    "redirect_status": lambda value: str(REDIRECT_LABELS.get(value, value)),
    "status": lambda value: str(STATE_LABELS.get(value, value)),
    **dict.fromkeys(
        ("forward_query", "noindex"), lambda value: gettext("Yes") if value else gettext("No")
    ),
    "reason": format_reason,
}


def _format_value(field: str, value: Any) -> str:
    """Return a field's value for people. A value that is not set is an empty text."""
    if value is None or value == "":
        return ""
    if field == "rules":
        return ngettext("{n} rule", "{n} rules", len(value))
    if field == "preview_card":
        return " · ".join(value.values())
    if field == "qr_style":
        return ", ".join(f"{name}: {part}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return _FORMATTERS.get(field, str)(value)
