"""Add a URL to a draft, from a link, a library item or elsewhere."""

from typing import Annotated, Any

from fastapi import Form, Query, Request
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid, NotFound, RefractError
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import parse_id
from refract.identity.authentication import Caller
from refract.identity.dependencies import WriteCaller
from refract.identity.responses import render_response
from refract.links.dependencies import Space
from refract.lists import addresses, queries, service
from refract.lists.access import ListCaller
from refract.lists.dependencies import add_entry_batch, start_list
from refract.lists.draft_owners import ListClient, WriteListClient
from refract.lists.models import ListStatus
from refract.lists.pages.responses import parse_addresses, reject_too_many
from refract.lists.presentation import build_summary
from refract.lists.schemas import MAX_BATCH_ENTRIES, ListCreate
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()
MAX_DRAFTS = 50


@router.get("/app/lists/add")
async def choose_list(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    url: Annotated[list[str] | None, Query(max_length=MAX_BATCH_ENTRIES)] = None,
) -> Response:
    """Show the caller's drafts to choose from. Several URLs are added at once."""
    return await _render_picker(request, actor, rt, "\n".join(url or [])[:10_000])


@router.post("/app/lists/add")
async def add_to_list(  # noqa: PLR0913, PLR0917 - one per form field
    request: Request,
    actor: WriteCaller,
    client: WriteListClient,
    rt: Rt,
    space: Space,
    url: Annotated[str, Form(max_length=10_000)] = "",
    to: Annotated[str, Form(max_length=20)] = "",
    title: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Append a URL, or a URL per line, to the chosen draft or to a new list."""
    try:
        list_id, list_title = await _add_addresses(rt, space, client, url, to, title)
    except (Conflict, Invalid, NotFound) as exc:
        return await _render_picker(
            request,
            actor,
            rt,
            url,
            status=exc.status,
            problem=translate_error(exc),
            chosen=to,
            title=title,
        )
    response = RedirectResponse(f"/app/lists/{list_id}", 303)
    flash.add(response, rt, gettext("Added to “{title}”", title=list_title))
    return response


async def _add_addresses(
    rt: Runtime, space: Space, client: ListClient, typed: str, to: str, title: str
) -> tuple[int, str]:
    """Return the id and title of the list that the URLs were added to: all of them or none."""
    lines = parse_addresses(typed) or [""]
    reject_too_many(lines)
    found = await addresses.check_addresses(rt, client, lines)
    for checked in found:
        if isinstance(checked, RefractError):
            raise checked
    async with rt.db.write() as session:
        draft = (
            await service.lock_draft(session, client.caller, parse_id(to))
            if to.isdigit()
            else await start_list(session, rt, space, client, ListCreate(title=title))
        )
        await add_entry_batch(session, rt, space, client, draft.id, found)
        return draft.id, draft.title or gettext("Untitled list")


async def _render_picker(
    request: Request, actor: Caller, rt: Runtime, url: str, *, status: int = 200, **context: Any
) -> Response:
    async with rt.db.read() as session:
        mine = ListCaller(actor.user.id)
        page = await queries.load_lists_page(
            session,
            CursorCodec(rt.secret),
            mine,
            limit=MAX_DRAFTS,
            cursor=None,
            status=ListStatus.DRAFT,
        )
    drafts = [
        build_summary(found, count, views, rt.settings.public_url)
        for found, count, views in page.items
    ]
    return render_response(
        request,
        actor,
        "lists/add.html",
        status=status,
        page_title=gettext("Add to list"),
        url=url,
        drafts=drafts,
        **context,
    )
