"""`/`: what Refract is, or what is mine."""

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from refract.analytics.pages import today
from refract.core.page import Cursors
from refract.home import api_docs, browser, omnibox, sharing
from refract.identity.actors import MaybeReader
from refract.identity.rendering import respond
from refract.library.queries import count_pending
from refract.links import pages as link_pages
from refract.links.queries import count_invitations
from refract.lists.access import Who
from refract.lists.creators import made_before
from refract.lists.models import ListStatus
from refract.lists.queries import page_of_lists
from refract.web.toolkit import Rt, page_router

router = page_router()
LATEST = 8
DRAFTS = 3


@router.get("/")
async def start(request: Request, actor: MaybeReader, rt: Rt, created: Annotated[str | None, Query(max_length=20)] = None) -> Response:
    """The landing page for strangers, home for people signed in."""
    if actor is None:
        return respond(request, None, "home/landing.html", page_title="Refract", stranger_lists=rt.settings.effective_anonymous_lists)
    links = await link_pages.newest(rt, actor, LATEST)
    made = next((link for link in links if link["id"] == created), None)
    counted = await today(request, rt, actor) if links else None
    async with rt.db.read() as session:
        waiting = await count_pending(session, actor.user.id)
        invited = await count_invitations(session, actor.user.id, rt.clock.now())
        claimable = await made_before(session, request, rt)
        drafts = await page_of_lists(session, Cursors(rt.secret), Who(actor.user.id), limit=DRAFTS, cursor=None, status=ListStatus.DRAFT)
    return respond(
        request,
        actor,
        "home/index.html",
        page_title="Home",
        links=links,
        created=made,
        today=counted,
        waiting=waiting,
        review_waiting=waiting,
        invitations_waiting=invited,
        claimable=claimable,
        drafts=[{"title": one.title, "href": f"/app/lists/{one.id}", "entries": count} for one, count, _ in drafts.items],
    )


ROUTERS = (router, api_docs.router, omnibox.router, browser.router, sharing.router)
