"""What the routes about items share: their errors, the locked item, and the response."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Response

from refract.core.errors import InvalidStateTransition
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.library import service
from refract.library.errors import (
    CaptureLimitReached,
    ItemLimitReached,
    ItemNotFound,
    StorageLimitReached,
    TooManyItemTags,
    UnknownTag,
)
from refract.library.queries.serializers import serialize_item
from refract.library.schemas import ItemOut
from refract.library.service import LockedItem
from refract.tags.errors import InvalidTag
from refract.web.dependencies import make_etag, parse_if_match

ON_CAPTURE = (CaptureLimitReached, ItemLimitReached, StorageLimitReached)
TAG_ERRORS = (UnknownTag, InvalidTag, TooManyItemTags)
ITEM_ERRORS = (ItemNotFound, InvalidStateTransition)


@asynccontextmanager
async def lock_own_item(
    rt: Runtime, actor: Caller, item_id: int, if_match: str | None = None
) -> AsyncIterator[LockedItem]:
    """Open a transaction with the caller's own item locked, at the version they have seen."""
    async with rt.db.write() as session:
        yield await service.lock_item(
            session, rt, actor.user.id, item_id, version=parse_if_match(if_match)
        )


async def render_item(locked: LockedItem, response: Response) -> ItemOut:
    """Return the item as it is now. Called inside the transaction of the change."""
    out = await serialize_item(locked.session, locked.item)
    response.headers["ETag"] = make_etag(out.version)
    return out
