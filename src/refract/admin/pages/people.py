"""The operators' screens about people: who there is, what they may, and what was done. Plain forms, each step asked for again."""

from datetime import UTC
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

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
from refract.identity import audit, tombstones
from refract.identity.authentication import Caller
from refract.identity.dependencies import AdminCaller, PersonalDataHooks
from refract.identity.models import User
from refract.identity.responses import render_response
from refract.identity.users import get_user_by_email
from refract.library.schemas import QuotaOverride
from refract.library.service import quota
from refract.web import flash
from refract.web.dependencies import CursorParam, Rt, page_router

router = page_router()
PER_PAGE = 25
AccountAction = Literal["suspend", "restore", "promote", "demote", "free", "pro"]
_ACCOUNT_PATCHES: dict[str, PersonPatch] = {
    "suspend": PersonPatch(status="suspended"),
    "restore": PersonPatch(status="active"),
    "promote": PersonPatch(role="admin"),
    "demote": PersonPatch(role="user"),
    "free": PersonPatch(plan="free"),
    "pro": PersonPatch(plan="pro"),
}


@router.get("/app/admin/people")
async def people_page(
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    cursor: CursorParam = None,
    q: Annotated[str, Query(max_length=255)] = "",
) -> Response:
    """Everybody, newest first, or those whose address matches."""
    return await _render_people(request, actor, rt, q=q, cursor=cursor)


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
    """Delete somebody's account; their own links go to the person with that address, or are deleted."""
    try:
        async with rt.db.write() as session:
            to = (
                (await get_user_by_email(session, heir)).id
                if links is LinkDisposition.REASSIGN and heir.strip()
                else None
            )
            await service.delete_person(
                session, rt, actor.user, user_id, parts, links=links, heir_id=to
            )
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await _render_people(request, actor, rt, status=exc.status, problem=exc.message)
    return RedirectResponse("/app/admin/people", 303)


@router.post("/app/admin/people/{user_id}/quota")
async def set_quota(
    user_id: Id,
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    day: Annotated[str, Form()] = "",
    limit: Annotated[str, Form()] = "",
) -> Response:
    """Another limit for one day; an empty field gives the plan's back."""
    try:
        wish = QuotaOverride.model_validate({"day": day, "limit": limit.strip() or None})
        async with rt.db.write() as session:
            person = await quota.override_limit(
                session, rt, actor.user, user_id, wish.day, wish.limit
            )
            name = person.public_name
    except ValidationError:
        return await _render_people(
            request,
            actor,
            rt,
            status=422,
            problem="Give a day, and a whole number up to 1,000,000 or nothing.",
        )
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await _render_people(request, actor, rt, status=exc.status, problem=exc.message)
    response = RedirectResponse("/app/admin/people", 303)
    given = (
        f"may ask the assistant {wish.limit} times"
        if wish.limit is not None
        else "has the plan’s limit again"
    )
    flash.add(response, rt, f"{name or 'The person'} {given} on {wish.day}.")
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
    try:
        async with rt.db.write() as session:
            await service.change_person(
                session,
                rt,
                actor.user,
                user_id,
                _ACCOUNT_PATCHES[step].model_copy(update={"keep_links": keep_links}),
            )
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await _render_people(request, actor, rt, status=exc.status, problem=exc.message)
    return RedirectResponse("/app/admin/people", 303)


@router.get("/app/admin/audit")
async def audit_page(
    request: Request, actor: AdminCaller, rt: Rt, cursor: CursorParam = None
) -> Response:
    """Who did what, newest first."""
    async with rt.db.read() as session:
        page = await audit.list_entries(
            session, CursorCodec(rt.secret), limit=PER_PAGE, cursor=cursor
        )
    paging = build_pager("/app/admin/audit", {}, cursor, page.next_cursor)
    return render_response(
        request,
        actor,
        "admin/audit_log.html",
        page_title="Audit log",
        here="audit",
        lines=page.items,
        **paging,
    )


async def _render_people(
    request: Request,
    actor: Caller,
    rt: Runtime,
    *,
    q: str = "",
    cursor: str | None = None,
    status: int = 200,
    problem: str | None = None,
) -> HTMLResponse:
    async with rt.db.read() as session:
        page = await queries.load_people_page(
            session,
            CursorCodec(rt.secret),
            PeopleFilter(q=q or None),
            limit=PER_PAGE,
            cursor=cursor,
        )
        standings = await quota.get_balances(session, rt, page.items)
    return render_response(
        request,
        actor,
        "admin/people.html",
        status=status,
        page_title="People",
        here="people",
        people=[_build_row(one, standings[one.id]) for one in page.items],
        today=rt.clock.now().astimezone(UTC).date().isoformat(),
        q=q,
        problem=problem,
        **build_pager("/app/admin/people", {"q": q} if q else {}, cursor, page.next_cursor),
    )


def _build_row(user: User, standing: quota.QuotaBalance) -> dict[str, Any]:
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
    return {"id": str(user.id), "name": user.public_name, "quota": standing} | {
        field: getattr(user, field) for field in fields
    }


def build_pager(
    path: str, kept: dict[str, str], cursor: str | None, following: str | None
) -> dict[str, Any]:
    """Return the addresses of the next and the first page, for the pager."""
    return {
        "next_url": f"{path}?{urlencode({**kept, 'cursor': following})}" if following else None,
        "first_url": f"{path}?{urlencode(kept)}".rstrip("?") if cursor else None,
    }


# The screen of deleted accounts whose people may not sign up again.

barred_router = page_router()


@barred_router.get("/app/admin/barred")
async def barred_page(
    request: Request, actor: AdminCaller, rt: Rt, cursor: CursorParam = None
) -> Response:
    """Show who may not sign up again, newest first."""
    async with rt.db.read() as session:
        page = await tombstones.list_tombstones(
            session, CursorCodec(rt.secret), limit=PER_PAGE, cursor=cursor
        )
    return render_response(
        request,
        actor,
        "admin/deleted_accounts.html",
        page_title="Deleted accounts",
        here="people",
        barred=[BarredOut.from_tombstone(row) for row in page.items],
        **build_pager("/app/admin/barred", {}, cursor, page.next_cursor),
    )


@barred_router.post("/app/admin/barred/{barred_id}/allow")
async def allow_barred(barred_id: Id, actor: AdminCaller, rt: Rt) -> Response:
    """Let somebody sign up again."""
    async with rt.db.write() as session:
        await service.allow_barred(session, rt, actor.user, barred_id)
    response = RedirectResponse("/app/admin/barred", 303)
    flash.add(response, rt, "They can sign up again.")
    return response
