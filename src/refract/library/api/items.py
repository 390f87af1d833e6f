"""Capture, the review queue, read, change, discard."""

from typing import Annotated

from fastapi import Query, Response

from refract.core.page import Cursors, InvalidCursor
from refract.core.schema import Id
from refract.identity.actors import Reader, Writer
from refract.library import queries, service
from refract.library.cards import card_of, cards_of
from refract.library.edge import ASKING, ON_AN_ITEM, TAGGING, holding, shown
from refract.library.errors import EmptyText, ItemNotFound
from refract.library.models import ItemStatus
from refract.library.schemas import ItemCreate, ItemOut, ItemPage, ItemPatch
from refract.web.problems import problems
from refract.web.toolkit import PAGE, Cursor, IdempotencyKey, IfMatch, Limit, Rt, api_router, etag

router = api_router("/items", "items")


@router.post("", status_code=201, responses=problems(*ASKING, *TAGGING, EmptyText))
async def capture_item(
    new: ItemCreate,
    actor: Writer,
    rt: Rt,
    response: Response,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ItemOut:
    """Save a text or an address. The assistant describes it in the background; `X-AI-Quota-…` says what is left of today's budget."""
    async with rt.db.write() as session:
        made = await service.capture(session, rt, actor.user, new)
        out = await card_of(session, made.item)
    response.headers.update({**made.quota.headers, "ETag": etag(out.version), "Location": f"/api/v1/items/{out.id}"})
    return out


@router.get("/pending", responses=problems(*ASKING, InvalidCursor))
async def list_pending(
    actor: Reader,
    rt: Rt,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    status: Annotated[ItemStatus | None, Query(description="ENRICHING, READY_TO_CONFIRM or FAILED alone.")] = None,
) -> ItemPage:
    """What waits for the assistant or for me, the newest first."""
    async with rt.db.read() as session:
        page = await queries.page_of_pending(session, Cursors(rt.secret), actor.user.id, status=status, limit=limit, cursor=cursor)
        return ItemPage(items=await cards_of(session, page.items), next_cursor=page.next_cursor)


@router.get("/{item_id}", responses=problems(*ASKING, ItemNotFound))
async def read_item(item_id: Id, actor: Reader, rt: Rt, response: Response) -> ItemOut:
    """One item."""
    async with rt.db.read() as session:
        out = await card_of(session, await queries.own_item(session, actor.user.id, item_id))
    response.headers["ETag"] = etag(out.version)
    return out


@router.patch("/{item_id}", responses=problems(*ON_AN_ITEM, *TAGGING))
async def change_item(item_id: Id, changes: ItemPatch, actor: Writer, rt: Rt, response: Response, if_match: IfMatch = None) -> ItemOut:
    """Change what is named; everything else stays. What I write, the assistant leaves alone."""
    async with holding(rt, actor, item_id, if_match) as held:
        return await shown(await service.change(held, changes), response)


@router.delete("/{item_id}", status_code=204, responses=problems(*ON_AN_ITEM))
async def delete_item(item_id: Id, actor: Writer, rt: Rt, if_match: IfMatch = None) -> Response:
    """Discard an item; it can be undone within 24 hours."""
    async with holding(rt, actor, item_id, if_match) as held:
        await service.discard(held)
    return Response(status_code=204)
