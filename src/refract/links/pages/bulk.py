"""Actions on several links of the table, with undo."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.db.session import WriteSession
from refract.core.errors import Conflict, Forbidden, Invalid, NotFound, VersionMismatch
from refract.core.runtime import Runtime
from refract.core.schemas import parse_ids
from refract.identity.authentication import Caller
from refract.identity.dependencies import WriteCaller
from refract.links import queries, service
from refract.links.campaigns.errors import UtmTemplateNotFound
from refract.links.campaigns.service import apply_template_to_change
from refract.links.dependencies import Space, to_link_caller
from refract.links.pages.steps import BULK_STEPS, STEPS, UNDOABLE_STEPS
from refract.links.schemas import LinkPatch
from refract.names.service import Namespace
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, ngettext, translate_error
from refract.web.return_path import get_referring_path

router = page_router()
MAX_SELECTED = 100


@router.post("/app/links/bulk")
async def apply_bulk_action(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    act: Annotated[str, Form(max_length=30)] = "",
    ids: Annotated[list[str] | None, Form(max_length=MAX_SELECTED)] = None,
    tag: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Disable, enable, delete or tag the selected links, or set the parameters of a template.

    A failure does not stop the rest.
    """
    chosen = parse_ids(ids or [], MAX_SELECTED)
    response = RedirectResponse(get_referring_path(request, rt, "/app/links"), 303)
    act, _, template = act.partition(":")
    is_complete = bool(tag.strip()) if act == "tag" else act in {*BULK_STEPS, "utm"}
    if not chosen or not is_complete:
        hint = gettext("Choose an action.") if chosen else gettext("Select at least one link.")
        flash.add(response, rt, hint, kind="note")
        return response
    if act == "utm":
        done, failures = await _apply_template(rt, space, actor, template, chosen)
    else:
        async with rt.db.write() as session:
            done, failures = await _apply_action(session, rt, space, actor, act, chosen, tag)
    _flash_result(response, rt, act, done, failures)
    return response


async def _apply_template(
    rt: Runtime, space: Namespace, actor: Caller, template: str, chosen: Sequence[int]
) -> tuple[list[int], list[str]]:
    """Set a template's parameters in the destinations, and return the same as `_apply_action`.

    Each link has a transaction of its own, since its new destination is checked before.
    """
    caller, done, failures = to_link_caller(actor), list[int](), list[str]()
    for link_id in chosen:
        try:
            patch = LinkPatch.model_validate({"utm_template": template})
            changes, versions = await apply_template_to_change(rt, caller, link_id, patch)
            checked = await service.check_changes(rt, changes)
            async with rt.db.write() as session:
                await service.edit_link(
                    session, space, caller, link_id, changes, checked, version=versions
                )
            done.append(link_id)
        except ValidationError:
            failures.append(translate_error(UtmTemplateNotFound()))
        except (Conflict, Forbidden, Invalid, NotFound, VersionMismatch) as exc:
            failures.append(translate_error(exc))
    return done, failures


@router.post("/app/links/undo")
async def undo_bulk_action(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    ids: Annotated[str, Query(max_length=MAX_SELECTED * 20)] = "",
) -> Response:
    """Undo the latest change of several links."""
    response = RedirectResponse(get_referring_path(request, rt, "/app/links"), 303)
    chosen = parse_ids(ids.split(","), MAX_SELECTED)
    if chosen:
        async with rt.db.write() as session:
            done, failures = await _apply_action(session, rt, space, actor, "undo", chosen, "")
        _flash_result(response, rt, "undo", done, failures)
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
    """Return the ids of the changed links, and the reasons of those that failed.

    Links are locked in the order of their ids, so that two callers cannot deadlock.
    """
    done, failures = [], []
    for link_id in sorted(chosen):
        try:
            if act == "tag":
                await _add_tag(session, space, actor, link_id, tag)
            else:
                await STEPS[act](session, rt, space, actor, link_id)
            done.append(link_id)
        except (Conflict, Forbidden, Invalid, NotFound) as exc:
            failures.append(translate_error(exc))
    return done, failures


async def _add_tag(
    session: WriteSession, space: Namespace, actor: Caller, link_id: int, tag: str
) -> None:
    link, _ = await queries.view_link(session, to_link_caller(actor), link_id)
    card = await queries.load_card(session, link)
    patch = LinkPatch(tags=[*card.tags, tag.strip()])
    await service.edit_link(session, space, to_link_caller(actor), link_id, patch)


def _flash_result(
    response: Response, rt: Runtime, act: str, done: Sequence[int], failures: Sequence[str]
) -> None:
    undoable = act in {"tag", "utm", *UNDOABLE_STEPS}
    flash.add_bulk_result(
        response,
        rt,
        _format_result(act, len(done)) if done else None,
        failures,
        undo=f"/app/links/undo?ids={','.join(map(str, done))}" if undoable else None,
    )


def _format_result(act: str, count: int) -> str:
    match act:
        case "disable":
            return ngettext("Disabled {n} link", "Disabled {n} links", count)
        case "enable":
            return ngettext("Enabled {n} link", "Enabled {n} links", count)
        case "delete":
            return ngettext(
                "Deleted {n} link. You can restore it for 24 hours.",
                "Deleted {n} links. You can restore them for 24 hours.",
                count,
            )
        case "utm":
            return ngettext(
                "Set the parameters of {n} link", "Set the parameters of {n} links", count
            )
        case "tag":
            return ngettext("Tagged {n} link", "Tagged {n} links", count)
    return ngettext("Restored {n} link", "Restored {n} links", count)
