"""Entries of a draft on its page: add, edit, move, remove, reorder, and poll for metadata."""

from typing import Annotated

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import Response

from refract.core.errors import RefractError
from refract.core.schemas import Id
from refract.identity.responses import render_fragment
from refract.links.dependencies import Space
from refract.lists import addresses, queries, service
from refract.lists.dependencies import (
    add_entry_batch,
    build_resolved_list,
    check_changed_address,
    fetch_again,
    resolve_list_entries,
    save_entry,
)
from refract.lists.draft_owners import ReadListClient, WriteListClient
from refract.lists.models import FetchStatus
from refract.lists.pages.responses import (
    ListFormText,
    collect_rejected,
    format_result,
    is_autosave,
    parse_addresses,
    redirect_to_list,
    reject_too_many,
    render_list,
    rerender_list,
)
from refract.lists.schemas import EntryPatch
from refract.lists.sections import ListItem
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext
from refract.web.routing import large_body

router = page_router()


@router.get("/app/lists/{list_id}/news")
async def poll_entries(
    list_id: Id,
    request: Request,
    client: ReadListClient,
    rt: Rt,
    waiting: Annotated[str, Query(max_length=25_000)] = "",
) -> Response:
    """Return those of the waiting entries whose metadata has arrived, for the page to swap in."""
    requested = {int(part) for part in waiting.split(",") if part.isdigit() and len(part) < 20}
    async with rt.db.read() as session:
        seen = await queries.view_list(session, client.caller, list_id)
        shown = await resolve_list_entries(session, rt, list_id, seen.epoch)
    out = await build_resolved_list(rt, seen, shown)
    entries = [entry for entry in out.entries if entry.id in requested]
    fresh = [entry for entry in entries if entry.fetch_status != FetchStatus.PENDING]
    pending = [str(entry.id) for entry in entries if entry.fetch_status == FetchStatus.PENDING]
    bound = client.creator or ""
    return render_fragment(
        request,
        client.actor,
        "lists/_updates.html",
        bound=bound,
        list=out,
        fresh=fresh,
        waiting=pending,
    )


@router.post("/app/lists/{list_id}/entries")
@large_body
async def add_entries(
    list_id: Id,
    request: Request,
    client: WriteListClient,
    rt: Rt,
    space: Space,
    urls: ListFormText = "",
) -> Response:
    """Add URLs. Rejected ones stay in the field, with the reasons."""
    typed = parse_addresses(urls)
    try:
        async with rt.db.read() as reading:
            await service.get_draft(reading, client.caller, list_id)
        reject_too_many(typed)
        found = await addresses.check_addresses(rt, client, typed)
        async with rt.db.write() as session:
            result = await add_entry_batch(session, rt, space, client, list_id, found)
    except RefractError as exc:
        return await rerender_list(request, client, rt, list_id, exc, "urls", {"urls": urls})
    if result.failed:
        return await render_list(
            request, client, rt, list_id, status=422, **collect_rejected(typed, result)
        )
    response = redirect_to_list(list_id, "add")
    flash.add(response, rt, format_result(result))
    return response


@router.post("/app/lists/{list_id}/entries/{entry_id}")
async def change_entry(  # noqa: PLR0913, PLR0917 - one per form field
    list_id: Id,
    entry_id: Id,
    request: Request,
    client: WriteListClient,
    rt: Rt,
    title: ListFormText = "",
    description: ListFormText = "",
    url: ListFormText = "",
    title_before: ListFormText = "",
    description_before: ListFormText = "",
    url_before: ListFormText = "",
) -> Response:
    """Change an entry. A field that was not edited may still be filled by fetched metadata."""
    typed = {
        "url": (url, url_before),
        "title": (title, title_before),
        "description": (description, description_before),
    }
    given = {name: value for name, (value, before) in typed.items() if value != before}
    try:
        changes = EntryPatch.model_validate(given)
        address = await check_changed_address(rt, client, list_id, changes)
        async with rt.db.write() as session:
            await save_entry(session, rt, client, list_id, entry_id, changes, address)
    except (ValidationError, RefractError) as exc:
        return await rerender_list(request, client, rt, list_id, exc, "entries", {})
    if is_autosave(request):
        return Response(status_code=204)
    response = redirect_to_list(list_id, f"entry-{entry_id}")
    flash.add(response, rt, gettext("Saved changes"))
    return response


@router.post("/app/lists/{list_id}/entries/{entry_id}/fetch")
async def refetch_entry(
    list_id: Id, entry_id: Id, request: Request, client: WriteListClient, rt: Rt
) -> Response:
    """Fetch the details of an entry again."""
    try:
        async with rt.db.write() as session:
            await fetch_again(session, rt, client, list_id, entry_id)
    except RefractError as exc:
        return await rerender_list(request, client, rt, list_id, exc, "entries", {})
    return redirect_to_list(list_id, f"entry-{entry_id}")


@router.post("/app/lists/{list_id}/entries/{entry_id}/remove")
async def remove_entry(
    list_id: Id, entry_id: Id, request: Request, client: WriteListClient, rt: Rt
) -> Response:
    """Remove an entry and offer to undo it."""
    try:
        async with rt.db.write() as session:
            removed = await service.remove_entry(
                session, client.caller, list_id, entry_id, rt.clock.now()
            )
    except RefractError as exc:
        return await rerender_list(request, client, rt, list_id, exc, "entries", {})
    response = redirect_to_list(list_id, "entries")
    flash.add(
        response,
        rt,
        gettext("Removed “{title}”", title=removed.title or removed.url),
        undo=f"/app/lists/{list_id}/entries/{entry_id}/restore",
    )
    return response


@router.post("/app/lists/{list_id}/entries/{entry_id}/restore")
async def restore_entry(
    list_id: Id, entry_id: Id, request: Request, client: WriteListClient, rt: Rt
) -> Response:
    """Put a removed entry back where it was."""
    try:
        async with rt.db.write() as session:
            entry = await service.restore_entry(
                session, client.caller, list_id, entry_id, rt.clock.now()
            )
    except RefractError as exc:
        return await rerender_list(request, client, rt, list_id, exc, "entries", {})
    response = redirect_to_list(list_id, f"entry-{entry_id}")
    flash.add(response, rt, gettext("Restored “{title}”", title=entry.title or entry.url))
    return response


@router.post("/app/lists/{list_id}/entries/{entry_id}/{step}")
async def move_entry(
    list_id: Id, entry_id: Id, step: str, request: Request, client: WriteListClient, rt: Rt
) -> Response:
    """Move an entry one place up or down."""
    by = {"up": -1, "down": 1}.get(step, 0)
    try:
        async with rt.db.write() as session:
            await service.move_item(
                session, client.caller, list_id, ListItem(entry_id), by, rt.clock.now()
            )
    except RefractError as exc:
        return await rerender_list(request, client, rt, list_id, exc, "entries", {})
    return redirect_to_list(list_id, f"entry-{entry_id}")


@router.post("/app/lists/{list_id}/order")
async def reorder_entries(
    list_id: Id,
    client: WriteListClient,
    rt: Rt,
    order: Annotated[str, Form(max_length=25_000)] = "",
) -> Response:
    """Save the order of entries and sections (with an `s` before the id) after dragging."""
    items = [
        ListItem(int(number), is_section=part.startswith("s"))
        for part in order.split(",")
        if (number := part.removeprefix("s")).isdigit() and len(number) < 20
    ]
    async with rt.db.write() as session:
        await service.arrange_list(session, client.caller, list_id, items, rt.clock.now())
    return Response(status_code=204)
