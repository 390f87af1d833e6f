"""Filing without asking, for those who want it so."""

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.schemas import Preferences
from refract.library.models import Item, SuggestionStatus
from refract.library.service.edit import wear_chosen
from refract.library.service.hold import hold
from refract.library.service.review import archive, settle


async def confirm_by_itself(session: WriteSession, rt: Runtime, item: Item) -> bool:
    """File an item whose surest suggestions reach the person's threshold, with those; the others go on waiting. It can be undone."""
    user = await session.get_one(User, item.user_id)
    threshold = Preferences.model_validate(user.preferences).auto_confirm
    if threshold is None:
        return False
    held = await hold(session, rt, user.id, item.id)
    sure = [one for one in held.suggestions if one.status == SuggestionStatus.PENDING and one.confidence >= threshold]
    if not sure:
        return False
    settle(held, sure, SuggestionStatus.ACCEPTED)
    await wear_chosen(held, None, [one.name for one in sure])
    await archive(held)
    return True
