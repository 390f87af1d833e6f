"""The page `/`: landing page, or home of a signed-in user."""

from typing import Annotated, Any

from fastapi import Query, Request
from sqlalchemy import or_, select
from starlette.responses import RedirectResponse, Response

from refract.clicks.stats.pages import build_today
from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.home import api_docs, browser_integration, omnibox
from refract.identity.authentication import Caller
from refract.identity.dependencies import OptionalReadCaller
from refract.identity.responses import render_response
from refract.library.models import Item
from refract.library.queries.items import count_pending_items
from refract.links import pages as link_pages
from refract.links.queries import count_invitations
from refract.lists.access import ListCaller
from refract.lists.draft_owners import list_claimable_titles
from refract.lists.models import LinkList, ListStatus
from refract.lists.queries import load_lists_page
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext

router = page_router()
MAX_LATEST_LINKS = 8
MAX_DRAFTS = 3


@router.get("/")
async def home_page(
    request: Request,
    actor: OptionalReadCaller,
    rt: Rt,
    created: Annotated[str | None, Query(max_length=20)] = None,
) -> Response:
    """Show home to signed-in users, and the landing page to others."""
    if actor is None:
        lists = rt.settings.effective_anonymous_lists
        return render_response(
            request, None, "home/landing.html", page_title="Refract", anonymous_lists=lists
        )
    return render_response(
        request,
        actor,
        "home/index.html",
        page_title=gettext("Home"),
        **await _load_home(request, rt, actor, created),
    )


@router.get("/app")
@router.get("/app/")
async def redirect_home() -> Response:
    """Lead the beginning of all pages of the app home."""
    return RedirectResponse("/", 307)


async def _load_home(
    request: Request, rt: Runtime, actor: Caller, created: str | None
) -> dict[str, Any]:
    """Return what the template shows: newest links, clicks of today, drafts and what waits."""
    links = await link_pages.load_newest_rows(
        rt, actor, link_pages.get_stats_source(request), MAX_LATEST_LINKS
    )
    made = next((link for link in links if link["id"] == created), None)
    counted = await build_today(request, rt, actor) if links else None
    async with rt.db.read() as session:
        waiting = await count_pending_items(session, actor.user.id)
        invited = await count_invitations(session, actor.user.id, rt.clock.now())
        claimable = await list_claimable_titles(session, request, rt)
        drafts = await load_lists_page(
            session,
            CursorCodec(rt.secret),
            ListCaller(actor.user.id),
            limit=MAX_DRAFTS,
            cursor=None,
            status=ListStatus.DRAFT,
        )
        is_new = not (links or waiting or drafts.items) and not await _has_content(session, actor)
    return {
        "links": links,
        "is_new": is_new,
        "created": made,
        "today": counted,
        "waiting": waiting,
        "review_waiting": waiting,
        "invitations_waiting": invited,
        "claimable": claimable,
        "drafts": [
            {"title": draft.title, "href": f"/app/lists/{draft.id}", "entries": count}
            for draft, count, _ in drafts.items
        ],
    }


async def _has_content(session: ReadSession, actor: Caller) -> bool:
    """Return whether a user without links has a list or an item: they know their way already."""
    has_list = select(LinkList.id).where(ListCaller(actor.user.id).filter_own_lists()).exists()
    has_item = select(Item.id).where(Item.user_id == actor.user.id).exists()
    return bool(await session.scalar(select(or_(has_list, has_item))))


ROUTERS = (
    router,
    api_docs.router,
    omnibox.router,
    browser_integration.router,
    browser_integration.share_router,
)
