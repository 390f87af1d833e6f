"""A link's own page: what it is, who owns it, what it was before; and the steps of its life."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from refract.core.db import ReadSession, WriteSession
from refract.core.errors import Conflict
from refract.core.lookalikes import ascii_address
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity.access import Relation, Right
from refract.identity.actors import Reader, Writer
from refract.identity.models import User
from refract.identity.people import people_by_id
from refract.identity.rendering import respond
from refract.identity.visitors import Actor
from refract.links import queries, service
from refract.links.access import Standing
from refract.links.dependencies import Space, who
from refract.links.models import LinkChange
from refract.links.pages.figures import Figures
from refract.links.pages.form import AUDIENCES, dry_run
from refract.names.service import Namespace
from refract.web import flash
from refract.web.returning import back_to
from refract.web.toolkit import Rt, page_router

router = page_router()
VERSIONS = 20


@router.get("/app/links/{link_id}")
async def link_page(link_id: Id, request: Request, actor: Reader, rt: Rt, path: Annotated[str, Query(max_length=2048)] = "") -> Response:
    """The link, and where it would lead with a path behind its name."""
    return await show_link(request, actor, rt, link_id, path=path)


Step = Callable[[WriteSession, Namespace, Actor, int, Runtime], Awaitable[service.Held]]
PAST = {"disable": "disabled", "enable": "enabled", "renew": "renewed", "delete": "deleted", "undo": "undone"}
SAYS = {
    "disable": "{} is switched off.",
    "enable": "{} works again.",
    "renew": "{} no longer expires.",
    "delete": "Deleted {}.",
    "undo": "{} is as it was.",
}
STEPS: dict[str, Step] = {
    "disable": lambda session, _space, actor, link_id, rt: service.disable_link(session, who(actor), link_id, rt.clock.now()),
    "enable": lambda session, _space, actor, link_id, rt: service.enable_link(session, who(actor), link_id, rt.clock.now()),
    "renew": lambda session, _space, actor, link_id, rt: service.renew_link(session, who(actor), link_id, rt.clock.now()),
    "delete": lambda session, _space, actor, link_id, rt: service.delete_link(session, who(actor), link_id, rt.clock.now()),
    "undo": lambda session, space, actor, link_id, _rt: service.undo(session, space, who(actor), link_id),
}


@router.post("/app/links/{link_id}/{step}")
async def take_step(link_id: Id, step: str, request: Request, actor: Writer, rt: Rt, space: Space) -> Response:
    """Disable, enable, renew, delete or undo, and show the page again that it was done on."""
    response = RedirectResponse(back_to(request, rt, f"/app/links/{link_id}"), 303)
    if step not in STEPS:
        return response
    try:
        async with rt.db.write() as session:
            held = await STEPS[step](session, space, actor, link_id, rt)
            name = f"/{held.names[0]}" if held.names else "The link"
    except Conflict as refused:
        return await show_link(request, actor, rt, link_id, status=409, errors={"step": refused.message})
    undo = f"/app/links/{link_id}/undo" if step in ("disable", "delete") else None
    flash.say(response, rt, SAYS[step].format(name), undo=undo)
    return response


async def show_link(
    request: Request, actor: Actor, rt: Runtime, link_id: int, *, status: int = 200, path: str = "", **context: Any
) -> Response:
    """The page, also after something that could not be done: `errors` says what, `values` what was typed."""
    async with rt.db.read() as session:
        link, standing = await queries.view_link(session, who(actor), link_id)
        card = await queries.card_of(session, link)
        colors = await queries.tag_colors(session, card.tags)
        versions, people = await _past(session, link_id, standing)
        shares = await queries.shares_of(session, link_id) if standing.may(Right.MANAGE) else []
        invited = await queries.invitations_of(session, link_id, rt.clock.now()) if standing.may(Right.MANAGE) else []
    shown = card.shown(rt.settings.public_url, rt.clock.now(), stats=standing.may(Right.STATS), managing=standing.may(Right.MANAGE))
    name = shown.names[0] if shown.names else shown.code
    count = rt.part(Figures).of_link
    figures = await count(request, rt, actor, shown) if count is not None and standing.may(Right.STATS) else None
    return respond(
        request,
        actor,
        "links/detail.html",
        status=status,
        page_title=f"/{name}",
        link=shown,
        name=name,
        colors=colors,
        rights={right.name.lower(): standing.may(right) for right in Right},
        versions=[_version(one, people, shown.version) for one in versions],
        shares=[{"id": str(user.id), "name": user.shown_name, "email": user.email} for _, user in shares],
        invitations=[facts.shown(rt.settings.public_url, managing=True) for facts in invited],
        leaves=standing.relation == Relation.RECIPIENT,
        dry_run=dry_run(shown.destination, path, name),
        qr_url=f"/{name}.qr",
        audience=AUDIENCES[shown.visibility],
        shown=figures,
        **context,
    )


async def _past(session: ReadSession, link_id: int, standing: Standing) -> tuple[list[LinkChange], dict[int, User]]:
    if not standing.may(Right.EDIT):
        return [], {}
    versions = await queries.history_of(session, link_id, VERSIONS)
    return versions, await people_by_id(session, {one.actor_id for one in versions if one.actor_id is not None})


def _version(one: LinkChange, people: dict[int, User], newest: int) -> dict[str, Any]:
    """A version as the page tells it: each change as field, before and after."""
    person = people.get(one.actor_id) if one.actor_id is not None else None
    changes = [
        (field.replace("_", " "), _text(change.get("from")), _text(change.get("to")))
        for field, change in one.changes.items()
        if isinstance(change, dict) and "to" in change
    ]
    return {
        "version": one.version,
        "action": one.action.replace("_", " "),
        "who": person.shown_name if person else None,
        "at": one.at,
        "changes": changes,
        "may_revert": one.version < newest,
    }


def _text(value: Any) -> str:
    if isinstance(value, str) and "://" in value:
        return ascii_address(value)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None or value == "" else str(value)
