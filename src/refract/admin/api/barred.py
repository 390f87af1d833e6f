"""Deleted accounts whose people may not sign up again."""

from fastapi import Response

from refract.admin import service
from refract.admin.schemas import BarredOut, BarredPage
from refract.core.page import Cursors, InvalidCursor
from refract.core.schema import Id
from refract.identity import tombstones
from refract.identity.actors import Admin
from refract.identity.errors import BarredNotFound
from refract.web.problems import problems
from refract.web.toolkit import PAGE, Cursor, Limit, Rt, api_router

router = api_router("/admin/barred", "admin")


@router.get("", responses=problems(InvalidCursor))
async def list_barred(actor: Admin, rt: Rt, limit: Limit = PAGE, cursor: Cursor = None) -> BarredPage:  # noqa: ARG001 - it guards
    """Deleted accounts whose people may not sign up again, newest first. Nothing but a digest is kept of them."""
    async with rt.db.read() as session:
        page = await tombstones.list_tombstones(session, Cursors(rt.secret), limit=limit, cursor=cursor)
    return BarredPage(items=[BarredOut.of(row) for row in page.items], next_cursor=page.next_cursor)


@router.delete("/{barred_id}", status_code=204, responses=problems(BarredNotFound))
async def allow_barred(barred_id: Id, actor: Admin, rt: Rt) -> Response:
    """Let somebody sign up again whose account was deleted."""
    async with rt.db.write() as session:
        await service.allow_barred(session, rt, actor.user, barred_id)
    return Response(status_code=204)
