"""API of the sections of a list: headings between its entries."""

from fastapi import Response

from refract.core.schemas import Id
from refract.links.dependencies import Space
from refract.lists import service
from refract.lists.draft_owners import WriteListClient
from refract.lists.errors import ListImmutable, ListNotFound, SectionNotFound, TooManySections
from refract.lists.schemas import SectionCreate, SectionOut, SectionPatch
from refract.web.dependencies import Rt, api_router
from refract.web.problems import problems

router = api_router("/lists/{list_id}/sections", "lists")


@router.post("", status_code=201, responses=problems(ListNotFound, ListImmutable, TooManySections))
async def add_section(
    list_id: Id, new: SectionCreate, client: WriteListClient, rt: Rt, space: Space
) -> SectionOut:
    """Add a heading above an entry of a draft, or below all of them."""
    async with rt.db.write() as session:
        section = await service.add_section(session, space, client.caller, list_id, new)
    return SectionOut.model_validate(section)


@router.patch("/{section_id}", responses=problems(ListNotFound, SectionNotFound, ListImmutable))
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
    "/{section_id}",
    status_code=204,
    responses=problems(ListNotFound, SectionNotFound, ListImmutable),
)
async def remove_section(list_id: Id, section_id: Id, client: WriteListClient, rt: Rt) -> Response:
    """Remove a heading. Its entries stay in the list."""
    async with rt.db.write() as session:
        await service.remove_section(session, client.caller, list_id, section_id, rt.clock.now())
    return Response(status_code=204)
