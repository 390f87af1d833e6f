"""Actions on several items of the library, with undo, and the density of its rows."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Forbidden, Invalid, NotFound
from refract.core.runtime import Runtime
from refract.core.schemas import parse_ids
from refract.identity.authentication import Caller
from refract.identity.dependencies import WriteCaller
from refract.identity.users import save_preferences
from refract.library import service
from refract.library.pages.messages import translate_validation_error
from refract.library.queries import items as queries_items
from refract.library.schemas import ItemPatch
from refract.library.service import LockedItem
from refract.tags.grammar import personal_key
from refract.tags.personal_tags import find_tags_by_key
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, ngettext, translate_error
from refract.web.return_path import get_referring_path
from refract.web.tables import Density

router = page_router()
LIBRARY_PATH = "/app/library"
MAX_SELECTED = 100
MAX_QUERY_LENGTH = 6_000
"""Characters of URLs that are passed on to the page that adds them to a list."""
TAG_ACTIONS = ("tag", "untag")
STATE_ACTIONS: dict[str, tuple[str, bool]] = {
    "unread": ("unread", True),
    "read": ("unread", False),
    "favorite": ("favorite", True),
    "unfavorite": ("favorite", False),
    "archive": ("archived", True),
    "unarchive": ("archived", False),
}
"""Actions as a reading state and whether items get it."""
UNDOABLE = {*TAG_ACTIONS, *STATE_ACTIONS, "discard"}
ACTIONS = (*UNDOABLE, "restore", "list")


@router.post("/app/library/bulk")
async def apply_bulk_action(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    act: Annotated[str, Form(max_length=20)] = "",
    ids: Annotated[list[str] | None, Form(max_length=MAX_SELECTED)] = None,
    tag: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Tag, mark, archive, discard or restore the selected items, or add their URLs to a list."""
    chosen = parse_ids(ids or [], MAX_SELECTED)
    response = RedirectResponse(get_referring_path(request, rt, LIBRARY_PATH), 303)
    if hint := _find_hint(act, chosen, tag.strip()):
        flash.add(response, rt, hint, kind="note")
        return response
    if act == "list":
        return await _open_list_picker(request, rt, actor, chosen, response)
    try:
        ItemPatch(new_tags=[tag])
    except ValidationError as exc:
        flash.add(response, rt, translate_validation_error(exc.errors()[0]), kind="wrong")
        return response
    done, failures = await _apply_action(rt, actor, act, chosen, tag.strip())
    _flash_result(response, rt, act, done, failures)
    return response


@router.post("/app/library/undo")
async def undo_bulk_action(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    ids: Annotated[str, Query(max_length=MAX_SELECTED * 20)] = "",
) -> Response:
    """Undo the latest change of several items."""
    response = RedirectResponse(get_referring_path(request, rt, LIBRARY_PATH), 303)
    if chosen := parse_ids(ids.split(","), MAX_SELECTED):
        done, failures = await _apply_action(rt, actor, "undo", chosen, "")
        _flash_result(response, rt, "undo", done, failures)
    return response


@router.post("/app/library/display")
async def change_display(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    density: Annotated[Density, Form()] = "compact",
) -> Response:
    """Remember the density of the rows."""
    async with rt.db.write() as session:
        await save_preferences(session, actor.user.id, {"library_density": density})
    return RedirectResponse(get_referring_path(request, rt, LIBRARY_PATH), 303)


def _find_hint(act: str, chosen: Sequence[int], tag: str) -> str | None:
    """Return what is missing for the action."""
    if not chosen:
        return gettext("Select at least one item.")
    if act not in ACTIONS:
        return gettext("Choose an action.")
    return gettext("Enter a tag.") if act in TAG_ACTIONS and not tag else None


async def _apply_action(
    rt: Runtime, actor: Caller, act: str, chosen: Sequence[int], tag: str
) -> tuple[list[int], list[str]]:
    """Return the ids of the changed items, and the reasons of those that failed.

    Each item is changed in a transaction of its own, so that a failure does not stop the rest.
    """
    done, failures = [], []
    for item_id in chosen:
        try:
            async with rt.db.write() as session:
                locked = await service.lock_item(session, rt, actor.user.id, item_id)
                if await _apply_to_item(locked, act, tag):
                    done.append(item_id)
        except (Conflict, Forbidden, Invalid, NotFound) as exc:
            failures.append(translate_error(exc))
    return done, failures


async def _apply_to_item(locked: LockedItem, act: str, tag: str) -> bool:
    """Return whether there was something to do."""
    match act:
        case "tag" | "untag":
            key = personal_key(tag)
            known = await find_tags_by_key(locked.session, locked.item.user_id, [key])
            has_tag = key in known and known[key].id in locked.tag_ids
            if has_tag == (act == "tag"):
                return False
            kept = None if act == "tag" else sorted(locked.tag_ids - {known[key].id})
            names = [tag] if act == "tag" else []
            await service.edit_item(locked, ItemPatch(tag_ids=kept, new_tags=names))
        case _ if act in STATE_ACTIONS:
            name, wanted = STATE_ACTIONS[act]
            if getattr(locked.item, name) is wanted:
                return False
            await service.edit_item(locked, ItemPatch.model_validate({name: wanted}))
        case "discard":
            await service.discard_item(locked)
        case "restore":
            await service.restore_item(locked)
        case "undo":
            await service.undo_item(locked)
    return True


async def _open_list_picker(
    request: Request, rt: Runtime, actor: Caller, chosen: Sequence[int], otherwise: Response
) -> Response:
    """Go to the page that adds URLs to a list. Notes have none and are left out."""
    async with rt.db.read() as session:
        urls = await queries_items.list_urls(session, actor.user.id, chosen)
    query = urlencode({"url": urls}, doseq=True)
    if not urls or len(query) > MAX_QUERY_LENGTH:
        hint = gettext("Select fewer items.") if urls else gettext("Select items that have a URL.")
        flash.add(otherwise, rt, hint, kind="note")
        return otherwise
    path = f"/app/lists/add?{query}"
    if "hx-request" in request.headers:  # another page, not a part of this one
        return Response(status_code=204, headers={"HX-Redirect": path})
    return RedirectResponse(path, 303)


def _flash_result(
    response: Response, rt: Runtime, act: str, done: Sequence[int], failures: Sequence[str]
) -> None:
    if not done and not failures:
        reasons = {
            "tag": gettext("The selected items already have this tag."),
            "untag": gettext("None of the selected items has this tag."),
        }
        unchanged = gettext("The selected items are like that already.")
        flash.add(response, rt, reasons.get(act, unchanged), kind="note")
        return
    flash.add_bulk_result(
        response,
        rt,
        _format_result(act, len(done)) if done else None,
        failures,
        undo=f"/app/library/undo?ids={','.join(map(str, done))}" if act in UNDOABLE else None,
    )


def _format_result(act: str, count: int) -> str:
    results = {
        "tag": ngettext("Tagged {n} item", "Tagged {n} items", count),
        "untag": ngettext("Removed the tag from {n} item", "Removed the tag from {n} items", count),
        "unread": ngettext("Marked {n} item as unread", "Marked {n} items as unread", count),
        "read": ngettext("Marked {n} item as read", "Marked {n} items as read", count),
        "favorite": ngettext("Added {n} item to favorites", "Added {n} items to favorites", count),
        "unfavorite": ngettext(
            "Removed {n} item from favorites", "Removed {n} items from favorites", count
        ),
        "archive": ngettext("Archived {n} item", "Archived {n} items", count),
        "unarchive": ngettext(
            "Moved {n} item to your library", "Moved {n} items to your library", count
        ),
        "discard": ngettext("Discarded {n} item", "Discarded {n} items", count),
    }
    return results.get(act) or ngettext("Restored {n} item", "Restored {n} items", count)
