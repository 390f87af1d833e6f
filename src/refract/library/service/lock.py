"""Locked items, with what is needed to undo a change."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from refract.core.db.session import WriteSession
from refract.core.errors import ExpectedVersions, InvalidStateTransition, VersionMismatch
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.library import search
from refract.library.errors import ItemNotFound
from refract.library.item_tags import get_item_tags, set_item_tags
from refract.library.models import READING_STATES, Item, ItemStatus, ItemUndo, Suggestion
from refract.library.queries.items import get_suggestions, get_undo, lock_item_row
from refract.library.service import storage as service_storage

UNDO_WINDOW = timedelta(hours=24)
ALLOWED_ACTIONS: dict[ItemStatus, Phrase] = {
    ItemStatus.ENRICHING: Phrase("confirm, edit, discard"),
    ItemStatus.READY_TO_CONFIRM: Phrase("confirm, edit, discard"),
    ItemStatus.FAILED: Phrase("confirm, retry, edit, discard"),
    ItemStatus.ARCHIVED: Phrase("edit, discard"),
    ItemStatus.DISCARDED: Phrase("restore, erase"),
}
STATUS_LABELS: dict[ItemStatus, Phrase] = {
    ItemStatus.ENRICHING: Phrase("being fetched"),
    ItemStatus.READY_TO_CONFIRM: Phrase("ready to review"),
    ItemStatus.FAILED: Phrase("failed"),
    ItemStatus.ARCHIVED: Phrase("saved"),
    ItemStatus.DISCARDED: Phrase("discarded"),
}
CONTENT_FIELDS = (
    "text",
    "url",
    "url_digest",
    "canonical_digest",
    "site",
    "title",
    "title_source",
    "summary",
    "summary_source",
    "notes",
    "type",
    *READING_STATES,
)
STATUS_FIELDS = ("status", "enrichment", "note", "failure")


@dataclass(slots=True)
class LockedItem:
    """An item whose row is locked until the transaction ends."""

    session: WriteSession
    rt: Runtime
    item: Item
    now: datetime
    tag_ids: set[int]
    suggestions: Sequence[Suggestion] = field(default_factory=list)
    before: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> ItemStatus:
        return ItemStatus(self.item.status)

    def require_status(self, action: Phrase, *states: ItemStatus) -> None:
        """Raise `InvalidStateTransition` if the item is in none of these states."""
        if self.status not in states:
            raise InvalidStateTransition(
                what=Phrase("The item"),
                state=self.status,
                label=STATUS_LABELS[self.status],
                action=action,
                allowed=ALLOWED_ACTIONS[self.status],
            )

    async def set_tags(self, tag_ids: set[int]) -> None:
        """Set the item's tags to those that still exist of these."""
        if tag_ids != self.tag_ids:
            self.tag_ids = await set_item_tags(self.session, self.item, tag_ids, self.now)

    async def save(self, action: str, *, has_new_words: bool = True) -> None:
        """Save the change, with the state before it: it can be undone until the next one."""
        self.item.version += 1
        self.item.updated_at = self.now
        await store_undo(self.session, self.item.id, action, self.before, self.now)
        await self.session.flush()
        if has_new_words:
            await search.index_item(self.session, self.item)
        await self._update_storage()

    async def save_without_undo(self) -> None:
        """Save a change that cannot be undone, and drop the undo record of earlier ones."""
        self.item.version += 1
        self.item.updated_at = self.now
        if (known := await get_undo(self.session, self.item.id)) is not None:
            await self.session.delete(known)
        await self.session.flush()
        await search.index_item(self.session, self.item)
        await self._update_storage()

    async def _update_storage(self) -> None:
        """Charge texts that became longer or shorter to their user's storage."""
        more = service_storage.count_bytes(
            self.item.text, self.item.notes
        ) - service_storage.count_bytes(self.before["text"], self.before["notes"])
        if more:
            await service_storage.add_usage(
                self.session, self.rt, self.item.user_id, service_storage.StorageUsage(bytes=more)
            )


async def lock_item(
    session: WriteSession,
    rt: Runtime,
    user_id: int,
    item_id: int,
    *,
    version: ExpectedVersions = None,
) -> LockedItem:
    """Lock a user's own item. Raises `VersionMismatch` if it is not the version they saw."""
    item = await lock_item_row(session, item_id, user_id)
    if item is None:
        raise ItemNotFound
    if version is not None and item.version not in version:
        raise VersionMismatch
    tag_ids = {tag.id for tag in (await get_item_tags(session, [item.id]))[item.id]}
    suggestions = (await get_suggestions(session, [item.id]))[item.id]
    return LockedItem(
        session,
        rt,
        item,
        rt.clock.now(),
        tag_ids,
        suggestions,
        _build_snapshot(item, tag_ids, suggestions),
    )


async def store_undo(
    session: WriteSession, item_id: int, action: str, before: dict[str, Any], now: datetime
) -> None:
    known = await get_undo(session, item_id)
    if known is None:
        session.add(ItemUndo(item_id=item_id, action=action, at=now, before=before))
    else:
        known.action, known.at, known.before = action, now, before


def _build_snapshot(
    item: Item, tag_ids: set[int], suggestions: Sequence[Suggestion]
) -> dict[str, Any]:
    return {
        **{name: getattr(item, name) for name in (*CONTENT_FIELDS, *STATUS_FIELDS)},
        "confirmed_at": item.confirmed_at.isoformat() if item.confirmed_at else None,
        "tags": sorted(str(tag_id) for tag_id in tag_ids),
        "suggestions": {str(suggestion.id): suggestion.status for suggestion in suggestions},
    }
