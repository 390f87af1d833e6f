"""The assistant's budget as the settings show it: how much is used, when it begins anew, and what it went to."""

from typing import Any

from refract.core.db import ReadSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library import quota, usage
from refract.library.notes import Note
from refract.library.quota_models import EntryKind

LATEST = 20
_WHY = {
    Note.SUGGESTIONS_OFF: "suggestions were off",
    Note.MODEL_UNAVAILABLE: "the model did not answer",
    Note.MODEL_TOO_SLOW: "the model took too long",
    Note.MODEL_NOT_UNDERSTOOD: "the model’s answer made no sense",
}


async def of_person(session: ReadSession, rt: Runtime, user: User) -> dict[str, Any]:
    """`model` is false where none is set up: nothing is ever charged then."""
    entries = await quota.ledger_of_today(session, rt, user.id, LATEST)
    return {
        "storage": await _storage(session, rt, user),
        "model": rt.settings.model_url is not None,
        "standing": await quota.standing(session, rt, user),
        "entries": [
            {
                "at": entry.created_at,
                "back": entry.kind == EntryKind.REFUND,
                "title": title or "something that is gone",
                "href": f"/app/library/{entry.item_id}" if title else None,
                "why": next((words for note, words in _WHY.items() if note == entry.reason), ""),
            }
            for entry, title in entries
        ],
    }


async def _storage(session: ReadSession, rt: Runtime, user: User) -> dict[str, Any]:
    """Return what the library takes, in words, and what it may."""
    stored, settings = await usage.stored_by(session, user.id), rt.settings
    items, room = settings.items_per_person, settings.storage_per_person
    return {
        "items": f"{stored.items:,} of {items:,}" if items is not None else f"{stored.items:,}",
        "bytes": f"{usage.shown_bytes(stored.bytes)} of {usage.shown_bytes(room)}" if room is not None else usage.shown_bytes(stored.bytes),
    }
