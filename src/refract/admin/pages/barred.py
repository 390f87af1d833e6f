"""The screen of deleted accounts whose people may not sign up again."""

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from refract.admin import service
from refract.admin.pages.people import PER_PAGE, turning
from refract.admin.schemas import BarredOut
from refract.core.page import Cursors
from refract.core.schema import Id
from refract.identity import tombstones
from refract.identity.actors import Admin
from refract.identity.rendering import respond
from refract.web import flash
from refract.web.toolkit import Cursor, Rt, page_router

router = page_router()


@router.get("/app/admin/barred")
async def barred_page(request: Request, actor: Admin, rt: Rt, cursor: Cursor = None) -> Response:
    """Show who may not sign up again, newest first."""
    async with rt.db.read() as session:
        page = await tombstones.list_tombstones(session, Cursors(rt.secret), limit=PER_PAGE, cursor=cursor)
    return respond(
        request,
        actor,
        "admin/deleted_accounts.html",
        page_title="Deleted accounts",
        here="people",
        barred=[BarredOut.of(row) for row in page.items],
        **turning("/app/admin/barred", {}, cursor, page.next_cursor),
    )


@router.post("/app/admin/barred/{barred_id}/allow")
async def allow_barred(barred_id: Id, actor: Admin, rt: Rt) -> Response:
    """Let somebody sign up again."""
    async with rt.db.write() as session:
        await service.allow_barred(session, rt, actor.user, barred_id)
    response = RedirectResponse("/app/admin/barred", 303)
    flash.say(response, rt, "They can sign up again.")
    return response
