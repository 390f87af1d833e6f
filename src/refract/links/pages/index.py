"""The table of links: filters, search, orders, and doing one thing to many."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Form, Query, Request
from pydantic import TypeAdapter, ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.db.session import WriteSession
from refract.core.errors import Conflict, Forbidden, Invalid, NotFound
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.links import queries, service
from refract.links.dependencies import Space, who
from refract.links.models import LinkState, Visibility
from refract.links.pages.link_rows import load_rows
from refract.links.queries import CLICK_SORTS, LinkFilter, LinkSort, OwnerFilter
from refract.links.schemas import LinkPatch
from refract.names.service import Namespace
from refract.web import flash
from refract.web.dependencies import CursorParam, Rt, page_router
from refract.web.return_path import get_referring_path

router = page_router()
PER_PAGE = 25
MAX_SELECTED = 100
SORT_LABELS = {
    LinkSort.CREATED: "Newest",
    LinkSort.UPDATED: "Changed last",
    LinkSort.CLICKS: "Most clicks",
    LinkSort.LAST_CLICK: "Clicked last",
}
OWNER_LABELS = {
    OwnerFilter.ME: "Mine",
    OwnerFilter.SHARED: "Shared with me",
    OwnerFilter.PUBLIC: "Everybody’s public",
    OwnerFilter.ALL: "All",
}
VISIBILITY_FILTER_CHOICES = [
    ("", "Any"),
    *((one.value, one.value.capitalize()) for one in Visibility),
]
_ID_LIST = TypeAdapter(list[Id])


@router.get("/app/links")
async def links_page(  # noqa: PLR0913, PLR0917 - each filter is one
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    cursor: CursorParam = None,
    q: Annotated[str | None, Query(max_length=200)] = None,
    status: LinkState | Literal[""] | None = None,
    tag: Annotated[str | None, Query(max_length=200)] = None,
    owner: OwnerFilter = OwnerFilter.ME,
    sort: LinkSort = LinkSort.CREATED,
    visibility: Visibility | Literal[""] | None = None,
) -> Response:
    """My links, newest first, or those that match. The number of queries does not depend on how many there are."""
    if owner == OwnerFilter.ALL and not actor.is_admin:
        owner = OwnerFilter.ME
    if owner == OwnerFilter.PUBLIC and sort in CLICK_SORTS:
        sort = LinkSort.CREATED
    asked = LinkFilter(
        owner=owner,
        status=status or None,
        tag=tag or None,
        q=q or None,
        sort=sort,
        visibility=visibility or None,
    )
    async with rt.db.read() as session:
        page = await queries.load_links_page(
            session,
            CursorCodec(rt.secret),
            who(actor),
            asked,
            rt.clock.now(),
            limit=PER_PAGE,
            cursor=cursor,
        )
        rows = await load_rows(session, rt, page.items, stats=owner != OwnerFilter.PUBLIC)
        states = await queries.count_states(session, actor.user.id, rt.clock.now())
        tags = await queries.count_tags(session, actor.user.id)
        invited = await queries.count_invitations(session, actor.user.id, rt.clock.now())
    kept = _query_params(asked)
    return render_response(
        request,
        actor,
        "links/index.html",
        page_title="Links",
        links=rows,
        asked=asked,
        filtered=bool(kept),
        q=q or "",
        states=[
            (state.value, states[state.value])
            for state in LinkState
            if state != LinkState.ON_HOLD or states[state.value]
        ],
        all_count=sum(count for state, count in states.items() if state != LinkState.DELETED),
        most_counted=queries.MAX_COUNTED,
        tags=tags,
        invitations_waiting=invited,
        **_build_choices(actor, owner),
        address=lambda **changes: _build_url(kept, changes),
        may_act=owner not in (OwnerFilter.PUBLIC, OwnerFilter.SHARED),
        next_url=_build_url(kept, {"cursor": page.next_cursor}) if page.next_cursor else None,
        first_url=_build_url(kept, {}) if cursor else None,
    )


def _build_choices(actor: Caller, owner: OwnerFilter) -> dict[str, Any]:
    """Return what can be chosen, with labels: `all` for administrators alone, and no order by clicks among public links."""
    owners = [
        (key.value, words)
        for key, words in OWNER_LABELS.items()
        if key != OwnerFilter.ALL or actor.is_admin
    ]
    sorts = [
        (key.value, words)
        for key, words in SORT_LABELS.items()
        if owner != OwnerFilter.PUBLIC or key not in CLICK_SORTS
    ]
    return {"sorts": sorts, "owners": owners, "visibilities": VISIBILITY_FILTER_CHOICES}


def _query_params(asked: LinkFilter) -> dict[str, str]:
    """The parts of a question that its address says; what is usual goes without saying."""
    said = {"q": asked.q, "status": asked.status, "tag": asked.tag, "visibility": asked.visibility}
    said |= {
        "owner": asked.owner if asked.owner != OwnerFilter.ME else None,
        "sort": asked.sort if asked.sort != LinkSort.CREATED else None,
    }
    return {name: str(value) for name, value in said.items() if value}


def _build_url(kept: dict[str, str], changes: dict[str, str | None]) -> str:
    query = {name: value for name, value in {**kept, **changes}.items() if value}
    return f"/app/links?{urlencode(query)}" if query else "/app/links"


Act = Callable[[WriteSession, Runtime, Namespace, Caller, int], Any]
ACTS: dict[str, tuple[str, Act]] = {
    "disable": (
        "disabled",
        lambda session, rt, _space, actor, one: service.disable_link(
            session, who(actor), one, rt.clock.now()
        ),
    ),
    "enable": (
        "enabled",
        lambda session, rt, _space, actor, one: service.enable_link(
            session, who(actor), one, rt.clock.now()
        ),
    ),
    "delete": (
        "deleted",
        lambda session, rt, _space, actor, one: service.delete_link(
            session, who(actor), one, rt.clock.now()
        ),
    ),
    "undo": (
        "undone",
        lambda session, _rt, space, actor, one: service.undo_link(session, space, who(actor), one),
    ),
}
_SAYS = {
    "disable": "Disabled",
    "enable": "Enabled",
    "delete": "Deleted",
    "undo": "Undone:",
    "tag": "Tagged",
}


@router.post("/app/links/bulk")
async def apply_bulk_action(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    act: Annotated[str, Form(max_length=20)] = "",
    ids: Annotated[list[str] | None, Form(max_length=MAX_SELECTED)] = None,
    tag: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Disable, enable, delete or tag the links that were ticked. What cannot be done to one of them is done to the others."""
    chosen = _parse_ids(ids or [])
    response = RedirectResponse(get_referring_path(request, rt, "/app/links"), 303)
    if not chosen or act not in _SAYS or (act == "tag" and not tag.strip()):
        flash.add(
            response,
            rt,
            "Tick some links first." if not chosen else "Say what to do with them.",
            kind="note",
        )
        return response
    async with rt.db.write() as session:
        done, refused = await _apply_action(session, rt, space, actor, act, chosen, tag)
    _flash_result(response, rt, act, done, refused)
    return response


@router.post("/app/links/undo")
async def undo_bulk_action(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    ids: Annotated[str, Query(max_length=MAX_SELECTED * 20)] = "",
) -> Response:
    """Take back what was just done to several links."""
    response = RedirectResponse(get_referring_path(request, rt, "/app/links"), 303)
    chosen = _parse_ids(ids.split(","))
    if chosen:
        async with rt.db.write() as session:
            done, refused = await _apply_action(session, rt, space, actor, "undo", chosen, "")
        _flash_result(response, rt, "undo", done, refused)
    return response


async def _apply_action(
    session: WriteSession,
    rt: Runtime,
    space: Namespace,
    actor: Caller,
    act: str,
    chosen: Sequence[int],
    tag: str,
) -> tuple[list[int], list[str]]:
    """Which links it was done to, and why not to the others. In one order, so that two people never wait for each other in a circle."""
    done, refused = [], []
    for one in sorted(chosen):
        try:
            if act == "tag":
                await _add_tag(session, space, actor, one, tag)
            else:
                _past, step = ACTS[act]
                await step(session, rt, space, actor, one)
            done.append(one)
        except (Conflict, Forbidden, Invalid, NotFound) as exc:
            refused.append(exc.message)
    return done, refused


async def _add_tag(
    session: WriteSession, space: Namespace, actor: Caller, link_id: int, tag: str
) -> None:
    link, _ = await queries.view_link(session, who(actor), link_id)
    card = await queries.load_card(session, link)
    await service.edit_link(
        session, space, who(actor), link_id, LinkPatch(tags=[*card.tags, tag.strip()])
    )


def _flash_result(
    response: Response, rt: Runtime, act: str, done: Sequence[int], refused: Sequence[str]
) -> None:
    if not done:
        flash.add(response, rt, refused[0], kind="wrong")
        return
    links = f"{len(done)} link{'s' if len(done) > 1 else ''}"
    rest = f" {len(refused)} could not be: {refused[0]}" if refused else ""
    undoable = act in ("disable", "delete", "tag")
    flash.add(
        response,
        rt,
        f"{_SAYS[act]} {links}.{rest}",
        undo=f"/app/links/undo?ids={','.join(map(str, done))}" if undoable else None,
    )


def _parse_ids(texts: Sequence[str]) -> list[int]:
    try:
        return list(dict.fromkeys(_ID_LIST.validate_python(texts)))[:MAX_SELECTED]
    except ValidationError:
        return []
