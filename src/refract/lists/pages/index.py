"""The caller's lists: index, creation, claiming, transfers, and availability of names."""

from typing import Annotated, Any

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import RefractError
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.domains.hosts import to_other_host
from refract.domains.models import MAX_HOST_LENGTH
from refract.identity.dependencies import OptionalCaller, WriteCaller
from refract.identity.responses import render_fragment
from refract.limits.shared_limits import MissLimit
from refract.links.dependencies import Space
from refract.lists import addresses, queries, service
from refract.lists.dependencies import add_entry_batch, start_list
from refract.lists.draft_owners import (
    ListClient,
    ReadListClient,
    WriteListClient,
    format_titles,
    set_creator_cookie,
)
from refract.lists.pages.owners import load_owner_choices
from refract.lists.pages.responses import (
    ListFormText,
    collect_rejected,
    get_error_status,
    get_field_errors,
    parse_addresses,
    redirect_to_list,
    reject_too_many,
    render_client_page,
    render_list,
    rerender_list,
)
from refract.lists.presentation import build_summary
from refract.lists.schemas import ListCreate
from refract.names import service as names
from refract.names.enums import NameTarget
from refract.teams.errors import TeamNotFound
from refract.web import flash
from refract.web.dependencies import PER_PAGE, CursorParam, Rt, build_pager, page_router
from refract.web.i18n import gettext, ngettext
from refract.web.networks import client_network
from refract.web.routing import large_body

router = page_router()


@router.get("/app/lists")
async def lists_page(
    request: Request,
    client: ReadListClient,
    rt: Rt,
    cursor: CursorParam = None,
    q: Annotated[str | None, Query(max_length=200)] = None,
    team: Annotated[str, Query(max_length=50)] = "",
) -> Response:
    """Show the caller's lists, or those of this browser, and the form for a new one."""
    return await _render_lists(request, client, rt, cursor, q, team)


async def _render_lists(
    request: Request,
    client: ListClient,
    rt: Runtime,
    cursor: str | None = None,
    q: str | None = None,
    team: str = "",
    **context: Any,
) -> Response:
    next_cursor, found = await _load_lists(client, rt, cursor, q, team)
    return await render_client_page(
        request,
        rt,
        client,
        "lists/index.html",
        page_title=gettext("Lists"),
        **found,
        may_publish=not client.is_anonymous or rt.settings.effective_anonymous_lists == "publish",
        q=q or "",
        team=team,
        **build_pager("/app/lists", {"q": q or "", "team": team}, cursor, next_cursor),
        **context,
    )


async def _load_lists(
    client: ListClient, rt: Runtime, cursor: str | None, q: str | None, team: str
) -> tuple[str | None, dict[str, Any]]:
    """Return the cursor of the next page, and the lists that the template shows.

    Besides the page these are lists to claim and, on the first page, those that can be restored.
    """
    async with rt.db.read() as session:
        page = await queries.load_lists_page(
            session,
            CursorCodec(rt.secret),
            client.caller,
            limit=PER_PAGE,
            cursor=cursor,
            q=q or None,
            team=team or None,
        )
        owners = await load_owner_choices(session, client.caller.user_id)
        titles = await queries.list_first_titles(session, [found.id for found, _, _ in page.items])
        waiting = (
            []
            if client.is_anonymous
            else await queries.list_claimable(session, client.caller.creator)
        )
        since = rt.clock.now() - service.UNDO_WINDOW
        deleted = (
            []
            if cursor or q or team
            else await queries.list_recently_deleted(session, client.caller, since)
        )
    public_url = rt.settings.public_url
    return page.next_cursor, {
        "lists": [build_summary(*found, public_url) for found in page.items],
        "owners": owners,
        "titles": titles,
        "claimable": format_titles(waiting),
        "deleted": [
            {"id": str(found.id), "title": found.title, "slug": found.slug, "held": held}
            for found, held in deleted
        ],
    }


@router.post("/app/lists")
@large_body
async def create_list(
    request: Request,
    client: WriteListClient,
    rt: Rt,
    space: Space,
    title: ListFormText = "",
    urls: ListFormText = "",
    team: ListFormText = "",
) -> Response:
    """Create a list, with or without a title and URLs."""
    typed = parse_addresses(urls)
    try:
        new = ListCreate(title=title, team=team or None)
        reject_too_many(typed)
        found = await addresses.check_addresses(rt, client, typed)
        async with rt.db.write() as session:
            made = await start_list(session, rt, space, client, new)
            result = await add_entry_batch(session, rt, space, client, made.id, found)
    except (ValidationError, RefractError) as exc:
        values = {"title": title, "urls": urls, "owner": team}
        return await _render_lists(
            request,
            client,
            rt,
            status=get_error_status(exc),
            errors=get_field_errors(exc, "team" if isinstance(exc, TeamNotFound) else "urls"),
            values=values,
        )
    if result.failed:
        return await render_list(
            request, client, rt, made.id, status=422, **collect_rejected(typed, result)
        )
    response = RedirectResponse(f"/app/lists/{made.id}", 303)
    set_creator_cookie(response, rt, client)
    return response


@router.post("/app/lists/claim")
async def claim_lists(
    actor: WriteCaller,
    client: WriteListClient,
    rt: Rt,
    list_id: Annotated[Id | None, Form()] = None,
) -> Response:
    """Add the lists of this browser to the account, and return to the list shown before."""
    creator, claimed = client.caller.creator, []
    if creator is not None:
        async with rt.db.write() as session:
            claimed = await service.claim_lists(session, actor.user.id, creator)
    response = RedirectResponse("/app/lists", 303) if list_id is None else redirect_to_list(list_id)
    message = ngettext(
        "Added {n} list to your account", "Added {n} lists to your account", len(claimed)
    )
    flash.add(response, rt, message)
    return response


@router.post("/app/lists/{list_id}/transfer")
async def transfer_list(
    list_id: Id,
    request: Request,
    _actor: WriteCaller,
    client: WriteListClient,
    rt: Rt,
    team: Annotated[str, Form(max_length=50)] = "",
) -> Response:
    """Make a team the owner of a list, or without one the caller."""
    try:
        async with rt.db.write() as session:
            found = await service.transfer_list(
                session, client.caller, list_id, team or None, rt.clock.now()
            )
            name = found.team_name
    except RefractError as exc:
        return await rerender_list(request, client, rt, list_id, exc, "team", {"team": team})
    response = redirect_to_list(list_id)
    message = gettext("Transferred to {name}", name=name) if name else gettext("The list is yours")
    flash.add(response, rt, message)
    return response


@router.get("/app/lists/availability")
async def check_availability(
    request: Request,
    actor: OptionalCaller,
    rt: Rt,
    space: Space,
    slug: Annotated[str, Query(max_length=200)] = "",
    domain: Annotated[str, Query(max_length=MAX_HOST_LENGTH)] = "",
) -> Response:
    """Return a short text that says whether a name is available."""
    await rt.singleton(MissLimit).charge_network(client_network(request, rt))
    found = None
    if slug:
        async with rt.db.read() as session:
            host = to_other_host(rt.settings.public_url, domain)
            found = await names.check_availability(session, space, slug, NameTarget.LIST, host)
    return render_fragment(request, actor, "lists/_slug_state.html", found=found, slug=slug)
