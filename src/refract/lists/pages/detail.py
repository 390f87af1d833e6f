"""The page of one list: builder, preview, name, publication, editions and deletion."""

from datetime import datetime
from typing import Annotated

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.db.session import WriteSession
from refract.core.errors import Conflict, RefractError
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.links.dependencies import Space
from refract.lists import queries, service
from refract.lists.dependencies import (
    begin_edition,
    choose_name,
    publish_draft,
    resolve_list_entries,
)
from refract.lists.draft_owners import ListClient, ReadListClient, WriteListClient
from refract.lists.errors import AccountRequiredToPublish
from refract.lists.models import ListStatus
from refract.lists.pages.responses import (
    is_autosave,
    redirect_to_list,
    render_client_page,
    render_list,
    rerender_list,
)
from refract.lists.public_pages import build_preview
from refract.lists.schemas import ListDetailsForm, ListPatch
from refract.web import flash, return_path
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()


@router.get("/app/lists/{list_id}")
async def list_page(list_id: Id, request: Request, client: ReadListClient, rt: Rt) -> Response:
    return await render_list(request, client, rt, list_id)


@router.get("/app/lists/{list_id}/preview")
async def preview_page(list_id: Id, request: Request, client: ReadListClient, rt: Rt) -> Response:
    """Show a draft as visitors will see it. A published list redirects to its public page."""
    async with rt.db.read() as session:
        seen = await queries.view_list(session, client.caller, list_id)
        shown = await resolve_list_entries(session, rt, list_id, seen.epoch)
    if seen.link_list.status == ListStatus.PUBLISHED:
        return RedirectResponse(f"/{seen.link_list.slug}?edition={seen.link_list.edition}", 303)
    context = build_preview(seen.link_list, shown, rt.settings.public_url)
    return await render_client_page(
        request, rt, client, "lists/public.html", page_title=context["heading"], **context
    )


@router.post("/app/lists/{list_id}")
async def change_list(
    list_id: Id,
    request: Request,
    client: WriteListClient,
    rt: Rt,
    space: Space,
    form: Annotated[ListDetailsForm, Form()],
) -> Response:
    """Change the details of a draft, and its name if the form has one. It also saves itself."""
    try:
        async with rt.db.write() as session:
            await _save_details(session, client, list_id, form, rt.clock.now())
            if form.has_name:
                await choose_name(session, rt, space, client, list_id, form.name)
    except (ValidationError, RefractError) as exc:
        return await _rerender_details(request, client, rt, list_id, exc, form)
    if is_autosave(request):
        return Response(status_code=204)
    response = redirect_to_list(list_id)
    flash.add(response, rt, gettext("Saved changes"))
    return response


@router.post("/app/lists/{list_id}/publish")
async def publish_list(
    list_id: Id,
    request: Request,
    client: WriteListClient,
    rt: Rt,
    space: Space,
    form: Annotated[ListDetailsForm, Form()],
) -> Response:
    """Publish what the form shows, under the given name or a generated one."""
    try:
        async with rt.db.write() as session:
            if form.has_details:
                await _save_details(session, client, list_id, form, rt.clock.now())
            draft = await service.lock_draft(session, client.caller, list_id)
            if draft.family_id == draft.id:
                await choose_name(session, rt, space, client, list_id, form.name)
            published = await publish_draft(session, rt, space, client, list_id)
    except AccountRequiredToPublish:
        return return_path.redirect_to_sign_in(rt, f"/app/lists/{list_id}#publish")
    except (ValidationError, RefractError) as exc:
        return await _rerender_details(request, client, rt, list_id, exc, form)
    response = redirect_to_list(list_id)
    flash.add(response, rt, gettext("Published /{name}", name=published.slug))
    return response


async def _save_details(
    session: WriteSession, client: ListClient, list_id: int, form: ListDetailsForm, now: datetime
) -> None:
    """Change title and description, and the palette if one was chosen."""
    changes = ListPatch.model_validate(form.build_patch())
    await service.edit_list(session, client.caller, list_id, changes, now)


async def _rerender_details(
    request: Request,
    client: ListClient,
    rt: Runtime,
    list_id: int,
    error: Exception,
    form: ListDetailsForm,
) -> Response:
    return await rerender_list(
        request, client, rt, list_id, error, "slug", {**form.build_patch(), "slug": form.slug}
    )


@router.post("/app/lists/{list_id}/editions")
async def create_list_edition(
    list_id: Id, request: Request, client: WriteListClient, rt: Rt, space: Space
) -> Response:
    try:
        async with rt.db.write() as session:
            draft, _ = await begin_edition(session, rt, space, client, list_id)
    except RefractError as exc:
        return await rerender_list(request, client, rt, list_id, exc, "step", {})
    return redirect_to_list(draft.id)


@router.post("/app/lists/{list_id}/delete")
async def delete_list(list_id: Id, client: WriteListClient, rt: Rt) -> Response:
    """Delete a list and offer to undo it."""
    async with rt.db.write() as session:
        found = await service.delete_list(session, rt.ids, client.caller, list_id, rt.clock.now())
        title = found.title or gettext("Untitled list")
    response = RedirectResponse("/app/lists", 303)
    flash.add(
        response,
        rt,
        gettext("Deleted “{title}”", title=title),
        undo=f"/app/lists/{list_id}/undo",
    )
    return response


@router.post("/app/lists/{list_id}/undo")
async def undo_list_deletion(
    list_id: Id, client: WriteListClient, rt: Rt, space: Space
) -> Response:
    """Restore a deleted list."""
    try:
        async with rt.db.write() as session:
            found = await service.undo_delete(session, space, client.caller, list_id)
            title = found.title or gettext("Untitled list")
    except Conflict as exc:
        response: Response = RedirectResponse("/app/lists", 303)
        flash.add(response, rt, translate_error(exc), kind="wrong")
        return response
    response = redirect_to_list(list_id)
    flash.add(response, rt, gettext("Restored “{title}”", title=title))
    return response


@router.post("/app/lists/{list_id}/release")
async def release_list_name(list_id: Id, client: WriteListClient, rt: Rt, space: Space) -> Response:
    """Release the name of a deleted list before its 24 hours are over."""
    response = RedirectResponse("/app/lists", 303)
    try:
        async with rt.db.write() as session:
            found = await service.release_name(session, space, client.caller, list_id)
            flash.add(response, rt, gettext("/{name} is now available", name=found.slug))
    except Conflict as exc:
        flash.add(response, rt, translate_error(exc), kind="wrong")
    return response
