"""Admin API of people: find, suspend, promote, change the plan, delete."""

from typing import Annotated, Literal

from fastapi import Query, Response

from refract.admin import queries, service
from refract.admin.queries import PeopleFilter
from refract.admin.schemas import (
    BarredOut,
    BarredPage,
    LinkDisposition,
    PersonOut,
    PersonPage,
    PersonPatch,
)
from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.identity import tombstones
from refract.identity.dependencies import AdminCaller, PersonalDataHooks
from refract.identity.errors import (
    AccountNotFound,
    BarredAccountNotFound,
    LastAdmin,
    NewOwnerRequired,
)
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems

router = api_router("/admin/users", "admin")


@router.get("")
async def list_people(
    actor: AdminCaller,  # noqa: ARG001 - it guards
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
    q: Annotated[
        str | None, Query(max_length=255, description="A part of the email address.")
    ] = None,
    status: Annotated[
        Literal["active", "suspended", "deleted"] | None,
        Query(description="Left out: everybody whose account is not deleted."),
    ] = None,
    role: Annotated[
        Literal["user", "admin"] | None, Query(description="Only people with this role.")
    ] = None,
    plan: Annotated[
        Literal["free", "pro"] | None, Query(description="Only people with this plan.")
    ] = None,
) -> PersonPage:
    """List people, newest first."""
    async with rt.db.read() as session:
        page = await queries.load_people_page(
            session,
            CursorCodec(rt.secret),
            PeopleFilter(q, status, role, plan),
            limit=limit,
            cursor=cursor,
        )
    return PersonPage(
        items=[PersonOut.model_validate(user) for user in page.items], next_cursor=page.next_cursor
    )


@router.get("/{user_id}", responses=problems(AccountNotFound))
async def read_person(
    user_id: Id,
    actor: AdminCaller,  # noqa: ARG001 - it guards
    rt: Rt,
) -> PersonOut:
    """Return an account."""
    async with rt.db.read() as session:
        return PersonOut.model_validate(await queries.get_user(session, user_id))


@router.patch("/{user_id}", responses=problems(AccountNotFound, LastAdmin))
async def change_person(user_id: Id, changes: PersonPatch, actor: AdminCaller, rt: Rt) -> PersonOut:
    """Suspend or restore, promote or demote, or change the plan."""
    async with rt.db.write() as session:
        return PersonOut.model_validate(
            await service.change_person(session, rt, actor.user, user_id, changes)
        )


@router.delete(
    "/{user_id}",
    status_code=204,
    responses=problems(AccountNotFound, LastAdmin, NewOwnerRequired),
)
async def delete_person(
    user_id: Id,
    actor: AdminCaller,
    rt: Rt,
    parts: PersonalDataHooks,
    links: Annotated[
        LinkDisposition,
        Query(
            description=(
                "What becomes of their lists, and of links that are theirs alone; co-owned links"
                " pass to the next owner."
            )
        ),
    ],
    heir: Annotated[
        Id | None, Query(description="The account that takes over, with `links=reassign`.")
    ] = None,
    team: Annotated[
        str | None,
        Query(max_length=50, description="Or the handle of the team that takes over."),
    ] = None,
) -> Response:
    """Delete an account immediately. This can't be undone."""
    async with rt.db.write() as session:
        await service.delete_person(
            session, rt, actor.user, user_id, parts, links=links, heir=str(heir) if heir else team
        )
    return Response(status_code=204)


# Deleted accounts whose owners can't sign up again.

barred_router = api_router("/admin/barred", "admin")


@barred_router.get("")
async def list_barred(
    actor: AdminCaller,  # noqa: ARG001 - it guards
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
) -> BarredPage:
    """List deleted accounts whose owners can't sign up again, newest first.

    Nothing but a digest is stored about them.
    """
    async with rt.db.read() as session:
        page = await tombstones.list_tombstones(
            session, CursorCodec(rt.secret), limit=limit, cursor=cursor
        )
    return BarredPage(
        items=[BarredOut.from_tombstone(row) for row in page.items], next_cursor=page.next_cursor
    )


@barred_router.delete("/{barred_id}", status_code=204, responses=problems(BarredAccountNotFound))
async def allow_barred(barred_id: Id, actor: AdminCaller, rt: Rt) -> Response:
    """Allow the owner of a deleted account to sign up again."""
    async with rt.db.write() as session:
        await service.allow_barred(session, rt, actor.user, barred_id)
    return Response(status_code=204)
