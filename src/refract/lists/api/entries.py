"""Entries of a list, and their order."""

from fastapi import Response

from refract.core.schema import Id
from refract.links.dependencies import Space
from refract.lists import addresses, service
from refract.lists.creators import Writing
from refract.lists.edge import ASKING, BAD_ADDRESS, add_many, add_one, entry_out, list_out, look_at
from refract.lists.errors import EntryNotFound, ListImmutable, ListNotFound, OrderMismatch, TooManyEntries
from refract.lists.schemas import EntriesCreate, EntriesResult, EntryOut, EntryPatch, ListOut, Order
from refract.web.problems import problems
from refract.web.routes import large_body
from refract.web.toolkit import IdempotencyKey, Rt, api_router

router = api_router("/lists/{list_id}", "lists")


@router.post(
    "/entries",
    status_code=201,
    responses=problems(*ASKING, *BAD_ADDRESS, ListNotFound, ListImmutable, TooManyEntries)
    | {200: {"model": EntriesResult, "description": "A result for each of `urls`."}},
)
@large_body
async def add_entries(
    list_id: Id,
    new: EntriesCreate,
    visitor: Writing,
    rt: Rt,
    space: Space,
    response: Response,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> EntryOut | EntriesResult:
    """Add one address (`url`), or many (`urls`), each with a result of its own. Title and description follow by themselves."""
    async with rt.db.read() as reading:
        await service.draft_of(reading, visitor.who, list_id)  # nobody's addresses are looked at for a list they cannot add to
    if new.url is not None:
        address = await look_at(rt, new.url)
        async with rt.db.write() as session:
            return await add_one(session, rt, space, visitor, list_id, address)
    found = await addresses.look_at(rt, new.urls or [])
    async with rt.db.write() as session:
        results = await add_many(session, rt, space, visitor, list_id, found)
    response.status_code = 200
    return results


@router.patch("/entries/{entry_id}", responses=problems(*ASKING, ListNotFound, EntryNotFound, ListImmutable))
async def change_entry(list_id: Id, entry_id: Id, changes: EntryPatch, visitor: Writing, rt: Rt) -> EntryOut:
    """Change an entry's title or description. What a person writes is never overwritten by what we fetch."""
    async with rt.db.write() as session:
        entry = await service.edit_entry(session, visitor.who, list_id, entry_id, changes, rt.clock.now())
        return await entry_out(session, rt, entry)


@router.delete("/entries/{entry_id}", status_code=204, responses=problems(*ASKING, ListNotFound, EntryNotFound, ListImmutable))
async def remove_entry(list_id: Id, entry_id: Id, visitor: Writing, rt: Rt) -> Response:
    """Take an entry out; those behind it move up."""
    async with rt.db.write() as session:
        await service.remove_entry(session, visitor.who, list_id, entry_id, rt.clock.now())
    return Response(status_code=204)


@router.put("/order", responses=problems(*ASKING, ListNotFound, ListImmutable, OrderMismatch))
async def reorder(list_id: Id, order: Order, visitor: Writing, rt: Rt) -> ListOut:
    """Put the entries into a new order, which names each of them exactly once."""
    async with rt.db.write() as session:
        await service.reorder(session, visitor.who, list_id, order.entry_ids, rt.clock.now())
        return await list_out(session, rt, visitor, list_id)
