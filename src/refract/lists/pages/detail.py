"""The page of one list: builder, preview, name, publication, editions and deletion."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Form, Query, Request
from pydantic import BaseModel, ValidationError
from sqlalchemy import select
from starlette.responses import RedirectResponse, Response

from refract.clicks.spool.format import ENTRY_CLICK, PAGE_VIEW
from refract.clicks.stats.calendar import StatsQuery
from refract.clicks.stats.charts import build_chart
from refract.clicks.stats.results import StatsResult
from refract.clicks.stats.scope import SelectedScope
from refract.clicks.stats.service import get_link_stats, get_stats
from refract.core.db.session import WriteSession
from refract.core.errors import Conflict, RefractError
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.domains.hosts import build_domain_url
from refract.identity.responses import get_zone_name, render_fragment
from refract.identity.time_zones import parse_zone
from refract.links.dependencies import Space
from refract.lists import queries, service
from refract.lists.dependencies import (
    begin_edition,
    choose_domain,
    choose_name,
    publish_draft,
    resolve_list_entries,
)
from refract.lists.draft_owners import ListClient, ReadListClient, WriteListClient
from refract.lists.errors import AccountRequiredToPublish, ListChanged
from refract.lists.models import ListEntry, ListStatus
from refract.lists.pages.responses import (
    format_list_name,
    is_autosave,
    redirect_to_list,
    render_client_page,
    render_list,
    rerender_list,
)
from refract.lists.public_pages import build_preview
from refract.lists.schemas import ListPatch
from refract.names.service import Namespace
from refract.web import flash, return_path
from refract.web.dependencies import Rt, page_router
from refract.web.formats import format_date
from refract.web.i18n import gettext, translate_error
from refract.web.middleware import FRAMED_PAGE_HEADERS

router = page_router()


class ListDetailsForm(BaseModel):
    """The form of a draft. A blank field clears its value, so the form says what it contains."""

    has_details: bool = False  # for publishing; saving always changes them
    title: str = ""
    description: str = ""
    palette: str = ""
    layout: str = ""
    cover: str = ""
    has_author: bool = False
    shows_author: bool = False
    has_name: bool = False
    slug: str = ""
    version: int | None = None
    """The version of a team's list that the form was filled from."""
    has_domain: bool = False
    domain: str = ""

    @property
    def name(self) -> str | None:
        return self.slug.strip() or None

    def build_patch(self) -> dict[str, Any]:
        """Return the details. Choices that the form does not have are left out."""
        chosen = {"palette": self.palette, "layout": self.layout, "cover": self.cover}
        given: dict[str, Any] = {"title": self.title, "description": self.description}
        given |= {name: value for name, value in chosen.items() if value}
        return given | ({"shows_author": self.shows_author} if self.has_author else {})


@router.get("/app/lists/{list_id}")
async def list_page(
    list_id: Id,
    request: Request,
    client: ReadListClient,
    rt: Rt,
    share: Annotated[str | None, Query(max_length=10)] = None,
) -> Response:
    """Show the builder of a draft, or a published list with its views. `share` opens the sheet."""
    return await render_list(request, client, rt, list_id, sharing=share is not None)


@router.get("/app/lists/{list_id}/views")
async def list_views(list_id: Id, request: Request, client: ReadListClient, rt: Rt) -> Response:
    """Return the chart of views and clicks of the last 30 days, in the caller's time zone."""
    zone = get_zone_name(request, client.actor) if client.actor else "UTC"
    now = rt.clock.now()
    asked = StatsQuery(tz=zone)
    entries = SelectedScope(
        select(ListEntry.id).where(ListEntry.list_id == list_id), kind=ENTRY_CLICK
    )
    async with rt.db.read() as session:
        await queries.view_list(session, client.caller, list_id)
        views = await get_link_stats(session, list_id, asked, now, kind=PAGE_VIEW)
        clicks = await get_stats(session, entries, asked, now, links=0)
    return render_fragment(
        request,
        client.actor,
        "lists/_views.html",
        views=views.totals.clicks,
        clicks=clicks.totals.clicks,
        chart=_build_chart(views, clicks, now),
        rows=[
            (format_date(point.at.astimezone(parse_zone(zone)).date()), point.clicks, other.clicks)
            for point, other in zip(views.series, clicks.series, strict=True)
        ],
    )


def _build_chart(views: StatsResult, clicks: StatsResult, now: datetime) -> dict[str, Any]:
    """Return the data of `time_chart` in `components/chart.html`."""
    chart = build_chart(views, None, now)
    lines = (gettext("Views"), views), (gettext("Clicks"), clicks)
    chart["series"] = [
        {"label": label, "values": [point.clicks for point in found.series]}
        for label, found in lines
    ]
    return chart


@router.get("/app/lists/{list_id}/preview")
async def preview_page(
    list_id: Id,
    request: Request,
    client: ReadListClient,
    rt: Rt,
    frame: Annotated[str | None, Query(max_length=10)] = None,
) -> Response:
    """Show a draft as visitors will see it. A published list redirects to its public page.

    With `frame` it is shown beside the builder, without the frame of the site.
    """
    async with rt.db.read() as session:
        seen = await queries.view_list(session, client.caller, list_id)
        shown = await resolve_list_entries(session, rt, list_id, seen.epoch)
    if seen.link_list.status == ListStatus.PUBLISHED:
        domain = seen.link_list.domain
        base = build_domain_url(rt.settings.public_url, domain) if domain else ""
        url = f"{base}/{seen.link_list.slug}?edition={seen.link_list.edition}"
        return RedirectResponse(url, 303)
    context = build_preview(seen, shown, rt.settings.public_url)
    response = await render_client_page(
        request,
        rt,
        client,
        "lists/public.html",
        page_title=context["heading"],
        framed=frame is not None,
        **context,
    )
    if frame is not None:
        response.headers.update(FRAMED_PAGE_HEADERS)
    return response


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
                await _save_address(session, rt, space, client, list_id, form)
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
                await _save_address(session, rt, space, client, list_id, form)
            published = await publish_draft(session, rt, space, client, list_id)
    except AccountRequiredToPublish:
        return return_path.redirect_to_sign_in(rt, f"/app/lists/{list_id}#publish")
    except (ValidationError, RefractError) as exc:
        return await _rerender_details(request, client, rt, list_id, exc, form)
    response = RedirectResponse(f"/app/lists/{list_id}?share", 303)
    flash.add(response, rt, gettext("Published {name}", name=format_list_name(published)))
    return response


async def _save_details(
    session: WriteSession, client: ListClient, list_id: int, form: ListDetailsForm, now: datetime
) -> None:
    """Change title and description, and the palette if one was chosen."""
    changes = ListPatch.model_validate(form.build_patch())
    await service.edit_list(session, client.caller, list_id, changes, now, seen=form.version)


async def _save_address(
    session: WriteSession,
    rt: Runtime,
    space: Namespace,
    client: ListClient,
    list_id: int,
    form: ListDetailsForm,
) -> None:
    """Change the domain, where the form has one, and the name."""
    if form.has_domain:
        await choose_domain(session, rt, client, list_id, form.domain)
    await choose_name(session, rt, space, client, list_id, form.name)


async def _rerender_details(
    request: Request,
    client: ListClient,
    rt: Runtime,
    list_id: int,
    error: Exception,
    form: ListDetailsForm,
) -> Response:
    field = "step" if isinstance(error, ListChanged) else "slug"
    values = {**form.build_patch(), "slug": form.slug, "domain": form.domain}
    return await rerender_list(request, client, rt, list_id, error, field, values)


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
            name = format_list_name(found)
            flash.add(response, rt, gettext("{name} is now available", name=name))
    except Conflict as exc:
        flash.add(response, rt, translate_error(exc), kind="wrong")
    return response
