"""Admin pages of people and of deleted accounts. Plain forms; each step is confirmed."""

from datetime import UTC
from typing import Annotated, Any, Literal

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from refract.admin import queries, service
from refract.admin.queries import PeopleFilter
from refract.admin.schemas import BarredOut, LinkDisposition, PersonPatch
from refract.core.errors import RefractError
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity import tombstones
from refract.identity.authentication import Caller
from refract.identity.dependencies import AdminCaller, PersonalDataHooks
from refract.identity.models import LOCAL_ISSUER, User
from refract.identity.responses import render_response
from refract.library.schemas import QuotaOverride
from refract.library.service import quota
from refract.web import flash
from refract.web.dependencies import PER_PAGE, CursorParam, Rt, build_pager, page_router
from refract.web.formats import format_date
from refract.web.i18n import gettext, mark, ngettext, translate_error

router = page_router()
AccountAction = Literal["suspend", "restore", "promote", "demote", "free", "pro"]
_ACCOUNT_PATCHES: dict[str, PersonPatch] = {
    "suspend": PersonPatch(status="suspended"),
    "restore": PersonPatch(status="active"),
    "promote": PersonPatch(role="admin"),
    "demote": PersonPatch(role="user"),
    "free": PersonPatch(plan="free"),
    "pro": PersonPatch(plan="pro"),
}
_ACCOUNT_MESSAGES: dict[AccountAction, str] = {
    "suspend": mark("Suspended {name}"),
    "restore": mark("Restored {name}"),
    "promote": mark("{name} is an administrator now"),
    "demote": mark("{name} is no longer an administrator"),
    "free": mark("Moved {name} to Free"),
    "pro": mark("Moved {name} to Pro"),
}
_UNDO_ACTIONS: dict[AccountAction, AccountAction] = {
    "suspend": "restore",
    "promote": "demote",
    "demote": "promote",
    "free": "pro",
    "pro": "free",
}
"""Restoring an account has no undo: to suspend it again is a decision about its links."""


@router.get("/app/admin/people")
async def people_page(
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    cursor: CursorParam = None,
    q: Annotated[str, Query(max_length=255)] = "",
) -> Response:
    """Show people, newest first; `q` is a part of the email address."""
    return await render_people(request, actor, rt, q=q, cursor=cursor)


@router.post("/app/admin/people/{user_id}/delete")
async def delete_person(
    user_id: Id,
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    parts: PersonalDataHooks,
    links: Annotated[LinkDisposition, Form()],
    heir: Annotated[str, Form()] = "",
) -> Response:
    """Delete an account. What only it owns is deleted, or goes to `heir`: an email or a team."""
    try:
        async with rt.db.write() as session:
            await service.delete_person(
                session, rt, actor.user, user_id, parts, links=links, heir=heir
            )
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await render_people(
            request, actor, rt, status=exc.status, problem=translate_error(exc)
        )
    response = RedirectResponse("/app/admin/people", 303)
    flash.add(response, rt, gettext("Account deleted"))
    return response


@router.post("/app/admin/people/{user_id}/quota")
async def set_quota(
    user_id: Id,
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    day: Annotated[str, Form()] = "",
    limit: Annotated[str, Form()] = "",
) -> Response:
    """Set the limit of AI suggestions on one day; an empty field resets it to the plan's."""
    try:
        override = QuotaOverride.model_validate({"day": day, "limit": limit.strip() or None})
        async with rt.db.write() as session:
            person = await quota.override_limit(
                session, rt, actor.user, user_id, override.day, override.limit
            )
            name = get_label(person)
    except ValidationError:
        return await render_people(
            request,
            actor,
            rt,
            status=422,
            problem=gettext("Enter a day, and a whole number up to 1,000,000 or nothing."),
        )
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await render_people(
            request, actor, rt, status=exc.status, problem=translate_error(exc)
        )
    response = RedirectResponse("/app/admin/people", 303)
    day = format_date(override.day)
    if override.limit is None:
        message = gettext("{name} has the plan’s limit on {day}", name=name, day=day)
    else:
        message = ngettext(
            "{name} can use {n} AI suggestion on {day}",
            "{name} can use {n} AI suggestions on {day}",
            override.limit,
            name=name,
            day=day,
        )
    flash.add(response, rt, message)
    return response


@router.post("/app/admin/people/{user_id}/{step}")
async def change_person(
    user_id: Id,
    step: AccountAction,
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    keep_links: Annotated[bool, Form()] = False,
) -> Response:
    """Suspend or restore, promote or demote, or change the plan."""
    try:
        async with rt.db.write() as session:
            user = await service.change_person(
                session,
                rt,
                actor.user,
                user_id,
                _ACCOUNT_PATCHES[step].model_copy(update={"keep_links": keep_links}),
            )
            name = get_label(user)
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await render_people(
            request, actor, rt, status=exc.status, problem=translate_error(exc)
        )
    response = RedirectResponse("/app/admin/people", 303)
    undo = _UNDO_ACTIONS.get(step)
    flash.add(
        response,
        rt,
        gettext(_ACCOUNT_MESSAGES[step], name=name),
        undo=f"/app/admin/people/{user_id}/{undo}" if undo else None,
    )
    return response


async def render_people(
    request: Request,
    actor: Caller,
    rt: Runtime,
    *,
    q: str = "",
    cursor: str | None = None,
    status: int = 200,
    **context: Any,
) -> HTMLResponse:
    """Render a page of people; `context` may have a `problem` or a new `signin_link`."""
    async with rt.db.read() as session:
        page = await queries.load_people_page(
            session,
            CursorCodec(rt.secret),
            PeopleFilter(q=q or None),
            limit=PER_PAGE,
            cursor=cursor,
        )
        balances = await quota.get_balances(session, rt, page.items)
    return render_response(
        request,
        actor,
        "admin/people.html",
        status=status,
        page_title=gettext("People"),
        here="people",
        people=[_build_row(user, balances[user.id]) for user in page.items],
        today=rt.clock.now().astimezone(UTC).date().isoformat(),
        q=q,
        links_allowed=rt.settings.signin_links_allowed,
        **context,
        **build_pager("/app/admin/people", {"q": q}, cursor, page.next_cursor),
    )


def get_label(user: User) -> str:
    """Return what to call an account in a message: its name, email or number."""
    return user.chosen_name or user.email or f"#{user.id}"


def _build_row(user: User, balance: quota.QuotaBalance) -> dict[str, Any]:
    fields = (
        "email",
        "email_verified",
        "issuer",
        "plan",
        "role",
        "status",
        "held_at",
        "created_at",
        "last_sync_at",
    )
    return {"id": str(user.id), "name": user.chosen_name, "quota": balance} | {
        "is_local": user.issuer == LOCAL_ISSUER,
        **{field: getattr(user, field) for field in fields},
    }


# Deleted accounts, whose owners can't sign up again until an administrator allows it.


@router.get("/app/admin/barred")
async def barred_page(
    request: Request, actor: AdminCaller, rt: Rt, cursor: CursorParam = None
) -> Response:
    """Show deleted accounts whose owners can't sign up again, newest first."""
    async with rt.db.read() as session:
        page = await tombstones.list_tombstones(
            session, CursorCodec(rt.secret), limit=PER_PAGE, cursor=cursor
        )
    return render_response(
        request,
        actor,
        "admin/deleted_accounts.html",
        page_title=gettext("Deleted accounts"),
        here="people",
        barred=[BarredOut.from_tombstone(row) for row in page.items],
        **build_pager("/app/admin/barred", {}, cursor, page.next_cursor),
    )


@router.post("/app/admin/barred/{barred_id}/allow")
async def allow_barred(barred_id: Id, actor: AdminCaller, rt: Rt) -> Response:
    """Allow the owner of a deleted account to sign up again."""
    async with rt.db.write() as session:
        await service.allow_barred(session, rt, actor.user, barred_id)
    response = RedirectResponse("/app/admin/barred", 303)
    flash.add(response, rt, gettext("They can sign up again"))
    return response
