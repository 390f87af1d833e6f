"""Capturing items: item, job, charge and undo record in one transaction."""

from dataclasses import dataclass

from refract.core.db.bulk import insert_instance, insert_rows
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.schemas import Preferences
from refract.library import search
from refract.library.errors import EmptyText
from refract.library.item_tags import set_item_tags
from refract.library.models import (
    Enrichment,
    EnrichmentNotice,
    FieldSource,
    Item,
    ItemStatus,
    ItemUndo,
)
from refract.library.recognition import extract_first_line, recognize_text
from refract.library.schemas import ItemCreate, NewItemStates
from refract.library.service import quota, storage
from refract.library.service.edit import resolve_tags
from refract.library.service.enrichment import enqueue_enrichment


@dataclass(frozen=True, slots=True)
class CapturedItem:
    """A new item, and what is left of today's quota."""

    item: Item
    quota: quota.QuotaBalance
    has_tags: bool


async def capture_item(
    session: WriteSession, rt: Runtime, user: User, new: ItemCreate
) -> CapturedItem:
    """Save a text or a URL.

    It is charged only if there is a model and the user wants suggestions.
    """
    if not new.text.strip():
        raise EmptyText
    await storage.charge_capture(session, rt, user)
    now = rt.clock.now()
    seen = recognize_text(new.text)
    item = Item(
        id=rt.ids.next_id(),
        user_id=user.id,
        text=new.text,
        url=seen.url,
        url_digest=seen.url_digest,
        site=seen.site,
        type=seen.type.value,
        **{name: getattr(new, name) for name in NewItemStates.model_fields},
        created_at=now,
        updated_at=now,
        version=1,
    )
    tag_ids = await resolve_tags(session, rt, user.id, new.tag_ids, new.new_tags)
    item.set_status(ItemStatus.ENRICHING if new.enrich else ItemStatus.ARCHIVED)
    if not new.enrich:
        item.title, item.title_source = extract_first_line(new.text), FieldSource.SYSTEM.value
        item.enrichment, item.confirmed_at = Enrichment.MANUAL.value, now
    if new.enrich:
        job_id = await enqueue_enrichment(session, rt, item)
        await _charge_enrichment(session, rt, user, item, job_id)
    await insert_instance(session, item)
    undo = {"item_id": item.id, "action": "captured", "at": now, "before": {}}
    await insert_rows(session, ItemUndo, [undo])
    if tag_ids:
        await set_item_tags(session, item, tag_ids, now)
    await (search.index_item if tag_ids else search.index_bare_item)(session, item)
    await storage.add_usage(
        session, rt, user.id, storage.StorageUsage(1, storage.count_bytes(item.text, item.notes))
    )
    return CapturedItem(item, await quota.get_balance(session, rt, user), bool(tag_ids))


async def _charge_enrichment(
    session: WriteSession, rt: Runtime, user: User, item: Item, job_id: int
) -> None:
    if rt.settings.model_url is None:
        return
    if not Preferences.model_validate(user.preferences).suggestions:
        item.note = EnrichmentNotice.SUGGESTIONS_OFF.value
    elif await quota.charge_quota(session, rt, user, item_id=item.id, job_id=job_id):
        item.charged_job_id = job_id
    else:
        item.note = EnrichmentNotice.OVER_QUOTA.value
