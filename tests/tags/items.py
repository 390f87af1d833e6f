"""Items for tests of tags: only their rows, without the rest of the library."""

from typing import Any

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library.item_tags import set_item_tags
from refract.library.models import Item, ItemStatus
from refract.tags import personal_tags
from refract.tags.models import Tag


async def item(session: WriteSession, rt: Runtime, owner: User, *tags: str, **given: Any) -> Item:
    """Insert an item of a user's library with these tags."""
    now = rt.clock.now()
    fields = {
        "text": "A thought.",
        "type": "NOTE",
        "created_at": now,
        "updated_at": now,
        "confirmed_at": now,
        **given,
    }
    made = Item(id=rt.ids.next_id(), user_id=owner.id, **fields)
    made.set_status(ItemStatus.ARCHIVED)
    session.add(made)
    await session.flush()
    if tags:
        found = await personal_tags.ensure_tags(session, rt.ids, owner.id, tags, now)
        await set_item_tags(session, made, [tag.id for tag in found.values()], now)
    return made


async def tag(session: WriteSession, rt: Runtime, owner: User, name: str) -> Tag:
    return (await personal_tags.ensure_tags(session, rt.ids, owner.id, [name], rt.clock.now()))[
        name
    ]
