"""What every call about items shares: what may go wrong, and what an item looks like afterwards."""

from fastapi import Response

from refract.core.errors import InvalidStateTransition, Stale, Unavailable
from refract.identity.errors import BadCredentials, MissingScope, OriginUnproven, SignInNeeded
from refract.library.cards import card_of
from refract.library.errors import ItemNotFound, TooManyItemTags, UnknownTag
from refract.library.schemas import ItemOut
from refract.library.service import Held
from refract.tags.errors import InvalidTag
from refract.web.limits import RateLimited
from refract.web.problems import ValidationFailed, problems
from refract.web.toolkit import BadETag, etag

ASKING = (SignInNeeded, BadCredentials, MissingScope, OriginUnproven, RateLimited, Unavailable, ValidationFailed)
GUARDED = problems(*ASKING)
TAGGING = (UnknownTag, InvalidTag, TooManyItemTags)
ON_AN_ITEM = (*ASKING, ItemNotFound, Stale, BadETag, InvalidStateTransition)


async def shown(held: Held, response: Response) -> ItemOut:
    """The item as it is now. Called inside the transaction of the change."""
    out = await card_of(held.session, held.item)
    response.headers["ETag"] = etag(out.version)
    return out
