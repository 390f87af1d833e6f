"""Lists: start, read, change, name, publish, follow up, delete, claim."""

from typing import Annotated

from fastapi import Query, Response

from refract.core.errors import NothingToUndo
from refract.core.page import Cursors, InvalidCursor
from refract.core.schema import Id
from refract.identity.actors import Writer
from refract.identity.errors import SignInNeeded
from refract.links.dependencies import Space
from refract.lists import queries, service
from refract.lists.creators import Reading, Writing, remember
from refract.lists.edge import ASKING, ON_A_LIST, begin_edition, choose_name, list_out, publish_draft, start_list
from refract.lists.errors import (
    ListImmutable,
    ListNotFound,
    NamesNeedAccount,
    NoEntries,
    NotPublished,
    PublishingNeedsAccount,
    RemovedByAdministrator,
    SensitiveName,
    SlugSettled,
)
from refract.lists.models import ListStatus
from refract.lists.schemas import ClaimResult, ListCreate, ListOut, ListPatch, ListsPage, PublishIn, SlugIn
from refract.lists.shown import summary
from refract.names.errors import InvalidSlug, SlugReserved, SlugTaken
from refract.web.problems import problems
from refract.web.toolkit import PAGE, Cursor, IdempotencyKey, Limit, Rt, api_router

router = api_router("/lists", "lists")
_BAD_SLUG = (InvalidSlug, SlugReserved, SlugTaken, NamesNeedAccount, SensitiveName)


@router.post("", status_code=201, responses=problems(*ASKING))
async def create_list(
    visitor: Writing,
    rt: Rt,
    space: Space,
    response: Response,
    new: ListCreate | None = None,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ListOut:
    """Start a list. Where people without an account may, they get a cookie, and only that cookie opens the draft again."""
    async with rt.db.write() as session:
        found = await start_list(session, rt, space, visitor, new or ListCreate())
        out = await list_out(session, rt, visitor, found.id)
    remember(response, rt, visitor)
    response.headers["Location"] = f"/api/v1/lists/{out.id}"
    return out


@router.get("", responses=problems(*ASKING, InvalidCursor))
async def list_lists(
    visitor: Reading,
    rt: Rt,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    status: Annotated[ListStatus | None, Query(description="Left out: both.")] = None,
    q: Annotated[str | None, Query(max_length=200, description="Words that title, name or description must contain.")] = None,
) -> ListsPage:
    """My lists, newest first; for strangers, those of their cookie."""
    async with rt.db.read() as session:
        page = await queries.page_of_lists(session, Cursors(rt.secret), visitor.who, limit=limit, cursor=cursor, status=status, q=q)
    items = [summary(found, count, views, rt.settings.public_url) for found, count, views in page.items]
    return ListsPage(items=items, next_cursor=page.next_cursor)


@router.post("/claim", responses=problems(*ASKING, SignInNeeded))
async def claim_lists(
    actor: Writer,
    visitor: Writing,
    rt: Rt,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ClaimResult:
    """Make the lists of this browser's creator cookie mine. Afterwards the cookie alone opens none of them."""
    async with rt.db.write() as session:
        creator = visitor.who.creator
        ids = await service.claim_lists(session, actor.user.id, creator) if creator else []
        return ClaimResult(claimed=len(ids), list_ids=ids)


@router.get("/{list_id}", responses=ON_A_LIST)
async def read_list(list_id: Id, visitor: Reading, rt: Rt) -> ListOut:
    """One of my lists, with its entries."""
    async with rt.db.read() as session:
        return await list_out(session, rt, visitor, list_id)


@router.patch("/{list_id}", responses=problems(*ASKING, ListNotFound, ListImmutable))
async def change_list(list_id: Id, changes: ListPatch, visitor: Writing, rt: Rt) -> ListOut:
    """Change a draft's title and description."""
    async with rt.db.write() as session:
        await service.edit_list(session, visitor.who, list_id, changes, rt.clock.now())
        return await list_out(session, rt, visitor, list_id)


@router.delete("/{list_id}", status_code=204, responses=ON_A_LIST)
async def delete_list(list_id: Id, visitor: Writing, rt: Rt) -> Response:
    """Delete a list, draft or published. Its name is kept for 24 hours, in which the deletion can be undone."""
    async with rt.db.write() as session:
        await service.delete_list(session, rt.ids, visitor.who, list_id, rt.clock.now())
    return Response(status_code=204)


@router.post("/{list_id}/undo", responses=problems(*ASKING, ListNotFound, NothingToUndo, RemovedByAdministrator, SlugTaken))
async def undo_list_deletion(
    list_id: Id,
    visitor: Writing,
    rt: Rt,
    space: Space,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ListOut:
    """Bring back a list deleted in the last 24 hours."""
    async with rt.db.write() as session:
        await service.undo_delete(session, space, visitor.who, list_id)
        return await list_out(session, rt, visitor, list_id)


@router.post("/{list_id}/release", status_code=204, responses=problems(*ASKING, ListNotFound, NothingToUndo, RemovedByAdministrator))
async def release_list_name(
    list_id: Id,
    visitor: Writing,
    rt: Rt,
    space: Space,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> Response:
    """Free the name of a deleted list now, instead of 24 hours after it was deleted."""
    async with rt.db.write() as session:
        await service.release_name(session, space, visitor.who, list_id)
    return Response(status_code=204)


@router.post("/{list_id}/slug", responses=problems(*ASKING, *_BAD_SLUG, ListNotFound, ListImmutable, SlugSettled))
async def wish_slug(
    list_id: Id,
    wish: SlugIn,
    visitor: Writing,
    rt: Rt,
    space: Space,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ListOut:
    """Note the name a draft shall have. It is taken by publishing, and until then anybody may be faster."""
    async with rt.db.write() as session:
        await choose_name(session, rt, space, visitor, list_id, wish.slug)
        return await list_out(session, rt, visitor, list_id)


@router.post(
    "/{list_id}/publish",
    responses=problems(*ASKING, *_BAD_SLUG, NoEntries, ListNotFound, ListImmutable, SlugSettled, PublishingNeedsAccount),
)
async def publish_list(
    list_id: Id,
    visitor: Writing,
    rt: Rt,
    space: Space,
    wish: PublishIn | None = None,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ListOut:
    """Publish a draft under its name, or a made-up one. There is no way back: afterwards it can only be followed up or deleted."""
    async with rt.db.write() as session:
        if wish is not None and wish.slug is not None:
            await choose_name(session, rt, space, visitor, list_id, wish.slug)
        await publish_draft(session, rt, space, visitor, list_id)
        return await list_out(session, rt, visitor, list_id)


@router.post(
    "/{list_id}/editions",
    status_code=201,
    responses=problems(*ASKING, ListNotFound, NotPublished) | {200: {"model": ListOut, "description": "It was begun already."}},
)
async def new_edition(
    list_id: Id,
    visitor: Writing,
    rt: Rt,
    space: Space,
    response: Response,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ListOut:
    """Begin the next edition: a draft that starts as a copy and takes over the name when it is published."""
    async with rt.db.write() as session:
        draft, made = await begin_edition(session, rt, space, visitor, list_id)
        out = await list_out(session, rt, visitor, draft.id)
    response.status_code = 201 if made else 200
    response.headers["Location"] = f"/api/v1/lists/{out.id}"
    return out
