"""What stands in a draft: added, edited in place, moved, taken out; and what was found out about it meanwhile."""

from typing import Annotated

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import Response

from refract.core.errors import RefractError
from refract.core.schema import Id
from refract.identity.rendering import respond_part
from refract.links.dependencies import Space
from refract.lists import addresses, queries, service
from refract.lists.creators import Reading, Writing
from refract.lists.edge import add_many, shown_lines
from refract.lists.models import FetchStatus
from refract.lists.pages.frame import Text, again, back, show_list
from refract.lists.pages.typed import added, few_enough, left_over, typed_addresses
from refract.lists.schemas import EntryPatch
from refract.lists.shown import whole
from refract.web import flash
from refract.web.routes import large_body
from refract.web.toolkit import Rt, page_router

router = page_router()


@router.get("/app/lists/{list_id}/news")
async def news(list_id: Id, request: Request, visitor: Reading, rt: Rt, waiting: Annotated[str, Query(max_length=25_000)] = "") -> Response:
    """Those of the waiting entries that wait no longer, for the page to put in place."""
    asked = {int(one) for one in waiting.split(",") if one.isdigit() and len(one) < 20}
    async with rt.db.read() as session:
        seen = await queries.view_list(session, visitor.who, list_id)
        shown = await shown_lines(session, rt, list_id, seen.epoch)
    out = whole(seen, shown, rt.settings.public_url)
    ours = [entry for entry in out.entries if entry.id in asked]
    fresh = [entry for entry in ours if entry.fetch_status != FetchStatus.PENDING]
    still = [str(entry.id) for entry in ours if entry.fetch_status == FetchStatus.PENDING]
    bound = visitor.creator or ""
    return respond_part(request, visitor.actor, "lists/_updates.html", bound=bound, list=out, fresh=fresh, waiting=still)


@router.post("/app/lists/{list_id}/entries")
@large_body
async def add(list_id: Id, request: Request, visitor: Writing, rt: Rt, space: Space, urls: Text = "") -> Response:
    """Add addresses. Those that cannot be added stay in the box, each with its reason."""
    typed = typed_addresses(urls)
    try:
        async with rt.db.read() as reading:
            await service.draft_of(reading, visitor.who, list_id)
        few_enough(typed)
        found = await addresses.look_at(rt, typed)
        async with rt.db.write() as session:
            result = await add_many(session, rt, space, visitor, list_id, found)
    except RefractError as wrong:
        return await again(request, visitor, rt, list_id, wrong, "urls", {"urls": urls})
    if result.failed:
        return await show_list(request, visitor, rt, list_id, status=422, **left_over(typed, result))
    response = back(list_id, "add")
    flash.say(response, rt, added(result))
    return response


@router.post("/app/lists/{list_id}/entries/{entry_id}")
async def change_entry(  # noqa: PLR0913, PLR0917 - each field of the form is one
    list_id: Id, entry_id: Id, request: Request, visitor: Writing, rt: Rt,
    title: Text = "", description: Text = "", title_before: Text = "", description_before: Text = "",
) -> Response:  # fmt: skip
    """Change an entry. A field that was left as it was shown is not a person's word, so it may still be filled."""
    typed = {"title": (title, title_before), "description": (description, description_before)}
    given = {name: value for name, (value, before) in typed.items() if value != before}
    try:
        async with rt.db.write() as session:
            await service.edit_entry(session, visitor.who, list_id, entry_id, EntryPatch.model_validate(given), rt.clock.now())
    except (ValidationError, RefractError) as wrong:
        return await again(request, visitor, rt, list_id, wrong, "entries", {})
    return back(list_id, f"entry-{entry_id}")


@router.post("/app/lists/{list_id}/entries/{entry_id}/{step}")
async def move_entry(list_id: Id, entry_id: Id, step: str, request: Request, visitor: Writing, rt: Rt) -> Response:
    """One place up or down, or out."""
    try:
        async with rt.db.write() as session:
            if step == "remove":
                await service.remove_entry(session, visitor.who, list_id, entry_id, rt.clock.now())
            else:
                await service.shift_entry(session, visitor.who, list_id, entry_id, {"up": -1, "down": 1}.get(step, 0), rt.clock.now())
    except RefractError as wrong:
        return await again(request, visitor, rt, list_id, wrong, "entries", {})
    return back(list_id, "entries" if step == "remove" else f"entry-{entry_id}")


@router.post("/app/lists/{list_id}/order")
async def reorder(list_id: Id, visitor: Writing, rt: Rt, order: Annotated[str, Form(max_length=25_000)] = "") -> Response:
    """The order that somebody has dragged the entries into."""
    ids = [int(one) for one in order.split(",") if one.isdigit() and len(one) < 20]
    async with rt.db.write() as session:
        await service.reorder(session, visitor.who, list_id, ids, rt.clock.now())
    return Response(status_code=204)
