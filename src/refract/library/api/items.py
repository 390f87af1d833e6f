"""API of items: capture, review queue, read, change, discard."""

from typing import Annotated

from fastapi import Query, Response

from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.library import service
from refract.library.dependencies import (
    ITEM_ERRORS,
    ON_CAPTURE,
    TAG_ERRORS,
    lock_own_item,
    render_item,
)
from refract.library.errors import ItemNotFound, StorageLimitReached
from refract.library.models import ItemStatus
from refract.library.queries import items as queries_items
from refract.library.queries.serializers import (
    serialize_bare_item,
    serialize_item,
    serialize_items,
)
from refract.library.schemas import ItemCreate, ItemOut, ItemPage, ItemPatch
from refract.web.dependencies import (
    DEFAULT_PAGE_SIZE,
    CursorParam,
    IfMatchHeader,
    LimitParam,
    Rt,
    api_router,
    make_etag,
)
from refract.web.problems import problems

router = api_router("/items", "items")


@router.post("", status_code=201, responses=problems(*TAG_ERRORS, *ON_CAPTURE))
async def capture_item(new: ItemCreate, actor: WriteCaller, rt: Rt, response: Response) -> ItemOut:
    """Save a text or a URL.

    Suggestions are made in the background; `X-AI-Quota-…` says what is left of today's quota.
    """
    async with rt.db.write() as session:
        made = await service.capture_item(session, rt, actor.user, new)
        serialize = serialize_item if made.has_tags else serialize_bare_item
        out = await serialize(session, made.item)
    response.headers.update(
        {
            **made.quota.headers,
            "ETag": make_etag(out.version),
            "Location": f"/api/v1/items/{out.id}",
        }
    )
    return out


@router.get("/pending")
async def list_pending(
    actor: ReadCaller,
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
    status: Annotated[
        ItemStatus | None, Query(description="Only ENRICHING, READY_TO_CONFIRM or FAILED.")
    ] = None,
) -> ItemPage:
    """List items that are being processed or wait for review, newest first."""
    async with rt.db.read() as session:
        page = await queries_items.list_pending_items(
            session,
            CursorCodec(rt.secret),
            actor.user.id,
            status=status,
            limit=limit,
            cursor=cursor,
        )
        return ItemPage(
            items=await serialize_items(session, page.items), next_cursor=page.next_cursor
        )


@router.get("/{item_id}", responses=problems(ItemNotFound))
async def read_item(item_id: Id, actor: ReadCaller, rt: Rt, response: Response) -> ItemOut:
    """Read an item."""
    async with rt.db.read() as session:
        out = await serialize_item(
            session, await queries_items.get_own_item(session, actor.user.id, item_id)
        )
    response.headers["ETag"] = make_etag(out.version)
    return out


@router.patch("/{item_id}", responses=problems(*ITEM_ERRORS, *TAG_ERRORS, StorageLimitReached))
async def change_item(
    item_id: Id,
    changes: ItemPatch,
    actor: WriteCaller,
    rt: Rt,
    response: Response,
    if_match: IfMatchHeader = None,
) -> ItemOut:
    """Update an item.

    Omitted fields are unchanged; what you write is never overwritten by suggestions.
    """
    async with lock_own_item(rt, actor, item_id, if_match) as locked:
        return await render_item(await service.edit_item(locked, changes), response)


@router.delete("/{item_id}", status_code=204, responses=problems(*ITEM_ERRORS))
async def delete_item(
    item_id: Id, actor: WriteCaller, rt: Rt, if_match: IfMatchHeader = None
) -> Response:
    """Discard an item. It can be undone within 24 hours."""
    async with lock_own_item(rt, actor, item_id, if_match) as locked:
        await service.discard_item(locked)
    return Response(status_code=204)
