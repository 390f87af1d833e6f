"""Taking something in: item, job, charge and undo in one transaction."""

from dataclasses import dataclass

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.schemas import Preferences
from refract.library import quota, search, usage
from refract.library.capturing import first_line, recognise
from refract.library.errors import EmptyText
from refract.library.models import Enrichment, FieldSource, Item, ItemStatus, ItemUndo
from refract.library.notes import Note
from refract.library.schemas import ItemCreate
from refract.library.service.choosing import chosen_tags
from refract.library.service.enrichment import begin_enrichment
from refract.library.tagging import retag


@dataclass(frozen=True, slots=True)
class Made:
    """A new item, and what is left of today's budget."""

    item: Item
    quota: quota.Standing


async def capture(session: WriteSession, rt: Runtime, user: User, new: ItemCreate) -> Made:
    """Keep what was typed. It costs a little of the day's budget only when there is a model to ask and the person wants it asked."""
    if not new.text.strip():
        raise EmptyText
    await usage.charge_capture(session, rt, user)
    now = rt.clock.now()
    seen = recognise(new.text)
    item = Item(
        id=rt.ids.next_id(), user_id=user.id, text=new.text, url=seen.url, url_digest=seen.url_digest, site=seen.site, type=seen.type.value,
        created_at=now, updated_at=now, version=1,
    )  # fmt: skip
    tag_ids = await chosen_tags(session, rt, user.id, new.tag_ids, new.new_tags)
    item.move(ItemStatus.ENRICHING if new.enrich else ItemStatus.ARCHIVED)
    if not new.enrich:
        item.title, item.title_source = first_line(new.text), FieldSource.SYSTEM.value
        item.enrichment, item.confirmed_at = Enrichment.MANUAL.value, now
    if new.enrich:
        job_id = await begin_enrichment(session, rt, item)
        await _pay(session, rt, user, item, job_id)
    session.add_all([item, ItemUndo(item_id=item.id, action="captured", at=now, before={})])
    await session.flush()
    if tag_ids:
        await retag(session, item, tag_ids, now)
    await search.index(session, item)
    await usage.add(session, rt, user.id, usage.Stored(1, usage.size_of(item.text)))
    return Made(item, await quota.standing(session, rt, user))


async def _pay(session: WriteSession, rt: Runtime, user: User, item: Item, job_id: int) -> None:
    if rt.settings.model_url is None:
        return
    if not Preferences.model_validate(user.preferences).suggestions:
        item.note = Note.SUGGESTIONS_OFF.value
    elif await quota.charge(session, rt, user, item_id=item.id, job_id=job_id):
        item.charged_job_id = job_id
    else:
        item.note = Note.OVER_QUOTA.value
