"""The assistant's budget as the settings show it: how much is used, when it begins anew, and what it went to."""

from typing import Any

from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library.models import EnrichmentNotice, LedgerEntryKind
from refract.library.service import quota
from refract.library.service import storage as service_storage

MAX_ENTRIES = 20
_REFUND_REASONS = {
    EnrichmentNotice.SUGGESTIONS_OFF: "suggestions were off",
    EnrichmentNotice.MODEL_UNAVAILABLE: "the model did not answer",
    EnrichmentNotice.MODEL_TOO_SLOW: "the model took too long",
    EnrichmentNotice.MODEL_NOT_UNDERSTOOD: "the model’s answer made no sense",
}


async def load_quota_summary(session: ReadSession, rt: Runtime, user: User) -> dict[str, Any]:
    """`model` is false where none is set up: nothing is ever charged then."""
    entries = await quota.list_todays_entries(session, rt, user.id, MAX_ENTRIES)
    return {
        "storage": await _format_storage(session, rt, user),
        "model": rt.settings.model_url is not None,
        "standing": await quota.get_balance(session, rt, user),
        "entries": [
            {
                "at": entry.created_at,
                "back": entry.kind == LedgerEntryKind.REFUND,
                "title": title or "something that is gone",
                "href": f"/app/library/{entry.item_id}" if title else None,
                "why": next(
                    (words for note, words in _REFUND_REASONS.items() if note == entry.reason), ""
                ),
            }
            for entry, title in entries
        ],
    }


async def _format_storage(session: ReadSession, rt: Runtime, user: User) -> dict[str, Any]:
    """Return what the library takes, in words, and what it may."""
    stored, settings = await service_storage.get_usage(session, user.id), rt.settings
    items, room = settings.items_per_person, settings.storage_per_person
    return {
        "items": f"{stored.items:,} of {items:,}" if items is not None else f"{stored.items:,}",
        "bytes": (
            f"{service_storage.format_bytes(stored.bytes)} of {service_storage.format_bytes(room)}"
            if room is not None
            else service_storage.format_bytes(stored.bytes)
        ),
    }
