"""What the pages of lists share: the page itself, the way back to it, and what was wrong with what was typed."""

from typing import Annotated, Any

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.threads import WorkThreads
from refract.identity.rendering import respond
from refract.lists import queries
from refract.lists.creators import Visitor, remember, titles
from refract.lists.edge import shown_lines
from refract.lists.models import FetchStatus
from refract.lists.palettes import NAMES
from refract.lists.shown import whole
from refract.web.problems import field_errors

Text = Annotated[str, Form()]


async def show_page(request: Request, rt: Runtime, visitor: Visitor, template: str, **context: Any) -> Response:
    """A page whose forms are bound to the creator cookie, which is good for another 30 days from now.

    Rendered in a thread: a list may have a thousand entries.
    """
    bound = visitor.creator if visitor.anonymous else None
    response = await rt.part(WorkThreads).run(respond, request, visitor.actor, template, bound=bound, **context)
    remember(response, rt, visitor)
    return response


async def show_list(request: Request, visitor: Visitor, rt: Runtime, list_id: int, *, status: int = 200, **context: Any) -> Response:
    async with rt.db.read() as session:
        seen = await queries.view_list(session, visitor.who, list_id)
        shown = await shown_lines(session, rt, list_id, seen.epoch)
        unowned = visitor.actor is not None and seen.found.owner_id is None and visitor.who.made(seen.found)
        waiting = await queries.claimable(session, visitor.who.creator) if unowned else []
    out = whole(seen, shown, rt.settings.public_url)
    return await show_page(
        request,
        rt,
        visitor,
        "lists/builder.html",
        status=status,
        page_title=out.title or "Untitled list",
        list=out,
        settled=seen.found.family_id != seen.found.id,
        waiting=[str(entry.id) for entry in out.entries if entry.fetch_status == FetchStatus.PENDING],
        host=rt.settings.public_url.split("://", 1)[-1],
        palettes=NAMES,
        claimable=titles(waiting),
        may_publish=not visitor.anonymous or rt.settings.effective_anonymous_lists == "publish",
        may_name=not visitor.anonymous or rt.settings.anonymous_names,
        **context,
    )


def back(list_id: int, place: str = "") -> Response:
    return RedirectResponse(f"/app/lists/{list_id}{'#' + place if place else ''}", 303)


async def again(
    request: Request, visitor: Visitor, rt: Runtime, list_id: int, wrong: Exception, field: str, values: dict[str, str]
) -> Response:
    """The page once more, with what was typed and what was wrong with it; what nobody may know of stays unknown."""
    if isinstance(wrong, RefractError) and (wrong.status in (401, 403, 404) or wrong.status >= 500):
        raise wrong
    return await show_list(request, visitor, rt, list_id, status=status_of(wrong), errors=errors_of(wrong, field), values=values)


def status_of(wrong: Exception) -> int:
    return wrong.status if isinstance(wrong, RefractError) else 422


def errors_of(wrong: Exception, field: str) -> dict[str, str]:
    if isinstance(wrong, ValidationError):
        return {one.field: one.message for one in field_errors(wrong.errors())}
    return {field: wrong.message if isinstance(wrong, RefractError) else str(wrong)}
