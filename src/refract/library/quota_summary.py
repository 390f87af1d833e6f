"""AI suggestions and storage as the settings show them: used, limit, and today's entries."""

from typing import Any

from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library.models import EnrichmentNotice, LedgerEntryKind
from refract.library.service import quota
from refract.library.service import storage as service_storage
from refract.web.formats import format_bytes
from refract.web.i18n import format_number, gettext, lazy_gettext

MAX_ENTRIES = 20
_REFUND_REASONS = {
    EnrichmentNotice.SUGGESTIONS_OFF: lazy_gettext("Suggestions were turned off"),
    EnrichmentNotice.MODEL_UNAVAILABLE: lazy_gettext("The AI model didn’t respond"),
    EnrichmentNotice.MODEL_TOO_SLOW: lazy_gettext("The AI model took too long"),
    EnrichmentNotice.MODEL_NOT_UNDERSTOOD: lazy_gettext("The AI response wasn’t usable"),
}


async def load_quota_summary(session: ReadSession, rt: Runtime, user: User) -> dict[str, Any]:
    """Return what the settings page shows.

    Without a model, `model` is false and nothing is charged.
    """
    entries = await quota.list_todays_entries(session, rt, user.id, MAX_ENTRIES)
    return {
        "storage": await _format_storage(session, rt, user),
        "model": rt.settings.model_url is not None,
        "standing": await quota.get_balance(session, rt, user),
        "entries": [
            {
                "at": entry.created_at,
                "back": entry.kind == LedgerEntryKind.REFUND,
                "title": title or gettext("Deleted item"),
                "href": f"/app/library/{entry.item_id}" if title else None,
                "why": next(
                    (str(words) for note, words in _REFUND_REASONS.items() if note == entry.reason),
                    "",
                ),
            }
            for entry, title in entries
        ],
    }


async def _format_storage(session: ReadSession, rt: Runtime, user: User) -> dict[str, Any]:
    """Return the number of items and bytes in words, each with its limit if there is one."""
    stored, settings = await service_storage.get_usage(session, user.id), rt.settings
    max_items, max_bytes = settings.items_per_person, settings.storage_per_person
    return {
        "items": _format_share(
            format_number(stored.items),
            None if max_items is None else format_number(max_items),
        ),
        "bytes": _format_share(
            format_bytes(stored.bytes),
            None if max_bytes is None else format_bytes(max_bytes),
        ),
    }


def _format_share(used: str, limit: str | None) -> str:
    return used if limit is None else gettext("{used} of {limit}", used=used, limit=limit)
