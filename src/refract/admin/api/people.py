"""People: find, suspend, promote, change the plan, delete."""

from typing import Annotated, Literal

from fastapi import Query, Response

from refract.admin import queries, service
from refract.admin.queries import PeopleQuestion
from refract.admin.schemas import Links, PersonOut, PersonPage, PersonPatch
from refract.core.page import Cursors, InvalidCursor
from refract.core.schema import Id
from refract.identity.actors import Admin, Parts
from refract.identity.errors import AccountNotFound, HeirNeeded, LastAdministrator
from refract.web.problems import problems
from refract.web.toolkit import PAGE, Cursor, Limit, Rt, api_router

router = api_router("/admin/users", "admin")


@router.get("", responses=problems(InvalidCursor))
async def list_people(
    actor: Admin,  # noqa: ARG001 - it guards
    rt: Rt,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    q: Annotated[str | None, Query(max_length=255, description="A part of the email address.")] = None,
    status: Annotated[
        Literal["active", "suspended", "deleted"] | None, Query(description="Left out: everybody whose account is not deleted.")
    ] = None,
    role: Annotated[Literal["user", "admin"] | None, Query(description="Only people with this role.")] = None,
    plan: Annotated[Literal["free", "pro"] | None, Query(description="Only people with this plan.")] = None,
) -> PersonPage:
    """People, newest first."""
    async with rt.db.read() as session:
        page = await queries.page_of_people(session, Cursors(rt.secret), PeopleQuestion(q, status, role, plan), limit=limit, cursor=cursor)
    return PersonPage(items=[PersonOut.model_validate(one) for one in page.items], next_cursor=page.next_cursor)


@router.get("/{user_id}", responses=problems(AccountNotFound))
async def read_person(user_id: Id, actor: Admin, rt: Rt) -> PersonOut:  # noqa: ARG001 - it guards
    """One account."""
    async with rt.db.read() as session:
        return PersonOut.model_validate(await queries.person(session, user_id))


@router.patch("/{user_id}", responses=problems(AccountNotFound, LastAdministrator))
async def change_person(user_id: Id, changes: PersonPatch, actor: Admin, rt: Rt) -> PersonOut:
    """Suspend or restore, promote or demote, change the plan."""
    async with rt.db.write() as session:
        return PersonOut.model_validate(await service.change_person(session, rt, actor.user, user_id, changes))


@router.delete("/{user_id}", status_code=204, responses=problems(AccountNotFound, LastAdministrator, HeirNeeded))
async def delete_person(
    user_id: Id,
    actor: Admin,
    rt: Rt,
    parts: Parts,
    links: Annotated[Links, Query(description="What becomes of links that are theirs alone; co-owned ones pass to the next owner.")],
    heir: Annotated[Id | None, Query(description="The account that takes over, with `links=reassign`.")] = None,
) -> Response:
    """Delete an account, at once and for good."""
    async with rt.db.write() as session:
        await service.delete_person(session, rt, actor.user, user_id, parts, links=links, heir_id=heir)
    return Response(status_code=204)
