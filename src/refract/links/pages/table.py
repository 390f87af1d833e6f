"""The table of links: filters, search, orders, and doing one thing to many."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Form, Query, Request
from pydantic import TypeAdapter, ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.db import WriteSession
from refract.core.errors import Conflict, Forbidden, Invalid, NotFound
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity.actors import Reader, Writer
from refract.identity.rendering import respond
from refract.identity.visitors import Actor
from refract.links import queries, service
from refract.links.dependencies import Space, who
from refract.links.models import LinkState, Visibility
from refract.links.pages.rows import rows_of
from refract.links.queries import CLICK_SORTS, LinkQuestion, OwnerFilter, Sort
from refract.links.schemas import LinkPatch
from refract.names.service import Namespace
from refract.web import flash
from refract.web.returning import back_to
from refract.web.toolkit import Cursor, Rt, page_router

router = page_router()
PER_PAGE = 25
MOST_AT_ONCE = 100
SORTS = {Sort.CREATED: "Newest", Sort.UPDATED: "Changed last", Sort.CLICKS: "Most clicks", Sort.LAST_CLICK: "Clicked last"}
OWNERS = {OwnerFilter.ME: "Mine", OwnerFilter.SHARED: "Shared with me", OwnerFilter.PUBLIC: "Everybody’s public", OwnerFilter.ALL: "All"}
VISIBILITIES = [("", "Any"), *((one.value, one.value.capitalize()) for one in Visibility)]
_IDS = TypeAdapter(list[Id])


@router.get("/app/links")
async def links_page(  # noqa: PLR0913, PLR0917 - each filter is one
    request: Request,
    actor: Reader,
    rt: Rt,
    cursor: Cursor = None,
    q: Annotated[str | None, Query(max_length=200)] = None,
    status: LinkState | Literal[""] | None = None,
    tag: Annotated[str | None, Query(max_length=200)] = None,
    owner: OwnerFilter = OwnerFilter.ME,
    sort: Sort = Sort.CREATED,
    visibility: Visibility | Literal[""] | None = None,
) -> Response:
    """My links, newest first, or those that match. The number of queries does not depend on how many there are."""
    if owner == OwnerFilter.ALL and not actor.is_admin:
        owner = OwnerFilter.ME
    if owner == OwnerFilter.PUBLIC and sort in CLICK_SORTS:
        sort = Sort.CREATED
    asked = LinkQuestion(owner=owner, status=status or None, tag=tag or None, q=q or None, sort=sort, visibility=visibility or None)
    async with rt.db.read() as session:
        page = await queries.page_of_links(session, Cursors(rt.secret), who(actor), asked, rt.clock.now(), limit=PER_PAGE, cursor=cursor)
        rows = await rows_of(session, rt, page.items, stats=owner != OwnerFilter.PUBLIC)
        states = await queries.count_states(session, actor.user.id, rt.clock.now())
        tags = await queries.count_tags(session, actor.user.id)
        invited = await queries.count_invitations(session, actor.user.id, rt.clock.now())
    kept = _kept(asked)
    return respond(
        request,
        actor,
        "links/index.html",
        page_title="Links",
        links=rows,
        asked=asked,
        filtered=bool(kept),
        q=q or "",
        states=[(state.value, states[state.value]) for state in LinkState if state != LinkState.ON_HOLD or states[state.value]],
        all_count=sum(count for state, count in states.items() if state != LinkState.DELETED),
        most_counted=queries.MOST_COUNTED,
        tags=tags,
        invitations_waiting=invited,
        **_choices(actor, owner),
        address=lambda **changes: _address(kept, changes),
        may_act=owner not in (OwnerFilter.PUBLIC, OwnerFilter.SHARED),
        next_url=_address(kept, {"cursor": page.next_cursor}) if page.next_cursor else None,
        first_url=_address(kept, {}) if cursor else None,
    )


def _choices(actor: Actor, owner: OwnerFilter) -> dict[str, Any]:
    """Return what can be chosen, with labels: `all` for administrators alone, and no order by clicks among public links."""
    owners = [(key.value, words) for key, words in OWNERS.items() if key != OwnerFilter.ALL or actor.is_admin]
    sorts = [(key.value, words) for key, words in SORTS.items() if owner != OwnerFilter.PUBLIC or key not in CLICK_SORTS]
    return {"sorts": sorts, "owners": owners, "visibilities": VISIBILITIES}


def _kept(asked: LinkQuestion) -> dict[str, str]:
    """The parts of a question that its address says; what is usual goes without saying."""
    said = {"q": asked.q, "status": asked.status, "tag": asked.tag, "visibility": asked.visibility}
    said |= {"owner": asked.owner if asked.owner != OwnerFilter.ME else None, "sort": asked.sort if asked.sort != Sort.CREATED else None}
    return {name: str(value) for name, value in said.items() if value}


def _address(kept: dict[str, str], changes: dict[str, str | None]) -> str:
    query = {name: value for name, value in {**kept, **changes}.items() if value}
    return f"/app/links?{urlencode(query)}" if query else "/app/links"


Act = Callable[[WriteSession, Runtime, Namespace, Actor, int], Any]
ACTS: dict[str, tuple[str, Act]] = {
    "disable": ("disabled", lambda session, rt, _space, actor, one: service.disable_link(session, who(actor), one, rt.clock.now())),
    "enable": ("enabled", lambda session, rt, _space, actor, one: service.enable_link(session, who(actor), one, rt.clock.now())),
    "delete": ("deleted", lambda session, rt, _space, actor, one: service.delete_link(session, who(actor), one, rt.clock.now())),
    "undo": ("undone", lambda session, _rt, space, actor, one: service.undo(session, space, who(actor), one)),
}
_SAYS = {"disable": "Disabled", "enable": "Enabled", "delete": "Deleted", "undo": "Undone:", "tag": "Tagged"}


@router.post("/app/links/bulk")
async def act_on_many(
    request: Request,
    actor: Writer,
    rt: Rt,
    space: Space,
    act: Annotated[str, Form(max_length=20)] = "",
    ids: Annotated[list[str] | None, Form(max_length=MOST_AT_ONCE)] = None,
    tag: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Disable, enable, delete or tag the links that were ticked. What cannot be done to one of them is done to the others."""
    chosen = _read_ids(ids or [])
    response = RedirectResponse(back_to(request, rt, "/app/links"), 303)
    if not chosen or act not in _SAYS or (act == "tag" and not tag.strip()):
        flash.say(response, rt, "Tick some links first." if not chosen else "Say what to do with them.", kind="note")
        return response
    async with rt.db.write() as session:
        done, refused = await _act(session, rt, space, actor, act, chosen, tag)
    _report(response, rt, act, done, refused)
    return response


@router.post("/app/links/undo")
async def undo_many(
    request: Request, actor: Writer, rt: Rt, space: Space, ids: Annotated[str, Query(max_length=MOST_AT_ONCE * 20)] = ""
) -> Response:
    """Take back what was just done to several links."""
    response = RedirectResponse(back_to(request, rt, "/app/links"), 303)
    chosen = _read_ids(ids.split(","))
    if chosen:
        async with rt.db.write() as session:
            done, refused = await _act(session, rt, space, actor, "undo", chosen, "")
        _report(response, rt, "undo", done, refused)
    return response


async def _act(
    session: WriteSession, rt: Runtime, space: Namespace, actor: Actor, act: str, chosen: Sequence[int], tag: str
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
        except (Conflict, Forbidden, Invalid, NotFound) as problem:
            refused.append(problem.message)
    return done, refused


async def _add_tag(session: WriteSession, space: Namespace, actor: Actor, link_id: int, tag: str) -> None:
    link, _ = await queries.view_link(session, who(actor), link_id)
    card = await queries.card_of(session, link)
    await service.edit_link(session, space, who(actor), link_id, LinkPatch(tags=[*card.tags, tag.strip()]))


def _report(response: Response, rt: Runtime, act: str, done: Sequence[int], refused: Sequence[str]) -> None:
    if not done:
        flash.say(response, rt, refused[0], kind="wrong")
        return
    links = f"{len(done)} link{'s' if len(done) > 1 else ''}"
    rest = f" {len(refused)} could not be: {refused[0]}" if refused else ""
    undoable = act in ("disable", "delete", "tag")
    flash.say(response, rt, f"{_SAYS[act]} {links}.{rest}", undo=f"/app/links/undo?ids={','.join(map(str, done))}" if undoable else None)


def _read_ids(texts: Sequence[str]) -> list[int]:
    try:
        return list(dict.fromkeys(_IDS.validate_python(texts)))[:MOST_AT_ONCE]
    except ValidationError:
        return []
