"""Sections of a draft on its page: add, rename, move and remove headings."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request
from pydantic import ValidationError
from starlette.responses import Response

from refract.core.errors import RefractError
from refract.core.schemas import Id
from refract.links.dependencies import Space
from refract.lists import service
from refract.lists.draft_owners import WriteListClient
from refract.lists.pages.responses import (
    ListFormText,
    is_autosave,
    redirect_to_list,
    rerender_list,
)
from refract.lists.schemas import MAX_ENTRIES, SectionCreate, SectionPatch
from refract.lists.sections import ListItem
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext

router = page_router()


@router.post("/app/lists/{list_id}/sections")
async def add_section(
    list_id: Id,
    request: Request,
    client: WriteListClient,
    rt: Rt,
    space: Space,
    title: ListFormText = "",
) -> Response:
    """Add a heading below all entries. Links that are added next belong to it."""
    try:
        new = SectionCreate(title=title)
        async with rt.db.write() as session:
            section = await service.add_section(session, space, client.caller, list_id, new)
    except (ValidationError, RefractError) as exc:
        return await rerender_list(request, client, rt, list_id, exc, "section", {"section": title})
    response = redirect_to_list(list_id, f"section-{section.id}")
    flash.add(response, rt, gettext("Added “{title}”", title=section.title))
    return response


@router.post("/app/lists/{list_id}/sections/restore")
async def restore_section(
    list_id: Id,
    client: WriteListClient,
    rt: Rt,
    space: Space,
    title: Annotated[str, Query(max_length=100, min_length=1)],
    position: Annotated[int, Query(ge=1, le=MAX_ENTRIES + 1)],
) -> Response:
    """Put a removed heading back."""
    new = SectionCreate(title=title, position=position)
    async with rt.db.write() as session:
        section = await service.add_section(session, space, client.caller, list_id, new)
    response = redirect_to_list(list_id, f"section-{section.id}")
    flash.add(response, rt, gettext("Restored “{title}”", title=section.title))
    return response


@router.post("/app/lists/{list_id}/sections/{section_id}")
async def rename_section(
    list_id: Id,
    section_id: Id,
    request: Request,
    client: WriteListClient,
    rt: Rt,
    title: ListFormText = "",
) -> Response:
    try:
        async with rt.db.write() as session:
            await service.edit_section(
                session,
                client.caller,
                list_id,
                section_id,
                SectionPatch(title=title),
                rt.clock.now(),
            )
    except (ValidationError, RefractError) as exc:
        return await rerender_list(request, client, rt, list_id, exc, "section", {})
    if is_autosave(request):
        return Response(status_code=204)
    response = redirect_to_list(list_id, f"section-{section_id}")
    flash.add(response, rt, gettext("Saved changes"))
    return response


@router.post("/app/lists/{list_id}/sections/{section_id}/remove")
async def remove_section(
    list_id: Id, section_id: Id, request: Request, client: WriteListClient, rt: Rt
) -> Response:
    """Remove a heading and offer to undo it. Its entries stay."""
    try:
        async with rt.db.write() as session:
            removed = await service.remove_section(
                session, client.caller, list_id, section_id, rt.clock.now()
            )
    except RefractError as exc:
        return await rerender_list(request, client, rt, list_id, exc, "entries", {})
    response = redirect_to_list(list_id, "entries")
    query = urlencode({"title": removed.title, "position": removed.position})
    flash.add(
        response,
        rt,
        gettext("Removed “{title}”", title=removed.title),
        undo=f"/app/lists/{list_id}/sections/restore?{query}",
    )
    return response


@router.post("/app/lists/{list_id}/sections/{section_id}/{step}")
async def move_section(
    list_id: Id, section_id: Id, step: str, request: Request, client: WriteListClient, rt: Rt
) -> Response:
    """Move a heading one place up or down."""
    by = {"up": -1, "down": 1}.get(step, 0)
    item = ListItem(section_id, is_section=True)
    try:
        async with rt.db.write() as session:
            await service.move_item(session, client.caller, list_id, item, by, rt.clock.now())
    except RefractError as exc:
        return await rerender_list(request, client, rt, list_id, exc, "entries", {})
    return redirect_to_list(list_id, f"section-{section_id}")
