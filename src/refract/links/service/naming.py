"""Names of a link: more can be taken, and each can be given back; none ever changes."""

from refract.core.db import WriteSession
from refract.links.access import Who
from refract.links.errors import NameNotFound, TooManyNames
from refract.links.history import Action
from refract.links.schemas import MOST_NAMES
from refract.links.service.hold import Held, hold
from refract.names import service as names
from refract.names.errors import SlugTaken
from refract.names.grammar import name_key
from refract.names.models import Kind
from refract.names.service import Namespace


async def add_name(session: WriteSession, space: Namespace, who: Who, link_id: int, name: str, *, version: int | None = None) -> Held:
    """Give a link one more name."""
    held = await hold(session, who, link_id, space.clock.now(), version=version)
    held.demand_not_deleted("named")
    if name_key(name) in map(name_key, held.names):
        raise SlugTaken(name=name)
    if len(held.names) >= MOST_NAMES:
        raise TooManyNames(most=MOST_NAMES)
    await names.claim_for(session, space, Kind.LINK, link_id, [name])
    held.names.append(name)
    await held.record(Action.NAMED)
    return held


async def release_name(session: WriteSession, space: Namespace, who: Who, link_id: int, name: str, *, version: int | None = None) -> Held:
    """Give a name back, so that anybody may take it. A deleted link's names can be given back too."""
    held = await hold(session, who, link_id, space.clock.now(), version=version)
    if not await names.release(session, Kind.LINK, link_id, [name_key(name)]):
        raise NameNotFound(name=name)
    held.names = [other for other in held.names if name_key(other) != name_key(name)]
    await held.record(Action.NAME_RELEASED)
    return held
