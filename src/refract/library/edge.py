"""What every call about items shares: what may go wrong, and what an item looks like afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Response

from refract.core.errors import InvalidStateTransition, Stale, Unavailable
from refract.core.runtime import Runtime
from refract.identity.errors import BadCredentials, MissingScope, OriginUnproven, SignInNeeded
from refract.identity.visitors import Actor
from refract.library import service
from refract.library.cards import card_of
from refract.library.errors import ItemNotFound, TooManyItemTags, UnknownTag
from refract.library.schemas import ItemOut
from refract.library.service import Held
from refract.limits.errors import RateLimited
from refract.tags.errors import InvalidTag
from refract.web.problems import ValidationFailed, problems
from refract.web.toolkit import BadEtag, etag, expected_version

ASKING = (SignInNeeded, BadCredentials, MissingScope, OriginUnproven, RateLimited, Unavailable, ValidationFailed)
GUARDED = problems(*ASKING)
TAGGING = (UnknownTag, InvalidTag, TooManyItemTags)
ON_AN_ITEM = (*ASKING, ItemNotFound, Stale, BadEtag, InvalidStateTransition)


@asynccontextmanager
async def holding(rt: Runtime, actor: Actor, item_id: int, if_match: str | None = None) -> AsyncIterator[Held]:
    """A transaction with the caller's own item held in it, at the version that they have seen."""
    async with rt.db.write() as session:
        yield await service.hold(session, rt, actor.user.id, item_id, version=expected_version(if_match))


async def shown(held: Held, response: Response) -> ItemOut:
    """The item as it is now. Called inside the transaction of the change."""
    out = await card_of(held.session, held.item)
    response.headers["ETag"] = etag(out.version)
    return out
