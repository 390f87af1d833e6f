"""What I was invited to: accept or decline."""

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, NotFound
from refract.core.page import Cursors
from refract.core.schema import Id
from refract.identity.actors import Reader, Writer
from refract.identity.rendering import respond, respond_part
from refract.links import queries, service
from refract.web import flash
from refract.web.toolkit import Cursor, Rt, page_router

router = page_router()
HERE = "/app/invitations"
PER_PAGE = 25


@router.get(HERE)
async def invitations_page(request: Request, actor: Reader, rt: Rt, cursor: Cursor = None) -> Response:
    """Open invitations, newest first."""
    async with rt.db.read() as session:
        cursors, now = Cursors(rt.secret), rt.clock.now()
        page = await queries.page_of_invitations(session, cursors, actor.user.id, now, limit=PER_PAGE, cursor=cursor)
    return respond(
        request,
        actor,
        "links/invitations.html",
        page_title="Invitations",
        invitations=[facts.shown(rt.settings.public_url, managing=False) for facts in page.items],
        next_url=f"{HERE}?cursor={page.next_cursor}" if page.next_cursor else None,
        first_url=HERE if cursor else None,
    )


@router.get(f"{HERE}/waiting")
async def how_many_wait(request: Request, actor: Reader, rt: Rt) -> Response:
    """The number beside "Links", for pages that have nothing else to do with it."""
    async with rt.db.read() as session:
        number = await queries.count_invitations(session, actor.user.id, rt.clock.now())
    return respond_part(request, actor, "components/waiting_badge.html", number=number, words="open invitations")


@router.post(f"{HERE}/{{invitation_id}}/accept")
async def accept(invitation_id: Id, actor: Writer, rt: Rt) -> Response:
    """Become an owner, and see the link."""
    try:
        async with rt.db.write() as session:
            held = await service.accept_invitation(session, actor.user.id, invitation_id, rt.clock.now())
    except (Conflict, NotFound) as refused:
        if isinstance(refused, NotFound):
            raise
        return _back(rt, refused.message, kind="wrong")
    name = f"/{held.names[0]}" if held.names else "this link"
    return _back(rt, f"You own {name} now.", to=f"/app/links/{held.link.id}")


@router.post(f"{HERE}/{{invitation_id}}/decline")
async def decline(invitation_id: Id, actor: Writer, rt: Rt) -> Response:
    async with rt.db.write() as session:
        await service.decline_invitation(session, actor.user.id, invitation_id, rt.clock.now())
    return _back(rt, "Invitation declined.")


def _back(rt: Rt, said: str, *, to: str = HERE, kind: str = "done") -> Response:
    response = RedirectResponse(to, 303)
    flash.say(response, rt, said, kind=kind)
    return response
