"""The page of invitations to own a link: accept or decline."""

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, NotFound
from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_fragment, render_response
from refract.links import queries, service
from refract.links.queries.cards import choose_text
from refract.names.grammar import split_name
from refract.web import flash
from refract.web.dependencies import CursorParam, Rt, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()
PATH = "/app/invitations"
PER_PAGE = 25


@router.get(PATH)
async def invitations_page(
    request: Request, actor: ReadCaller, rt: Rt, cursor: CursorParam = None
) -> Response:
    """List the caller's open invitations, newest first."""
    async with rt.db.read() as session:
        cursors, now = CursorCodec(rt.secret), rt.clock.now()
        page = await queries.load_invitations_page(
            session, cursors, actor.user.id, now, limit=PER_PAGE, cursor=cursor
        )
    return render_response(
        request,
        actor,
        "links/invitations.html",
        page_title=gettext("Invitations"),
        invitations=[
            facts.to_schema(rt.settings.public_url, managing=False) for facts in page.items
        ],
        next_url=f"{PATH}?cursor={page.next_cursor}" if page.next_cursor else None,
        first_url=PATH if cursor else None,
    )


@router.get(f"{PATH}/waiting")
async def count_pending(request: Request, actor: ReadCaller, rt: Rt) -> Response:
    """Return the badge beside "Links", for pages that do not load invitations."""
    async with rt.db.read() as session:
        number = await queries.count_invitations(session, actor.user.id, rt.clock.now())
    return render_fragment(
        request, actor, "components/waiting_badge.html", number=number, kind="invitations"
    )


@router.post(f"{PATH}/{{invitation_id}}/accept")
async def accept_invitation(invitation_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Accept an invitation, and show the link."""
    try:
        async with rt.db.write() as session:
            locked = await service.accept_invitation(
                session, actor.user.id, invitation_id, rt.clock.now()
            )
    except (Conflict, NotFound) as exc:
        if isinstance(exc, NotFound):
            raise
        return _redirect_with_message(rt, translate_error(exc), kind="wrong")
    name = split_name(choose_text(locked.link, locked.names))[1]
    message = gettext("You now own /{name}", name=name)
    return _redirect_with_message(rt, message, to=f"/app/links/{locked.link.id}")


@router.post(f"{PATH}/{{invitation_id}}/decline")
async def decline_invitation(invitation_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    async with rt.db.write() as session:
        await service.decline_invitation(session, actor.user.id, invitation_id, rt.clock.now())
    return _redirect_with_message(rt, gettext("Declined the invitation"))


def _redirect_with_message(rt: Rt, message: str, *, to: str = PATH, kind: str = "done") -> Response:
    response = RedirectResponse(to, 303)
    flash.add(response, rt, message, kind=kind)
    return response
