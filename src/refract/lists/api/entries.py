"""API of the entries of a list, their order, and the headings between them."""

from fastapi import Response

from refract.core.errors import NothingToUndo
from refract.core.schemas import Id
from refract.links.dependencies import Space
from refract.lists import addresses, service
from refract.lists.dependencies import (
    BAD_ADDRESS,
    add_entry_batch,
    add_single_entry,
    build_entry_out,
    build_list_out,
    check_address,
    check_changed_address,
    fetch_again,
    save_entry,
)
from refract.lists.draft_owners import WriteListClient
from refract.lists.errors import (
    EntryNotFound,
    ListImmutable,
    ListNotFound,
    OrderMismatch,
    SectionNotFound,
    TooManyEntries,
    TooManySections,
)
from refract.lists.schemas import (
    EntriesCreate,
    EntriesResult,
    EntryOrder,
    EntryOut,
    EntryPatch,
    ListOut,
    SectionCreate,
    SectionOut,
    SectionPatch,
)
from refract.web.dependencies import Rt, api_router
from refract.web.problems import problems
from refract.web.routing import large_body

router = api_router("/lists/{list_id}", "lists")


@router.post(
    "/entries",
    status_code=201,
    responses=problems(*BAD_ADDRESS, ListNotFound, ListImmutable, TooManyEntries)
    | {200: {"model": EntriesResult, "description": "A result for each of `urls`."}},
)
@large_body
async def add_entries(
    list_id: Id,
    new: EntriesCreate,
    client: WriteListClient,
    rt: Rt,
    space: Space,
    response: Response,
) -> EntryOut | EntriesResult:
    """Add one URL (`url`), or several (`urls`), each with its own result.

    Title and description are fetched in the background.
    """
    async with rt.db.read() as reading:
        # No URL is checked for a list that the caller may not edit.
        await service.get_draft(reading, client.caller, list_id)
    if new.url is not None:
        address = await check_address(rt, client, new.url)
        async with rt.db.write() as session:
            return await add_single_entry(session, rt, space, client, list_id, address)
    found = await addresses.check_addresses(rt, client, new.urls or [])
    async with rt.db.write() as session:
        results = await add_entry_batch(session, rt, space, client, list_id, found)
    response.status_code = 200
    return results


@router.patch(
    "/entries/{entry_id}",
    responses=problems(*BAD_ADDRESS, ListNotFound, EntryNotFound, ListImmutable),
)
async def change_entry(
    list_id: Id, entry_id: Id, changes: EntryPatch, client: WriteListClient, rt: Rt
) -> EntryOut:
    """Update an entry's URL, title or description. Fetched metadata never overwrites texts."""
    address = await check_changed_address(rt, client, list_id, changes)
    async with rt.db.write() as session:
        entry = await save_entry(session, rt, client, list_id, entry_id, changes, address)
        return await build_entry_out(session, rt, entry)


@router.post(
    "/entries/{entry_id}/fetch", responses=problems(ListNotFound, EntryNotFound, ListImmutable)
)
async def refetch_entry(list_id: Id, entry_id: Id, client: WriteListClient, rt: Rt) -> EntryOut:
    """Fetch title and description of an entry again, in the background. It fills what is blank."""
    async with rt.db.write() as session:
        entry = await fetch_again(session, rt, client, list_id, entry_id)
        return await build_entry_out(session, rt, entry)


@router.delete(
    "/entries/{entry_id}",
    status_code=204,
    responses=problems(ListNotFound, EntryNotFound, ListImmutable),
)
async def remove_entry(list_id: Id, entry_id: Id, client: WriteListClient, rt: Rt) -> Response:
    """Remove an entry. Entries after it move up. It can be restored within 24 hours."""
    async with rt.db.write() as session:
        await service.remove_entry(session, client.caller, list_id, entry_id, rt.clock.now())
    return Response(status_code=204)


@router.post(
    "/entries/{entry_id}/restore",
    responses=problems(ListNotFound, ListImmutable, NothingToUndo, TooManyEntries),
)
async def restore_entry(list_id: Id, entry_id: Id, client: WriteListClient, rt: Rt) -> EntryOut:
    """Put an entry that was removed within 24 hours back in its place."""
    async with rt.db.write() as session:
        entry = await service.restore_entry(
            session, client.caller, list_id, entry_id, rt.clock.now()
        )
        return await build_entry_out(session, rt, entry)


@router.put("/order", responses=problems(ListNotFound, ListImmutable, OrderMismatch))
async def reorder_entries(
    list_id: Id, order: EntryOrder, client: WriteListClient, rt: Rt
) -> ListOut:
    """Set the order of the entries. It must contain each of them exactly once."""
    places = order.sections
    async with rt.db.write() as session:
        await service.reorder_entries(
            session,
            client.caller,
            list_id,
            order.entry_ids,
            rt.clock.now(),
            None if places is None else {place.id: place.position for place in places},
        )
        return await build_list_out(session, rt, client, list_id)


@router.post(
    "/sections",
    status_code=201,
    responses=problems(ListNotFound, ListImmutable, TooManySections),
)
async def add_section(
    list_id: Id, new: SectionCreate, client: WriteListClient, rt: Rt, space: Space
) -> SectionOut:
    """Add a heading above an entry of a draft, or below all of them."""
    async with rt.db.write() as session:
        section = await service.add_section(session, space, client.caller, list_id, new)
    return SectionOut.model_validate(section)


@router.patch(
    "/sections/{section_id}", responses=problems(ListNotFound, SectionNotFound, ListImmutable)
)
async def change_section(
    list_id: Id, section_id: Id, changes: SectionPatch, client: WriteListClient, rt: Rt
) -> SectionOut:
    """Rename a section, or move its heading above another entry."""
    async with rt.db.write() as session:
        section = await service.edit_section(
            session, client.caller, list_id, section_id, changes, rt.clock.now()
        )
    return SectionOut.model_validate(section)


@router.delete(
    "/sections/{section_id}",
    status_code=204,
    responses=problems(ListNotFound, SectionNotFound, ListImmutable),
)
async def remove_section(list_id: Id, section_id: Id, client: WriteListClient, rt: Rt) -> Response:
    """Remove a heading. Its entries stay in the list."""
    async with rt.db.write() as session:
        await service.remove_section(session, client.caller, list_id, section_id, rt.clock.now())
    return Response(status_code=204)
