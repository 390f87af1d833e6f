"""One list: the builder, what it is called, publishing it, the edition after it, and its end."""

from fastapi import Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, RefractError
from refract.core.schema import Id
from refract.links.dependencies import Space
from refract.lists import queries, service
from refract.lists.creators import Reading, Writing
from refract.lists.edge import begin_edition, choose_name, publish_draft, shown_lines
from refract.lists.errors import PublishingNeedsAccount
from refract.lists.models import ListStatus
from refract.lists.pages.frame import Text, again, back, show_list, show_page
from refract.lists.public import preview
from refract.lists.schemas import ListPatch
from refract.web import flash, returning
from refract.web.toolkit import Rt, page_router

router = page_router()


@router.get("/app/lists/{list_id}")
async def list_page(list_id: Id, request: Request, visitor: Reading, rt: Rt) -> Response:
    return await show_list(request, visitor, rt, list_id)


@router.get("/app/lists/{list_id}/preview")
async def preview_page(list_id: Id, request: Request, visitor: Reading, rt: Rt) -> Response:
    """A draft as others will see it; of a published list, the page itself."""
    async with rt.db.read() as session:
        seen = await queries.view_list(session, visitor.who, list_id)
        shown = await shown_lines(session, rt, list_id, seen.epoch)
    if seen.found.status == ListStatus.PUBLISHED:
        return RedirectResponse(f"/{seen.found.slug}?edition={seen.found.edition}", 303)
    context = preview(seen.found, shown, rt.settings.public_url)
    return await show_page(request, rt, visitor, "lists/public.html", page_title=context["heading"], **context)


@router.post("/app/lists/{list_id}")
async def change(
    list_id: Id, request: Request, visitor: Writing, rt: Rt, title: Text = "", description: Text = "", palette: Text = ""
) -> Response:
    """Change title and description, and the colours if one of them was chosen."""
    typed = {"title": title, "description": description, **({"palette": palette} if palette else {})}
    try:
        changes = ListPatch.model_validate(typed)
        async with rt.db.write() as session:
            await service.edit_list(session, visitor.who, list_id, changes, rt.clock.now())
    except (ValidationError, RefractError) as wrong:
        return await again(request, visitor, rt, list_id, wrong, "title", typed)
    return back(list_id)


@router.post("/app/lists/{list_id}/slug")
async def wish_slug(list_id: Id, request: Request, visitor: Writing, rt: Rt, space: Space, slug: Text = "") -> Response:
    try:
        async with rt.db.write() as session:
            await choose_name(session, rt, space, visitor, list_id, slug.strip() or None)
    except RefractError as wrong:
        return await again(request, visitor, rt, list_id, wrong, "slug", {"slug": slug})
    return back(list_id, "publish")


@router.post("/app/lists/{list_id}/publish")
async def publish(list_id: Id, request: Request, visitor: Writing, rt: Rt, space: Space, slug: Text = "") -> Response:
    """Publish, under the name in the box or a made-up one, and show the list as it will stay."""
    try:
        async with rt.db.write() as session:
            draft = await service.hold_draft(session, visitor.who, list_id)
            if draft.family_id == draft.id:
                await choose_name(session, rt, space, visitor, list_id, slug.strip() or None)
            await publish_draft(session, rt, space, visitor, list_id)
    except PublishingNeedsAccount:
        return returning.sign_in_first(rt, f"/app/lists/{list_id}#publish")
    except RefractError as wrong:
        return await again(request, visitor, rt, list_id, wrong, "slug", {"slug": slug})
    return back(list_id)


@router.post("/app/lists/{list_id}/editions")
async def new_edition(list_id: Id, request: Request, visitor: Writing, rt: Rt, space: Space) -> Response:
    try:
        async with rt.db.write() as session:
            draft, _ = await begin_edition(session, rt, space, visitor, list_id)
    except RefractError as wrong:
        return await again(request, visitor, rt, list_id, wrong, "step", {})
    return back(draft.id)


@router.post("/app/lists/{list_id}/delete")
async def delete(list_id: Id, visitor: Writing, rt: Rt) -> Response:
    """Delete a list, and offer to take it back."""
    async with rt.db.write() as session:
        found = await service.delete_list(session, rt.ids, visitor.who, list_id, rt.clock.now())
        title = found.title or "Untitled list"
    response = RedirectResponse("/app/lists", 303)
    flash.say(response, rt, f"“{title}” is deleted.", undo=f"/app/lists/{list_id}/undo")
    return response


@router.post("/app/lists/{list_id}/undo")
async def undo(list_id: Id, visitor: Writing, rt: Rt, space: Space) -> Response:
    """Bring back a deleted list."""
    try:
        async with rt.db.write() as session:
            await service.undo_delete(session, space, visitor.who, list_id)
    except Conflict as refused:
        response: Response = RedirectResponse("/app/lists", 303)
        flash.say(response, rt, refused.message, kind="wrong")
        return response
    response = back(list_id)
    flash.say(response, rt, "The list is back.")
    return response


@router.post("/app/lists/{list_id}/release")
async def release(list_id: Id, visitor: Writing, rt: Rt, space: Space) -> Response:
    """Free the name of a deleted list before its 24 hours are over."""
    response = RedirectResponse("/app/lists", 303)
    try:
        async with rt.db.write() as session:
            found = await service.release_name(session, space, visitor.who, list_id)
            flash.say(response, rt, f"The name /{found.slug} is free.")
    except Conflict as refused:
        flash.say(response, rt, refused.message, kind="wrong")
    return response
