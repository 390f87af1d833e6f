"""Lists in the browser: mine, and the builder, for people and for strangers alike. Forms work without script."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import RefractError
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity.actors import Writer
from refract.identity.rendering import respond, respond_part
from refract.links.api.names import Askers
from refract.links.edge import Space
from refract.lists import addresses, queries, service
from refract.lists.creators import Reading, Visitor, Writing, remember
from refract.lists.edge import add_many, audited, begin_edition, shown_lines, start_list
from refract.lists.errors import TooManyAtOnce
from refract.lists.models import FetchStatus
from refract.lists.schemas import MOST_AT_ONCE, EntriesResult, EntryPatch, ListCreate, ListPatch
from refract.lists.shown import summary, whole
from refract.names import service as names
from refract.names.models import Kind
from refract.web import flash
from refract.web.problems import field_errors
from refract.web.render import Pages
from refract.web.toolkit import Cursor, Rt, page_router

router = page_router()
PER_PAGE = 25
Text = Annotated[str, Form()]


def _page(request: Request, rt: Runtime, visitor: Visitor, template: str, **context: Any) -> Response:
    """A page whose forms are bound to the creator cookie, which is good for another 30 days from now."""
    bound = visitor.creator if visitor.anonymous else None
    response = respond(request, visitor.actor, template, bound=bound, **context)
    remember(response, rt, visitor)
    return response


def typed_addresses(text: str) -> list[str]:
    """One address a line, or several with blanks between them."""
    return [word for line in text.splitlines() for word in line.split()]


@router.get("/app/lists")
async def lists_page(
    request: Request, visitor: Reading, rt: Rt, cursor: Cursor = None, q: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """My lists, or those of this browser; and the box that starts another."""
    return await _lists(request, visitor, rt, cursor, q)


async def _lists(
    request: Request, visitor: Visitor, rt: Runtime, cursor: str | None = None, q: str | None = None, **context: Any
) -> Response:
    async with rt.db.read() as session:
        page = await queries.page_of_lists(session, Cursors(rt.secret), visitor.who, limit=PER_PAGE, cursor=cursor, q=q or None)
        waiting = [] if visitor.anonymous else await queries.claimable(session, visitor.who.creator)
    kept = {"q": q} if q else {}
    return _page(
        request,
        rt,
        visitor,
        "lists.html",
        page_title="Lists",
        lists=[summary(found, count, views, rt.settings.public_url) for found, count, views in page.items],
        claimable=[found.title or "Untitled list" for found in waiting],
        q=q or "",
        next_url=f"/app/lists?{urlencode({**kept, 'cursor': page.next_cursor})}" if page.next_cursor else None,
        first_url=f"/app/lists?{urlencode(kept)}" if cursor else None,
        **context,
    )


@router.post("/app/lists")
async def start(request: Request, visitor: Writing, rt: Rt, space: Space, title: Text = "", urls: Text = "") -> Response:
    """Start a list, with a title and addresses or without."""
    typed = typed_addresses(urls)
    try:
        new = ListCreate(title=title)
        _few_enough(typed)
        found = await addresses.look_at(rt, typed)
        async with rt.db.write() as session:
            made = await start_list(session, rt, space, visitor, new)
            result = await add_many(session, rt, space, visitor, made.id, found)
    except (ValidationError, RefractError) as wrong:
        values = {"title": title, "urls": urls}
        return await _lists(request, visitor, rt, status=_status(wrong), errors=_errors(wrong, "urls"), values=values)
    if result.failed:
        return await _builder(request, visitor, rt, made.id, status=422, **_left_over(typed, result))
    response = RedirectResponse(f"/app/lists/{made.id}", 303)
    remember(response, rt, visitor)
    return response


@router.post("/app/lists/claim")
async def claim(actor: Writer, visitor: Writing, rt: Rt) -> Response:
    """Make the lists of this browser mine."""
    creator = visitor.who.creator
    if creator is not None:
        async with rt.db.write() as session:
            await service.claim_lists(session, actor.user.id, creator)
    return RedirectResponse("/app/lists", 303)


@router.get("/app/lists/availability")
async def availability(request: Request, rt: Rt, space: Space, slug: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Whether a name is free, as a few words for the page."""
    await rt.part(Askers).count(request, rt.clock.monotonic())
    found = None
    if slug:
        async with rt.db.read() as session:
            found = await names.availability(session, space, slug, Kind.LIST)
    pages: Pages = request.app.state.pages
    return Response(pages.render("parts/slug_state.html", found=found, slug=slug), media_type="text/html")


@router.get("/app/lists/{list_id}")
async def list_page(list_id: Id, request: Request, visitor: Reading, rt: Rt) -> Response:
    return await _builder(request, visitor, rt, list_id)


async def _builder(request: Request, visitor: Visitor, rt: Runtime, list_id: int, *, status: int = 200, **context: Any) -> Response:
    async with rt.db.read() as session:
        seen = await queries.view_list(session, visitor.who, list_id)
        shown = await shown_lines(session, rt, list_id, seen.epoch)
    out = whole(seen, shown, rt.settings.public_url)
    return _page(
        request,
        rt,
        visitor,
        "list.html",
        status=status,
        page_title=out.title or "Untitled list",
        list=out,
        settled=seen.found.family_id != seen.found.id,
        waiting=[str(entry.id) for entry in out.entries if entry.fetch_status == FetchStatus.PENDING],
        host=rt.settings.public_url.split("://", 1)[-1],
        **context,
    )


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
    return respond_part(request, visitor.actor, "parts/list_news.html", bound=bound, list=out, fresh=fresh, waiting=still)


@router.post("/app/lists/{list_id}")
async def change(list_id: Id, request: Request, visitor: Writing, rt: Rt, title: Text = "", description: Text = "") -> Response:
    """Change title and description."""
    try:
        changes = ListPatch(title=title, description=description)
        async with rt.db.write() as session:
            found = await service.edit_list(session, visitor.who, list_id, changes, rt.clock.now())
            await audited(session, rt, visitor, "edited", found)
    except (ValidationError, RefractError) as wrong:
        values = {"title": title, "description": description}
        return await _again(request, visitor, rt, list_id, wrong, "title", values)
    return _back(list_id)


@router.post("/app/lists/{list_id}/entries")
async def add(list_id: Id, request: Request, visitor: Writing, rt: Rt, space: Space, urls: Text = "") -> Response:
    """Add addresses. Those that cannot be added stay in the box, each with its reason."""
    typed = typed_addresses(urls)
    try:
        async with rt.db.read() as reading:
            await service.draft_of(reading, visitor.who, list_id)
        _few_enough(typed)
        found = await addresses.look_at(rt, typed)
        async with rt.db.write() as session:
            result = await add_many(session, rt, space, visitor, list_id, found)
    except RefractError as wrong:
        return await _again(request, visitor, rt, list_id, wrong, "urls", {"urls": urls})
    if result.failed:
        return await _builder(request, visitor, rt, list_id, status=422, **_left_over(typed, result))
    response = _back(list_id, "add")
    flash.say(response, rt, _added(result))
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
        return await _again(request, visitor, rt, list_id, wrong, "entries", {})
    return _back(list_id, f"entry-{entry_id}")


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
        return await _again(request, visitor, rt, list_id, wrong, "entries", {})
    return _back(list_id, "entries" if step == "remove" else f"entry-{entry_id}")


@router.post("/app/lists/{list_id}/order")
async def reorder(list_id: Id, visitor: Writing, rt: Rt, order: Annotated[str, Form(max_length=25_000)] = "") -> Response:
    """The order that somebody has dragged the entries into."""
    ids = [int(one) for one in order.split(",") if one.isdigit() and len(one) < 20]
    async with rt.db.write() as session:
        await service.reorder(session, visitor.who, list_id, ids, rt.clock.now())
    return Response(status_code=204)


@router.post("/app/lists/{list_id}/slug")
async def wish_slug(list_id: Id, request: Request, visitor: Writing, rt: Rt, space: Space, slug: Text = "") -> Response:
    try:
        async with rt.db.write() as session:
            await service.wish_slug(session, space, visitor.who, list_id, slug.strip() or None)
    except RefractError as wrong:
        return await _again(request, visitor, rt, list_id, wrong, "slug", {"slug": slug})
    return _back(list_id, "publish")


@router.post("/app/lists/{list_id}/publish")
async def publish(list_id: Id, request: Request, visitor: Writing, rt: Rt, space: Space, slug: Text = "") -> Response:
    """Publish, under the name in the box or a made-up one, and show the list as it will stay."""
    try:
        async with rt.db.write() as session:
            draft = await service.hold_draft(session, visitor.who, list_id)
            if draft.family_id == draft.id:
                await service.wish_slug(session, space, visitor.who, list_id, slug.strip() or None)
            found = await service.publish(session, space, visitor.who, list_id)
            await audited(session, rt, visitor, "published", found)
    except RefractError as wrong:
        return await _again(request, visitor, rt, list_id, wrong, "slug", {"slug": slug})
    return _back(list_id)


@router.post("/app/lists/{list_id}/editions")
async def new_edition(list_id: Id, request: Request, visitor: Writing, rt: Rt, space: Space) -> Response:
    try:
        async with rt.db.write() as session:
            draft, _ = await begin_edition(session, rt, space, visitor, list_id)
    except RefractError as wrong:
        return await _again(request, visitor, rt, list_id, wrong, "step", {})
    return _back(draft.id)


@router.post("/app/lists/{list_id}/delete")
async def delete(list_id: Id, visitor: Writing, rt: Rt) -> Response:
    async with rt.db.write() as session:
        found = await service.delete_list(session, rt.ids, visitor.who, list_id, rt.clock.now())
        await audited(session, rt, visitor, "deleted", found)
    return RedirectResponse("/app/lists", 303)


def _back(list_id: int, place: str = "") -> Response:
    return RedirectResponse(f"/app/lists/{list_id}{'#' + place if place else ''}", 303)


async def _again(
    request: Request, visitor: Visitor, rt: Runtime, list_id: int, wrong: Exception, field: str, values: dict[str, str]
) -> Response:
    """The page once more, with what was typed and what was wrong with it; what nobody may know of stays unknown."""
    if isinstance(wrong, RefractError) and (wrong.status in (401, 403, 404) or wrong.status >= 500):
        raise wrong
    return await _builder(request, visitor, rt, list_id, status=_status(wrong), errors=_errors(wrong, field), values=values)


def _status(wrong: Exception) -> int:
    return wrong.status if isinstance(wrong, RefractError) else 422


def _errors(wrong: Exception, field: str) -> dict[str, str]:
    if isinstance(wrong, ValidationError):
        return {one.field: one.message for one in field_errors(wrong.errors())}
    return {field: wrong.message if isinstance(wrong, RefractError) else str(wrong)}


def _few_enough(typed: list[str]) -> None:
    if len(typed) > MOST_AT_ONCE:
        raise TooManyAtOnce(most=MOST_AT_ONCE)


def _added(result: EntriesResult) -> str:
    twice = sum(one.entry is not None and one.entry.duplicate for one in result.results)
    words = f"Added {result.created} {'address' if result.created == 1 else 'addresses'}."
    return f"{words} {twice} of them {'was' if twice == 1 else 'were'} in the list already." if twice else words


def _left_over(typed: list[str], result: EntriesResult) -> dict[str, Any]:
    """What could not be added, back in the box."""
    bad = [(typed[one.index], one.error.detail) for one in result.results if one.error is not None]
    said = "; ".join(f"{url[:60]}: {why}" for url, why in bad[:3])
    return {"values": {"urls": "\n".join(url for url, _ in bad)}, "errors": {"urls": said}}
